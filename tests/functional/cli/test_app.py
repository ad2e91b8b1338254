"""The command line as a whole: exit codes, help, no traceback (CLI-1)."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process
from tests.functional.cli.runner import run_python
from tests.functional.cli.stored import killed, stored

HEAVY = (
    *("asyncio", "httpx2", "jsonschema", "psych_runtime.runtime.worker", "psych_schema.record"),
    *("psych_schema.view", "pydantic", "rich", "sqlalchemy", "sqlite3", "yaml"),
)


def test_cli_1_the_command_is_installed() -> None:
    """`psych` is the entry point of the package, and `python -m psych_runtime.cli` the same."""
    (command,) = entry_points(group="console_scripts", name="psych")
    assert command.value == "psych_runtime.cli:main"
    script = Path(sys.executable).with_name("psych")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"psych {version('psych-runtime')}\n"
    assert psych_process("--version").out == done.stdout


def test_cli_1_help_names_every_command_and_the_exit_codes() -> None:
    """Without colours when nobody looks."""
    ran = psych_process("--help")
    assert ran.code == 0
    for word in (
        "new",
        "validate",
        "schema",
        "hash",
        "runs",
        "verify",
        "doctor",
        "0 all is well",
        "2 wrong usage",
    ):
        assert word in " ".join(ran.out.split())
    assert "\x1b" not in ran.out
    assert psych_process("validate", "--help").code == 0


def test_cli_1_wrong_usage_is_2() -> None:
    """An unknown command, an unknown option, a missing argument."""
    for arguments in (["nonsense"], ["validate"], ["hash", "--nonsense"], ["hash"], ["new"]):
        ran = psych(*arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert "Usage" in ran.err


def test_cli_1_errors_are_text_with_a_code(tmp_path: Path) -> None:
    """Never a traceback; on standard error."""
    ran = psych_process("hash", tmp_path / "missing.yaml")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == (
        f"error: {tmp_path}/missing.yaml: cannot be read: no such file or directory\n"
        "code: invalid_spec\n"
    )


def loaded(*arguments: str | Path) -> list[str]:
    """Run the command line in a process of its own; return what of the heavy it has loaded."""
    code = (
        "import sys\n"
        "from psych_runtime.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code, ended.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    heavy = run_python("-c", code, *arguments).out.splitlines()[-1]
    return [str(name) for name in ast.literal_eval(heavy)]


def test_cli_1_the_version_and_a_hash_load_only_what_they_need(tmp_path: Path) -> None:
    """Start-up is most of their time; a command that reads a store loads what it needs."""
    (tmp_path / "a.yaml").write_text("kind: agent\nname: x\ninstructions: hi\nmodel: {model: m}\n")
    url = stored(tmp_path, killed())

    assert loaded("--version") == []
    assert loaded("hash", tmp_path / "a.yaml") == ["pydantic", "yaml"]
    assert loaded("runs", "--store", url, "--json") == [
        "asyncio",
        "psych_schema.record",
        "psych_schema.view",
        "pydantic",
        "rich",
        "sqlite3",
    ]


def test_cli_1_an_unknown_command_gets_the_nearest_name() -> None:
    """Names are known before their commands are loaded."""
    ran = psych("reprot")
    assert ran.code == 2
    assert "No such command 'reprot'. Did you mean 'report'?" in ran.err


def test_ref_1_checking_a_spec_loads_neither_worker_nor_clients() -> None:
    """The command line reads and checks; it never executes a Run."""
    code = (
        "import sys, psych_runtime.cli.validate, psych_runtime.cli.doctor\n"
        "heavy = ('psych_runtime.runtime.worker', 'httpx2', 'sqlalchemy', 'jsonschema')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert run_python("-c", code).out == "[]\n"
