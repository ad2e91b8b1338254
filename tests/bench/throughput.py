"""Whole Runs, from dispatch to settled, in memory and on SQLite, beside the same by hand."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Protocol

from tests.bench.by_hand import ByHand, in_memory
from tests.bench.by_hand_sqlite import Writer
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import Cost, in_turn_async
from tests.bench.running import running
from tests.bench.sizes import Sizes
from tests.bench.workload import Model

__all__ = ["in_memory_lines", "on_sqlite_lines"]


class Runner(Protocol):
    """Who executes Runs."""

    async def many(self, runs: int, *, at_once: int) -> None:
        """Execute so many Runs, `at_once` of them at any moment."""


async def in_memory_lines(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of the in-memory store."""
    by_hand = ByHand(Model(), in_memory({}))
    async with running("memory://") as ours:
        return await _lines("memory", "by hand, records in lists", ours, by_hand, sizes, guard)


async def on_sqlite_lines(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of a SQLite file."""
    with TemporaryDirectory(prefix="psych-bench-") as folder:
        writer = Writer(Path(folder) / "by_hand.db")
        by_hand = ByHand(Model(), writer.keep)
        try:
            async with running(f"sqlite:///{folder}/ours.db") as ours:
                beside = "by hand, as many transactions"
                return await _lines("sqlite", beside, ours, by_hand, sizes, guard)
        finally:
            await asyncio.to_thread(writer.close)


async def _lines(
    id: str, beside: str, ours: Runner, theirs: Runner, sizes: Sizes, guard: Guard
) -> list[Line]:
    one = [partial(_cost, runner, 1, 1) for runner in (theirs, ours)]
    hand, we = await in_turn_async(guard, 3 * sizes.run_rounds, *one)
    where = {"memory": "in memory", "sqlite": "on SQLite"}[id]
    lines = [
        Line(
            id=f"{id}_one",
            title=f"one Run {where}",
            unit="ms",
            beside=beside,
            ours=[cost.wall_seconds * 1e3 for cost in we],
            yardstick=[cost.wall_seconds * 1e3 for cost in hand],
        )
    ]
    for at_once in sizes.concurrencies:
        runs = sizes.runs if at_once > 1 else max(1, sizes.runs // 8)
        many = [partial(_cost, runner, runs, at_once) for runner in (theirs, ours)]
        hand, we = await in_turn_async(guard, sizes.run_rounds, *many)
        lines += [
            Line(
                id=f"{id}_rate_{at_once}",
                title=f"Runs {where}, {at_once} at once",
                unit="runs/s",
                beside=beside,
                ours=[runs / cost.wall_seconds for cost in we],
                yardstick=[runs / cost.wall_seconds for cost in hand],
                rate=True,
            ),
            Line(
                id=f"{id}_cpu_{at_once}",
                title=f"a Run {where}, {at_once} at once",
                unit="ms CPU",
                beside=beside,
                ours=[cost.cpu_seconds / runs * 1e3 for cost in we],
                yardstick=[cost.cpu_seconds / runs * 1e3 for cost in hand],
            ),
        ]
    return lines


async def _cost(runner: Runner, runs: int, at_once: int) -> Cost:
    wall, cpu = perf_counter(), process_time()
    await runner.many(runs, at_once=at_once)
    return Cost(process_time() - cpu, perf_counter() - wall)
