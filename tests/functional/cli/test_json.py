"""What `--json` prints is published: every document validates against its schema (CLI-1)."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from jsonschema import Draft202012Validator
from typer.core import TyperGroup
from typer.main import get_command

from psych_runtime.cli.app import app
from tests.functional.cli.inside import psych
from tests.functional.cli.stored import (
    asking,
    busy,
    killed,
    published,
    stored,
    unreadable,
    waiting,
)

PUBLISHED = {
    "new": {"created"},
    "validate": {"validation"},
    "schema": {"schemas"},
    "hash": {"hash"},
    "runs": {"runs"},
    "log": {"record", "unreadable"},
    "report": {"report"},
    "verify": {"verification"},
    "doctor": {"doctor"},
}
"""The schemas of what each command prints; `psych schema NAME` prints one itself."""

SCHEMAS = sorted(set().union(*PUBLISHED.values()))

GOOD = "kind: agent\nname: x\ninstructions: hi\nmodel: {model: m}\n"
BAD = "kind: agent\nname: X\ninstrutions: hi\nmodel: {model: 3, api_key: hunter2}\n"


class Case(NamedTuple):
    """A command line without --json, its exit code, and what each printed document is."""

    line: str
    code: int
    schemas: tuple[str, ...]


CASES = [
    Case("new made --dir DIR", 0, ("created",)),
    Case("new made --dir DIR --python", 0, ("created",)),
    Case("new taken --dir DIR", 1, ()),
    Case("new No --dir DIR", 2, ()),
    Case("validate DIR/good.yaml", 0, ("validation",)),
    Case("validate DIR/good.yaml DIR/bad.yaml DIR/none.yaml DIR/large.yaml", 1, ("validation",)),
    Case("validate DIR/syntax.yaml DIR/unicode.json DIR/\udcff.yaml", 1, ("validation",)),
    Case("validate", 2, ()),
    Case("schema", 0, ("schemas",)),
    *(Case(f"schema {name}", 0, ("a schema",)) for name in ["agent", "spec", *SCHEMAS]),
    Case("schema agnt", 2, ()),
    Case("hash DIR/good.yaml", 0, ("hash",)),
    Case("hash DIR/bad.yaml", 1, ()),
    Case("runs --store URL", 0, ("runs",)),
    Case("runs --store URL --limit 2", 0, ("runs",)),
    Case("runs --store URL --tenant nobody", 0, ("runs",)),
    Case("runs --store URL --cursor nonsense", 1, ()),
    Case("runs --store sqlite:///DIR/empty.db", 1, ()),
    Case("log KILLED --store URL", 0, ("record",) * 15),
    Case("log KILLED --store URL --after 99", 0, ()),
    Case("log ASKING --store URL", 0, ("record",) * 11),
    Case("log BUSY --store URL", 0, ("record",) * 10),
    Case("log BROKEN --store URL", 1, ("record", "unreadable")),
    Case("log run_x --store URL", 1, ()),
    Case("report KILLED --store URL", 0, ("report",)),
    Case("report ASKING --store URL", 0, ("report",)),
    Case("report BUSY --store URL", 0, ("report",)),
    Case("report BROKEN --store URL", 0, ("report",)),
    Case("report run_x --store URL", 1, ()),
    Case("report \udcff --store URL", 2, ()),
    Case("verify --store URL", 1, ("verification",) * 4),
    Case("verify --store URL --tenant nobody", 0, ()),
    Case("verify KILLED --store URL", 0, ("verification",)),
    Case(f"verify KILLED --store URL --head {'a' * 64}", 1, ("verification",)),
    Case("verify BROKEN --store URL", 1, ("verification",)),
    Case("verify KILLED --store URL --head abc", 2, ()),
    Case(f"verify --store URL --head {'a' * 64}", 2, ()),
    Case("verify run_x --store URL", 2, ()),
    Case("verify \udcff --store URL", 2, ()),
    Case("verify --store sqlite:///DIR/empty.db", 2, ()),
    Case("doctor --store URL", 1, ("doctor",)),
    Case("doctor --rebuild --store URL", 1, ("doctor",)),
    Case("doctor --store URL --tenant nobody", 0, ("doctor",)),
    Case("doctor --store sqlite:///DIR/empty.db", 1, ("doctor",)),
    Case("doctor --store sqlite:///DIR/good.yaml", 1, ("doctor",)),
    Case("doctor --store sqlite:///DIR/\udcff.db", 1, ("doctor",)),
    Case("doctor --store cassandra://psych:hunter2@db", 1, ("doctor",)),
]


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    """Make the files that the cases name; return what their words in capitals stand for."""
    logs = {
        "KILLED": killed(),
        "ASKING": asking(first_id=2000),
        "BUSY": busy(first_id=3000),
        "BROKEN": waiting(first_id=4000),
    }
    url = stored(tmp_path, *logs.values())
    unreadable(url, logs["BROKEN"], "no record\n")
    (tmp_path / "empty.db").touch()
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "syntax.yaml").write_text("kind: agent\nname: [x\n")
    (tmp_path / "unicode.json").write_text('{"kind": "agent", "\\ud800": "\\udfff"}')
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(2_000_000)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "run.py").touch()
    return {"DIR": str(tmp_path), "URL": url} | {name: log.run_id for name, log in logs.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.line))
def test_cli_1_what_json_prints_validates_against_its_published_schema(
    words: dict[str, str], case: Case
) -> None:
    """Good and bad: when there is nothing to say, standard output stays empty."""
    line = case.line
    for word, meaning in words.items():
        line = line.replace(word, meaning)
    ran = psych(*line.split(" "), "--json")
    by_line = line.startswith(("log ", "verify "))
    printed = ran.out.splitlines() if by_line else [ran.out] if ran.out else []

    assert ran.code == case.code, ran.err
    assert len(printed) == len(case.schemas)
    for text, name in zip(printed, case.schemas, strict=True):
        errors = validator(name).iter_errors(json.loads(text))
        assert [f"{error.json_path}: {error.message}" for error in errors] == []
        text.encode()  # UTF-8 can say it
        assert "hunter2" not in text


def validator(name: str) -> Draft202012Validator:
    if name == "a schema":
        return Draft202012Validator(Draft202012Validator.META_SCHEMA)
    return published(name)


def test_cli_1_every_command_with_json_has_a_published_schema() -> None:
    """A new command is in the table, and a case says how it is tried."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    context = typer.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    with_json = {
        name
        for name, command in found.items()
        if command is not None and any("--json" in one.opts for one in command.params)
    }

    assert with_json == set(PUBLISHED)
    for name, schemas in PUBLISHED.items():
        tried = {one for case in CASES if case.line.split()[0] == name for one in case.schemas}
        assert tried - {"a schema"} == schemas
    names = psych("schema").out.split()
    assert set(SCHEMAS) <= set(names)


@pytest.mark.parametrize("name", SCHEMAS)
def test_cli_1_a_published_schema_of_the_command_line_refuses_what_is_none(name: str) -> None:
    """The validators can fail."""
    assert not published(name).is_valid({})
    assert not published(name).is_valid([])
