"""Text for people: columns that line up, foreign text that cannot move the cursor."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.cells import cell_len

__all__ = ["ago", "brief", "clean", "columns", "instant", "seconds"]

_ELLIPSIS = "..."


def clean(text: str) -> str:
    """Return `text` on one line, control characters escaped: it comes from models and tools."""
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    return " " if character in "\n\r\t" else ascii(character)[1:-1]


def brief(text: str, width: int = 72) -> str:
    """Return the beginning of `text`, cleaned, at most `width` characters."""
    line = " ".join(clean(text[: 4 * width]).split())
    return line if len(line) <= width else line[: width - len(_ELLIPSIS)] + _ELLIPSIS


def seconds(value: float | None) -> str:
    """Return a length of time with what matters of it; `-` when nobody knows it."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f} s"
    return f"{value:.1f} s" if value >= 10 else f"{value:.3f} s"


def instant(value: datetime) -> str:
    """Return an instant in UTC, to the second."""
    return f"{value:%Y-%m-%d %H:%M:%S}"


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago `value` was, in its largest unit."""
    past = max(0, int((now - value).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if past >= size:
            return f"{past // size} {unit} ago"
    return f"{past} s ago"


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()
) -> Iterator[str]:
    """Yield a table line by line, never cut; the columns in `right` are flush right."""
    table = [[clean(cell) for cell in row] for row in (head, *rows)]
    widths = [max(cell_len(row[place]) for row in table) for place in range(len(head))]
    for row in table:
        cells = []
        for place, cell in enumerate(row):
            gap = " " * (widths[place] - cell_len(cell))
            cells.append(gap + cell if place in right else cell + gap)
        yield "  ".join(cells).rstrip()
