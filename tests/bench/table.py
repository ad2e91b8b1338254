"""The table that people read, and the document that is kept."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from tests.bench.figures import Line
from tests.bench.guard import Guard

__all__ = ["document", "table"]

_HEAD = ("what", "", "yardstick", "", "ratio", "bound", "", "at best", "spread")


def table(lines: Sequence[Line]) -> str:
    """Return the lines under one another, with what each stands beside below them."""
    rows = [_HEAD, *map(_row, lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    printed = [
        "  ".join(
            [cells[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        ).rstrip()
        for cells in rows
    ]
    printed.insert(1, "-" * max(map(len, printed)))
    notes = ["", "beside:"]
    for beside in dict.fromkeys(line.beside for line in lines):
        titles = ", ".join(line.id for line in lines if line.beside == beside)
        notes.append(f"  {beside}: {titles}")
    return "\n".join([*printed, *notes])


def _row(line: Line) -> tuple[str, ...]:
    unsteady = "" if line.is_steady else " unsteady"
    return (
        f"{line.id}: {line.title}",
        _number(line.value),
        _number(line.yardstick_value),
        line.unit,
        f"{line.ratio:.2f}x",
        "" if line.bound is None else f"{line.bound:g}x",
        line.verdict,
        f"{line.ratio_at_best:.2f}x",
        f"{line.spread:.0%}{unsteady}",
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def document(
    lines: Sequence[Line],
    *,
    machine: Mapping[str, str | int],
    loads: tuple[float, float],
    guard: Guard,
    quick: bool,
) -> dict[str, JsonValue]:
    """Return everything as JSON."""
    return {
        "machine": dict(machine),
        "load_start": loads[0],
        "load_end": loads[1],
        "quick": quick,
        "too_busy": guard.problem or None,
        "lines": [_line(line) for line in lines],
    }


def _line(line: Line) -> dict[str, JsonValue]:
    return {
        "id": line.id,
        "title": line.title,
        "unit": line.unit,
        "value": _rounded(line.value),
        "beside": line.beside,
        "yardstick": _rounded(line.yardstick_value),
        "ratio": round(line.ratio, 3),
        "ratio_at_best": round(line.ratio_at_best, 3),
        "bound": line.bound,
        "verdict": line.verdict or None,
        "spread": round(line.spread, 3),
        "steady": line.is_steady,
        "rounds": len(line.ours),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
