"""What is raised when a server cannot be had."""

import shlex
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ServiceError", "tail"]

_LAST_LINES = 20


class ServiceError(Exception):
    """A server did not come up, or may not be touched; nothing is skipped for it.

    The text has the server's name, what to do or the command that failed, and the end of its log.
    """

    def __init__(
        self, name: str, problem: str, *, command: Sequence[str] = (), log: Path | None = None
    ) -> None:
        self.name = name
        self.log = log
        lines = [f"{name}: {problem}"]
        if command:
            lines.append(f"command: {shlex.join(command)}")
        if log is not None:
            lines.append(f"the end of {log}:")
            lines.append(tail(log))
        super().__init__("\n".join(lines))


def tail(log: Path) -> str:
    """Return the last lines of `log`, indented; say so when it is empty."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    return "\n".join(f"  {line}" for line in lines) or "  (empty)"
