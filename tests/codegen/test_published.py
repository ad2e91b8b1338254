"""What people read who have no Python: flat schemas, TypeScript declarations, doc pages."""

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from codegen import typescript
from codegen.flat import ROOTS, flatten
from codegen.tree import as_text, child, read, walk
from tests.codegen.published import SOURCE
from tests.codegen.trees import GENERATED

PAGES = sorted((GENERATED / "docs").glob("*.md"))
SCHEMAS = sorted((GENERATED / "schema").glob("*.json"))


def test_the_published_roots() -> None:
    """One file each, in both forms."""
    names = [
        "agent",
        "answer",
        "created",
        "doctor",
        "hash",
        "receipt",
        "record",
        "report",
        "runs",
        "schemas",
        "spec",
        "status",
        "thread",
        "unreadable",
        "validation",
        "verification",
    ]
    assert sorted(ROOTS) == names
    assert [path.stem for path in SCHEMAS] == names
    assert sorted(path.name for path in (GENERATED / "typescript").iterdir()) == [
        f"{name}.d.ts" for name in names
    ]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_a_published_schema_is_flat(path: Path) -> None:
    """One `$id`, local references that exist, no word that only we know."""
    schema = read(path)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://psychruntime.com/schema/v1/{path.name}"
    names = set(child(schema, "$defs"))
    for pointer, node in walk(schema):
        assert not [word for word in node if word.startswith("x-psych")], pointer
        assert "discriminator" not in node, pointer
        assert pointer == "" or not {"$id", "$schema", "$defs"} & set(node), pointer
        ref = node.get("$ref")
        if isinstance(ref, str):
            assert ref == "#" or ref.removeprefix("#/$defs/") in names, pointer


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_a_published_schema_carries_what_it_needs_and_no_more(path: Path) -> None:
    """Each definition is referred to."""
    schema = read(path)
    refs = {as_text(node["$ref"]) for _, node in walk(schema) if "$ref" in node}
    assert {f"#/$defs/{name}" for name in child(schema, "$defs")} == refs - {"#"}


def test_a_root_within_itself_is_no_copy() -> None:
    """`record` refers to nothing that contains it; `spec` has the agent as a definition."""
    assert "AgentSpec" in child(flatten(SOURCE, "spec"), "$defs")
    assert "Record" not in child(flatten(SOURCE, "record"), "$defs")


@pytest.mark.parametrize("root", sorted(ROOTS))
def test_each_definition_has_a_declaration(root: str) -> None:
    """TypeScript names what the schema names, once."""
    (text,) = [t for path, t in typescript.emit(SOURCE).items() if path.name == f"{root}.d.ts"]
    declared = re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE)
    schema = flatten(SOURCE, root)
    assert sorted(declared) == sorted([as_text(schema["title"]), *child(schema, "$defs")])


def test_a_declaration_in_full() -> None:
    """Optional fields, null, arrays, defaults in the comment."""
    text = (GENERATED / "typescript/agent.d.ts").read_text(encoding="utf-8")
    described = "/** Which model, how it samples, and who stands in for it. */\n"
    assert described + "export interface ModelRef {\n" in text
    assert "  /** Null leaves it to the provider. Default: null. */\n" in text
    assert "  temperature?: Temperature | null;\n" in text
    assert "  tools?: Array<Tool>;\n" in text
    assert '  kind: "agent";\n' in text


def test_there_is_a_page_per_object_and_union() -> None:
    """Plain values share one page."""
    names = {
        definition.name
        for definition in SOURCE.definitions()
        if {"properties", "oneOf"} & set(definition.schema)
    }
    assert {path.stem for path in PAGES} == names | {"index", "values"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    """Each target is a page, each anchor a heading of it."""
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", path.read_text(encoding="utf-8"))
    for name, anchor in links:
        target = path.with_name(name)
        assert target.is_file(), name
        if anchor:
            text = target.read_text(encoding="utf-8")
            headings = {line[3:].lower() for line in text.splitlines() if line.startswith("## ")}
            assert anchor in headings, name


def test_the_index_leads_to_every_page() -> None:
    """Nothing is hidden."""
    text = (GENERATED / "docs/index.md").read_text(encoding="utf-8")
    assert {path.name for path in PAGES} - {"index.md"} <= set(re.findall(r"\((\w+\.md)", text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_whole_tables(path: Path) -> None:
    """Each row has as many cells as its heading."""
    cells = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        now = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert now in {0, cells} or cells == 0, line
        cells = now


def test_the_page_of_a_record_tells_its_transition_and_examples() -> None:
    """What a reader of the log wants to know."""
    text = (GENERATED / "docs/ToolStarted.md").read_text(encoding="utf-8")
    assert "| `call_id` | [Id](values.md#id) | required |" in text
    assert "Written by: attempt." in text
    assert "`arguments` is its content: stored apart" in text
    assert "| approval `approval_id` | `granted` | `used` |" in text
    assert "- Guard `retry_is_safe`." in text
    assert "Valid: asked by the model\n\n```json\n" in text
    assert "Invalid (`missing at digest`): no digest\n\n```json\n" in text


def test_the_page_of_a_row_tells_its_keys() -> None:
    """What a DBA wants to know."""
    text = (GENERATED / "docs/RunRow.md").read_text(encoding="utf-8")
    assert "SQL table `run`, primary key `run_id`. PostgreSQL fills its pages to 50 %." in text
    assert "- index `run_root` on `root`, only where `parent` is set\n" in text
    unsettled = "`state` is `ready` or `running` or `suspended`"
    assert f"`run_abort` on `abort`, only where {unsettled}, and `abort` is set\n" in text
    assert "DynamoDB table `run`: `pk` = `{run_id}`." in text
