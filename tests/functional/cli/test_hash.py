"""`psych hash` prints what names the Version (SPEC-1, CLI-1)."""

import json
from pathlib import Path

from psych_runtime import load_spec
from psych_runtime.core.canonical import spec_hash
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process

YAML = "# a comment\nkind: agent\nname: x\ninstructions: |\n  hi\nmodel: {model: m}\n"


def test_spec_1_every_way_to_write_a_file_has_one_hash(tmp_path: Path) -> None:
    """YAML, CRLF, JSON in another order."""
    (tmp_path / "a.yaml").write_bytes(YAML.encode())
    (tmp_path / "b.yml").write_bytes(YAML.replace("\n", "\r\n").encode())
    document = {"model": {"model": "m"}, "instructions": "hi\n", "name": "x", "kind": "agent"}
    (tmp_path / "c.json").write_text(json.dumps(document))
    wanted = spec_hash(load_spec(YAML))
    for name in ("a.yaml", "b.yml", "c.json"):
        ran = psych("hash", tmp_path / name)
        assert (ran.code, ran.out, ran.err) == (0, f"{wanted}\n", "")
    ran = psych("hash", "a.yaml", "--json", cwd=tmp_path)
    assert ran.json() == {"file": "a.yaml", "kind": "agent", "name": "x", "hash": wanted}


def test_cli_1_an_invalid_spec_has_no_hash(tmp_path: Path) -> None:
    """What is wrong goes to standard error."""
    (tmp_path / "a.yaml").write_text(YAML.replace("agent", "agnt"))
    ran = psych_process("hash", "a.yaml", "--json", cwd=tmp_path)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("error: a.yaml:2:7: /kind: must be 'agent' (got \"agnt\")")
    assert ran.err.endswith("code: invalid_spec\n")
