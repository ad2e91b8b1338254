"""What is wrong with a document, and where: a pointer, in a file also line and column (SPEC-4)."""

from typing import NamedTuple

__all__ = ["Issue"]


class Issue(NamedTuple):
    """One thing to fix."""

    pointer: str  # JSON pointer (RFC 6901) of the offending value; "" is the whole document
    message: str
    code: str  # stable, for programs
    value: str | None = None  # the offending value, shortened, secrets redacted
    suggestion: str | None = None  # the nearest valid name
    line: int | None = None  # 1-based; None when there is no file
    column: int | None = None  # 1-based, in characters
    source: str | None = None  # the line itself, secrets redacted, a long one cut around the column
    caret: int | None = None  # 1-based place of the caret in `source`

    def text(self, name: str) -> str:
        """Return the issue for people, with a caret below its line when there is one."""
        where = name if self.line is None else f"{name}:{self.line}:{self.column}"
        pointer = f"{self.pointer}: " if self.pointer else ""
        value = "" if self.value is None else f" (got {self.value})"
        hint = "" if self.suggestion is None else f"; did you mean {self.suggestion!r}?"
        head = _visible(f"{where}: {pointer}{self.message}{value}{hint}")
        if self.source is None or self.caret is None:
            return head
        margin = f"{self.line:5d} | "
        blank = " " * (len(margin) - 2) + "| "
        indent = "".join("\t" if c == "\t" else " " for c in self.source[: self.caret - 1])
        return f"{head}\n{margin}{self.source}\n{blank}{indent}^"


def _visible(text: str) -> str:
    r"""Return `text` with what a terminal would obey written as an escape: `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
