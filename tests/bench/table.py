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
    yardsticks = dict.fromkeys(line.beside for line in lines if line.beside)
    notes = ["", "beside:"] if yardsticks else []
    for beside in yardsticks:
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
        _times(line.ratio),
        _most(line),
        line.verdict,
        _times(line.ratio_at_best),
        f"{line.spread:.0%}{unsteady}",
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def _most(line: Line) -> str:
    """Return what the line may be at most."""
    bounds = [] if line.bound is None else [f"{line.bound:g}x"]
    limits = [] if line.limit is None else [f"{line.limit:g} {line.unit}".strip()]
    return ", ".join([*bounds, *limits])


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
        "value": _significant(line.value),
        "beside": line.beside or None,
        "yardstick": _significant(line.yardstick_value),
        "ratio": _rounded(line.ratio),
        "ratio_at_best": _rounded(line.ratio_at_best),
        "bound": line.bound,
        "limit": line.limit,
        "verdict": line.verdict or None,
        "spread": round(line.spread, 3),
        "steady": line.is_steady,
        "rounds": len(line.ours),
    }


def _significant(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)
