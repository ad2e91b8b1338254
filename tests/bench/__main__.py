"""`python -m tests.bench [--quick] [--json PATH] [names...]`: measure and print the table."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.bench import folding, importing, machine, throughput, turning
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.sizes import FULL, QUICK, Sizes
from tests.bench.table import document, table

PARTS: Mapping[str, Callable[[Sizes, Guard], Iterable[Line]]] = {
    "import": importing.measure,
    "fold": lambda sizes, guard: asyncio.run(folding.measure(sizes, guard)),
    "turns": turning.measure,
    "memory": lambda sizes, guard: asyncio.run(throughput.in_memory_lines(sizes, guard)),
    "sqlite": lambda sizes, guard: asyncio.run(throughput.on_sqlite_lines(sizes, guard)),
}


def main(arguments: list[str]) -> None:
    """Measure what was asked for, print the table, keep the document."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(PARTS)}; all when none")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="keep the figures in a file")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - PARTS.keys()
    if unknown:
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")

    facts, before, guard = machine.facts(), machine.load(), Guard()
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    lines: list[Line] = []
    for name in given.names or PARTS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        lines += PARTS[name](QUICK if given.quick else FULL, guard)
    after = machine.load()
    print(f"load average {before:g} at the start, {after:g} at the end\n")
    print(table(lines))
    print(f"\n{_belief(guard)}")
    if given.json is not None:
        kept = document(lines, machine=facts, loads=(before, after), guard=guard, quick=given.quick)
        given.json.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


def _belief(guard: Guard) -> str:
    """Say whether the machine was quiet enough."""
    if not guard.problem:
        return "The machine was quiet enough to believe every steady line."
    return (
        f"TOO BUSY TO BELIEVE: {guard.problem}. Measure again on a quiet machine; until then "
        "only steady ratios say something, since both sides of a ratio had the same weather."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
