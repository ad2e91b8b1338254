"""The import rules of pyproject.toml find a planted breach of each."""

import re
import subprocess
import sys
from pathlib import Path

from tests.unit.repository.files import text

CLEAN = {
    "psych_schema/__init__.py": "",
    "psych_schema/tables.py": "import sqlalchemy",
    "codegen/__init__.py": "",
    "psych_runtime/__init__.py": "",
    "psych_runtime/_system.py": "import uuid",
    "psych_runtime/errors.py": "import psych_schema",
    "psych_runtime/ports/__init__.py": "from psych_runtime import errors",
    "psych_runtime/core/__init__.py": "from psych_runtime import ports",
    "psych_runtime/views/__init__.py": "from psych_runtime import core",
    "psych_runtime/egress/__init__.py": "import httpx2",
    "psych_runtime/model/__init__.py": "from psych_runtime import egress",
    "psych_runtime/store/__init__.py": "from psych_runtime import core",
    "psych_runtime/store/sql/__init__.py": "",
    "psych_runtime/store/sql/driver.py": "import asyncpg\nimport aiomysql\nimport pymysql",
    "psych_runtime/store/dynamodb/__init__.py": "",
    "psych_runtime/store/dynamodb/client.py": "import aioboto3\nimport botocore",
    "psych_runtime/store/sql_log.py": "import sqlalchemy\nfrom psych_schema import tables",
    "psych_runtime/blob/__init__.py": "",
    "psych_runtime/blob/s3.py": "import aioboto3",
    "psych_runtime/tools/__init__.py": "from psych_runtime import egress",
    "psych_runtime/runtime/__init__.py": "from psych_runtime import model, store, tools, views",
    "psych_runtime/runtime/worker.py": "from psych_runtime import runtime",
    "psych_runtime/api.py": "from psych_runtime import store, views",
    "psych_runtime/_session.py": (
        "from psych_runtime import api\nfrom psych_runtime.runtime import worker"
    ),
    "psych_runtime/cli/__init__.py": "from psych_runtime import api",
}

PLANTED = {
    "psych_schema/__init__.py": "import psych_runtime.errors",
    "psych_runtime/errors.py": "import psych_schema\nfrom psych_runtime import _system",
    "psych_runtime/core/__init__.py": "from psych_runtime import store",
    "psych_runtime/model/__init__.py": "from psych_runtime import views\nimport httpx2",
    "psych_runtime/store/__init__.py": "from psych_runtime import egress",
    "psych_runtime/tools/__init__.py": (
        "from psych_runtime import store\nimport sqlalchemy\nimport asyncpg\nimport botocore"
    ),
    "psych_runtime/cli/__init__.py": "from psych_runtime import _session",
}


def lint(folder: Path, files: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Run import-linter with our rules over `files`; give its exit code and each verdict."""
    for path, source in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source, encoding="utf-8")
    (folder / "pyproject.toml").write_text(text("pyproject.toml"), encoding="utf-8")
    program = "from importlinter.cli import lint_imports_command as lint; lint()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=folder,
        env={"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))


def names() -> set[str]:
    """Return the name of each rule."""
    section = text("pyproject.toml").partition("[tool.importlinter]")[2]
    return set(re.findall(r'^name = "(.+)"$', section, re.MULTILINE))


def test_imports_of_the_design_are_kept(tmp_path: Path) -> None:
    """What architecture allows passes, also while packages are missing."""
    code, verdicts = lint(tmp_path, CLEAN)
    assert verdicts == dict.fromkeys(names(), "KEPT")
    assert code == 0


def test_imports_each_rule_finds_its_breach(tmp_path: Path) -> None:
    """One planted import for each rule."""
    code, verdicts = lint(tmp_path, CLEAN | PLANTED)
    assert verdicts == dict.fromkeys(names(), "BROKEN")
    assert code == 1
