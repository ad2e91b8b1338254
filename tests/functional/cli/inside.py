"""Runs `psych` in this process: the same command and answers, without a new Python each time."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from psych_runtime.cli import main
from tests.functional.cli.runner import Ran

__all__ = ["psych"]


def psych(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ran:
    """Run the command line."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "OPENAI_API_KEY", "PSYCH_BASE_URL", "PSYCH_STORE"):
            patch.delenv(name, raising=False)
        if cwd is not None:
            patch.chdir(cwd)
        for name, value in environment.items():
            patch.setenv(name, value)
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
    code = ended.value.code
    return Ran(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue())
