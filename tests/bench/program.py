"""The program: which parts there are, what was asked for, the table."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import (
    claiming,
    folding,
    idling,
    importing,
    lasting,
    machine,
    reading,
    recovering,
    stepping,
    storing,
    turning,
    waking,
    writing,
)
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.sizes import FULL, QUICK, Sizes
from tests.bench.table import document, table
from tests.services import start_server

__all__ = ["PARTS", "Part", "main"]


class Part(NamedTuple):
    """Some of the lines, and the servers of tests/services that they take."""

    measure: Callable[[Sizes, Guard], Iterable[Line]]
    servers: tuple[str, ...] = ()


def _on_loop(
    measure: Callable[[Sizes, Guard], Coroutine[object, object, Sequence[Line]]], *servers: str
) -> Part:
    return Part(lambda sizes, guard: asyncio.run(measure(sizes, guard)), servers)


_SERVERS: Final = ("postgres", "postgres_new", "mysql", "mariadb", "aws")

PARTS: Final[Mapping[str, Part]] = {
    "import": Part(importing.measure),
    "fold": _on_loop(folding.measure),
    "turns": Part(turning.measure),
    "memory": _on_loop(storing.on_memory),
    "sqlite": _on_loop(storing.on_sqlite),
    "postgresql": _on_loop(storing.on_postgresql, "postgres"),
    "postgresql_18": _on_loop(storing.on_postgresql_new, "postgres_new"),
    "mysql": _on_loop(storing.on_mysql, "mysql"),
    "mariadb": _on_loop(storing.on_mariadb, "mariadb"),
    "dynamodb": _on_loop(storing.on_dynamodb, "aws"),
    "steps": _on_loop(stepping.measure, *_SERVERS),
    "writes": _on_loop(writing.measure, "postgres", "mysql", "mariadb", "aws"),
    "pickup": _on_loop(waking.measure, "postgres"),
    "reader": _on_loop(reading.measure, "postgres"),
    "durability": _on_loop(lasting.measure, "postgres"),
    "recovery": _on_loop(recovering.measure, "postgres", "mysql", "mariadb", "aws"),
    "claim": _on_loop(claiming.measure, "postgres"),
    "idle": _on_loop(idling.measure, "postgres"),
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

    names = given.names or list(PARTS)
    servers = dict.fromkeys(server for name in names for server in PARTS[name].servers)
    facts = {**machine.facts(), **{name: start_server(name).version for name in servers}}
    before, guard = machine.load(), Guard()
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    lines: list[Line] = []
    try:
        for name in names:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            lines += PARTS[name].measure(QUICK if given.quick else FULL, guard)
    finally:  # a part that fails does not take the others' figures along
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
