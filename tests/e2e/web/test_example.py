"""What the example says of the library, and what the library knows of the example (REF-1)."""

import ast

from psych_runtime import errors
from tests.e2e.web.running import WEB
from tests.processes import ROOT

_SERVERS = {"fastapi", "starlette", "uvicorn"}


def _imported(text: str) -> set[str]:
    """Return the first part of each name that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


def test_ref_1_the_library_knows_no_web_server() -> None:
    """The example imports one; nothing that is installed does."""
    assert "fastapi" in _imported((WEB / "app.py").read_text())
    for folder in ("src", "generated"):
        files = sorted((ROOT / folder).rglob("*.py"))
        assert len(files) > 10
        assert [one for one in files if _imported(one.read_text()) & _SERVERS] == []


def test_web_statuses_are_of_real_errors() -> None:
    """Each code of the table is one that the library raises."""
    text = (WEB / "app.py").read_text()
    table = text.partition("STATUS_OF = {")[2].partition("}")[0]
    named = {line.split('"')[1] for line in table.strip().splitlines()}
    assert len(named) > 10
    assert named <= {getattr(errors, name).code for name in errors.__all__}
