"""The linter is silent on sound sources and red on each planted breach, with place and remedy."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from codegen.lint import lint
from codegen.source import Source
from codegen.transitions import phases
from codegen.tree import Json, Node, SchemaError, as_list, as_node, as_text, child, read, texts
from psych_schema.transitions import PHASES
from tests.codegen.trees import REMOVED, SCHEMA, plant, problems, sound, write


def _breaches() -> list[Node]:
    """Return what is planted and what must be said, one breach of one rule each."""
    content: Json = json.loads(Path(__file__).with_name("breaches.json").read_text("utf-8"))
    return [as_node(row) for row in as_list(content)]


def _name(row: Node) -> str:
    return as_text(row["breach"]).replace(" ", "-")


def test_sound_sources_have_no_problem(tmp_path: Path) -> None:
    """The tree that the breaches are planted into is clean, so that each test sees its own."""
    assert problems(sound(), tmp_path) == []


def test_the_real_sources_have_no_problem() -> None:
    """schema/ itself keeps the rules."""
    assert lint(Source.load(SCHEMA)) == []


@pytest.mark.parametrize("row", _breaches(), ids=_name)
def test_a_breach_is_named(tmp_path: Path, row: Node) -> None:
    """One breach gives exactly the messages that are written beside it."""
    value = REMOVED if "remove" in row else row["value"]
    spoilt = plant(sound(), as_text(row["file"]), as_text(row["pointer"]), value)
    assert problems(spoilt, tmp_path) == texts(row["expected"])


def test_problems_come_in_one_order(tmp_path: Path) -> None:
    """Two breaches in two files are told together, sorted."""
    name = "/$defs/Robot/properties/name/allOf"
    tree = plant(sound(), "spec/robot.json", name, [{"type": "string"}])
    tree = plant(tree, "common.json", "/$defs/Id/pattern", "^\\d$")
    assert [problem.split(": ")[0] for problem in problems(tree, tmp_path)] == [
        "schema/common.json#/$defs/Id/pattern",
        "schema/spec/robot.json#/$defs/Robot/properties/name/allOf",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{", "no JSON", id="broken"),
        pytest.param("[]", "no object", id="array"),
        pytest.param("{}", "$id: None is no string", id="without-id"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """A source that is no JSON object stops the load with its path."""
    schema = write(sound(), tmp_path)
    (schema / "spec/broken.json").write_text(text, encoding="utf-8")

    with pytest.raises(SchemaError, match=r"spec/broken\.json") as caught:
        Source.load(schema)

    assert expected in str(caught.value)


def test_two_files_with_one_id_are_refused(tmp_path: Path) -> None:
    """A copied file that kept its `$id` would hide the other."""
    schema = write(sound(), tmp_path)
    (schema / "twin.json").write_bytes((schema / "common.json").read_bytes())

    with pytest.raises(SchemaError, match=r"twin\.json#/\$id: .* is also that of common\.json"):
        Source.load(schema)


def test_the_meta_schema_is_a_schema_that_explains_itself() -> None:
    """Each word of ours has help text; what it says of phases is what the table knows."""
    meta = read(SCHEMA / "meta/psych.json")
    Draft202012Validator.check_schema(meta)
    words = child(child(child(meta, "$defs"), "Schema"), "properties")
    ours = {word for word in words if word.startswith("x-psych-")}
    assert len(ours) == 14
    for word in ours:
        assert as_text(child(words, word)["description"]).endswith("."), word
    assert {kind: tuple(names) for kind, names in phases(SCHEMA).items()} == PHASES
