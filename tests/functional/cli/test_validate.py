"""`psych validate` prints every error with line, column, caret and suggestion (SPEC-4, CLI-1)."""

import json
from pathlib import Path

import pytest

from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process

GOOD = "kind: agent\nname: x\ninstructions: hi\nmodel: {model: m}\n"
BROKEN = "kind: agent\nname: x\ninstrutions: hi\nmodel:\n  model: 3\n  api_key: hunter2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "syntax.yaml").write_text("kind: agent\nname: [x\n")
    return tmp_path


def test_cli_1_a_broken_spec_is_shown(folder: Path) -> None:
    """Everything at once, secrets starred out, exit code 1."""
    ran = psych_process("validate", "broken.yaml", cwd=folder)
    assert ran.code == 1
    assert ran.err == ""
    assert ran.out == (
        "broken.yaml:1:1: /instructions: 'instructions' is missing\n"
        "    1 | kind: agent\n"
        "      | ^\n"
        'broken.yaml:3:1: /instrutions: unknown field (got "instrutions"); '
        "did you mean 'instructions'?\n"
        "    3 | instrutions: hi\n"
        "      | ^\n"
        "broken.yaml:5:10: /model/model: must be a text, not a number (got 3)\n"
        "    5 |   model: 3\n"
        "      |          ^\n"
        "broken.yaml:6:3: /model/api_key: unknown field; there are model, temperature, top_p, "
        "seed, max_output_tokens, cache, extras, stop_sequences, tool_choice, "
        'parallel_tool_calls, fallbacks (got "api_key")\n'
        "    6 |   api_key: *******\n"
        "      |   ^\n"
        "4 errors in 1 of 1 files\n"
    )


def test_cli_1_several_files_are_all_judged(folder: Path) -> None:
    """Good ones are named too; one bad file is enough for exit code 1."""
    ran = psych("validate", "good.yaml", "syntax.yaml", "missing.yaml", cwd=folder)
    assert ran.code == 1
    assert ran.out == (
        "good.yaml: ok\n"
        "syntax.yaml:3:1: /name/1: expected ',' or ']' in this list\n"
        "    3 | \n"
        "      | ^\n"
        "missing.yaml: cannot be read: no such file or directory\n"
        "2 errors in 2 of 3 files\n"
    )
    good = psych("validate", "good.yaml", cwd=folder)
    assert (good.code, good.out) == (0, "good.yaml: ok\n")


def test_cli_1_json_for_programs(folder: Path) -> None:
    """The same facts; the hash of what is valid."""
    ran = psych("validate", "good.yaml", "broken.yaml", "--json", cwd=folder)
    assert ran.code == 1
    document = ran.json()
    assert isinstance(document, dict)
    files = document["files"]
    assert isinstance(files, list)
    good, broken = files
    assert good == {
        "file": "good.yaml",
        "valid": True,
        "hash": psych("hash", "good.yaml", cwd=folder).out.strip(),
        "issues": [],
    }
    assert isinstance(broken, dict)
    assert (broken["valid"], broken["hash"]) == (False, None)
    issues = broken["issues"]
    assert isinstance(issues, list)
    assert len(issues) == 4
    assert issues[1] == {
        "pointer": "/instrutions",
        "message": "unknown field",
        "code": "unknown_field",
        "value": '"instrutions"',
        "suggestion": "instructions",
        "line": 3,
        "column": 1,
    }
    assert "hunter2" not in ran.out


def test_cli_1_a_spec_of_50_mb_is_refused(folder: Path) -> None:
    """By its size, in words."""
    with (folder / "large.yaml").open("wb") as file:
        file.truncate(50_000_000)
    ran = psych("validate", "large.yaml", cwd=folder)
    assert ran.code == 1
    assert ran.out == (
        "large.yaml: 50000000 bytes, the bound is 1048576\n1 error in 1 of 1 files\n"
    )


def test_cli_1_colours_are_for_terminals(folder: Path) -> None:
    """None in a pipe; on request they are there."""
    assert "\x1b" not in psych_process("validate", "broken.yaml", cwd=folder).out
    assert "\x1b[1m" in psych_process("validate", "broken.yaml", cwd=folder, FORCE_COLOR="1").out


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_cli_1_a_file_name_may_be_no_unicode(folder: Path, more: tuple[str, ...]) -> None:
    """It is printed with its bytes escaped, where the encoding is strict, too."""
    ran = psych_process("validate", folder / "\udcff.yaml", *more, PYTHONIOENCODING="utf-8:strict")
    assert (ran.code, ran.err) == (1, "")
    assert "\\udcff.yaml" in ran.out.replace("\\\\", "\\")


def test_cli_1_a_file_cannot_paint_the_terminal(folder: Path) -> None:
    """What a file holds is shown, not obeyed."""
    (folder / "evil.json").write_text('{"kind": "agent\x1b[31m"}')
    ran = psych("validate", "evil.json", cwd=folder)
    assert ran.code == 1
    assert "\x1b" not in ran.out


def test_spec_4_what_a_terminal_would_obey_is_shown_as_an_escape(tmp_path: Path) -> None:
    """A key with a colour or a new line neither colours nor forges a line."""
    spec = tmp_path / "e.yaml"
    spec.write_text(
        'kind: agent\nname: a\ninstructions: x\nmodel: {model: s, "\\e[31mRED\\nx:1:1": 1}\n'
    )
    ran = psych("validate", spec)
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert ran.out.splitlines()[0].startswith(f"{spec}:4:19: /model/\\x1b[31mRED\\nx:1:1: unknown")


def test_cli_1_a_narrow_encoding_is_no_problem_found(tmp_path: Path) -> None:
    """JSON is escaped then, and text shows what cannot be written."""
    spec = tmp_path / "wide.yaml"
    spec.write_text("kind: agent\nname: a\ninstructions: x\nmodel: {model: s}\n日本語😀: 1\n")
    told = psych_process("validate", "--json", spec, PYTHONIOENCODING="ascii")
    assert told.code == 1
    assert json.loads(told.out)["files"][0]["issues"][0]["pointer"] == "/日本語😀"
    text = psych_process("validate", spec, PYTHONIOENCODING="ascii")
    assert "/\\u65e5\\u672c\\u8a9e" in text.out


@pytest.mark.parametrize("field", ["deadline_seconds", "stream_idle_seconds"])
def test_spec_4_seconds_have_a_bound(tmp_path: Path, field: str) -> None:
    """What no clock can add is refused where it is written."""
    spec = tmp_path / "long.yaml"
    spec.write_text(
        "kind: agent\nname: a\ninstructions: x\nmodel: {model: s}\n"
        f"limits: {{{field}: 1000000000.5}}\n"
    )
    ran = psych("validate", spec)
    assert ran.code == 1
    assert f"/limits/{field}: must be at most 1000000000" in ran.out
