"""Runs `psych` as a process of its own, as people and programs do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

__all__ = ["Ran", "psych", "run_python"]


class Ran(NamedTuple):
    """What a process said and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> JsonValue:
        """Return what it printed as JSON."""
        value: JsonValue = json.loads(self.out)
        return value


def psych(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ran:
    """Run the command line."""
    return run_python("-m", "psych_runtime.cli", *arguments, cwd=cwd, **environment)


def run_python(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ran:
    """Run Python without the variables that would make the model a real one."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENAI_API_KEY", "PSYCH_BASE_URL", "FORCE_COLOR", "PYTHONIOENCODING")
    }
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**kept, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
