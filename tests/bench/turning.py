"""What a turn costs late in a long Run, beside a turn around the twentieth of a fresh one.

Two processes, each with a worker: one is far into its long Run, the other begins a new Run in
each round, and only one of them goes on at a time.
"""

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from time import process_time

from psych_runtime import ModelEvent, ModelRequest
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn
from tests.bench.running import running
from tests.bench.sizes import Sizes
from tests.bench.workload import Model

__all__ = ["measure"]

_EARLY = 10  # the turn at which the early window begins: how a Run starts is behind it
_ROOM = 10  # turns behind the late window


def measure(sizes: Sizes, guard: Guard) -> Iterator[Line]:
    """Yield a line for each length."""
    window = sizes.turn_window
    for id, turns in zip(("turn_late", "turn_very_late"), sizes.long_turns, strict=True):
        places = count(turns - _ROOM - window * (sizes.turn_rounds + 1), window)
        with _process(_EARLY + window + _ROOM) as short, _process(turns) as long:
            _go_to(long, next(places))
            early, late = in_turn(
                guard,
                sizes.turn_rounds,
                partial(_early, short, window),
                partial(_late, long, places, window),
            )
        yield Line(
            id=id,
            title=f"a turn at the end of a {turns:,}-turn Run",
            unit="µs CPU",
            beside="a turn around turn 20 of a fresh Run",
            ours=late,
            yardstick=early,
            bound=1.2,
        )


def _early(process: Connection, window: int) -> float:
    """Return the cost of a turn of a new Run, in µs."""
    _go_to(process, _EARLY)
    seconds = _go_to(process, _EARLY + window)
    _go_to(process, _END)
    return seconds / window * 1e6


def _late(process: Connection, places: Iterator[int], window: int) -> float:
    """Return the cost of one of the next turns of the long Run, in µs."""
    return _go_to(process, next(places)) / window * 1e6


# The processes

_END = 0  # the place behind a Run's last turn


@contextmanager
def _process(turns: int) -> Iterator[Connection]:
    """Start a process whose Runs have so many turns; it ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_serve, args=(its, turns), daemon=True)
    process.start()
    its.close()
    with ours:
        yield ours
        ours.send(None)
    process.join()


def _go_to(process: Connection, turn: int) -> float:
    """Let the process's Run go on until its model is called for `turn`; return the CPU seconds."""
    process.send(turn)
    seconds: float = process.recv()
    return seconds


def _serve(pipe: Connection, turns: int) -> None:
    asyncio.run(_obey(pipe, turns))


async def _obey(pipe: Connection, turns: int) -> None:
    model = _Paced(turns)
    run: asyncio.Task[str] | None = None
    async with running("memory://", model=model, turns=turns) as system:
        while (turn := await asyncio.to_thread(pipe.recv)) is not None:
            run = run or asyncio.create_task(system.one())
            begun = process_time()
            if turn == _END:
                await model.go_on_until(run)
                run = None
            else:
                await model.go_to(turn)
            pipe.send(process_time() - begun)
        if run is not None:
            await model.go_on_until(run)


class _Paced(Model):
    """A model that stops in front of a turn."""

    def __init__(self, turns: int) -> None:
        super().__init__(turns)
        self._turn = 0
        self._arrived = asyncio.Event()
        self._released = asyncio.Event()

    async def go_to(self, turn: int) -> None:
        """Go on and return in front of `turn`."""
        self._turn = turn
        self._arrived.clear()
        self._released.set()
        await self._arrived.wait()

    async def go_on_until(self, run: asyncio.Task[str]) -> None:
        """Go on and return when the Run has settled."""
        self._released.set()
        await run

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Wait in front of the turn, then say what the model says."""
        if len(request.messages) // 2 + 1 == self._turn:
            self._released.clear()
            self._arrived.set()
            await self._released.wait()
        async for event in super().stream(request):
            yield event
