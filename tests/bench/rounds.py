"""Rounds in turn: A, B, A, B ..., so that whatever the machine does, it does to both."""

import gc
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.bench.guard import Guard

__all__ = ["Cost", "cost_of", "in_turn", "in_turn_async"]


class Cost(NamedTuple):
    """What a piece of work took."""

    cpu_seconds: float
    wall_seconds: float


def cost_of(act: Callable[[], object]) -> Cost:
    """Do `act` once and return what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def in_turn[T](guard: Guard, rounds: int, *measures: Callable[[], T]) -> list[list[T]]:
    """Return what each measure gave in each round; the first round is a rehearsal."""
    found: list[list[T]] = [[] for _ in measures]
    for turn in range(rounds + 1):
        guard.look()
        for results, measure in zip(found, measures, strict=True):
            gc.collect()
            result = measure()
            if turn:
                results.append(result)
    guard.look()
    return found


async def in_turn_async[T](
    guard: Guard, rounds: int, *measures: Callable[[], Awaitable[T]]
) -> list[list[T]]:
    """Do the same with measures that run on this loop."""
    found: list[list[T]] = [[] for _ in measures]
    for turn in range(rounds + 1):
        guard.look()
        for results, measure in zip(found, measures, strict=True):
            gc.collect()
            result = await measure()
            if turn:
                results.append(result)
    guard.look()
    return found
