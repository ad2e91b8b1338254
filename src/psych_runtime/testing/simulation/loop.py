"""A loop with its own time and its own chance: the same seed gives the same schedule.

Time moves only when nothing is ready. Each step runs one ready callback, picked by a seeded
generator. A callback belongs to the process that its context names (`PROCESS`): a process can be
killed (nothing of it runs again, no `finally`) or paused (it goes on later, unaware). There is no
IO and no thread.
"""

import asyncio
import heapq
import itertools
import math
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import Context, ContextVar
from functools import partial
from random import Random
from typing import Final, NoReturn, override

__all__ = ["PROCESS", "Deadlock", "SimulatedLoop", "StepLimit"]

PROCESS: Final[ContextVar[str]] = ContextVar("PROCESS", default="")
"""The simulated process that runs; "" is nobody's: the network, and whoever looks on."""

_EARLY_TIMER: Final = 0.02  # how often a timer wins against ready work, as on a slow machine
_EARLY_SECONDS: Final = 0.1  # which is not so slow that a day passes
_EPSILON_SECONDS: Final = 1e-9

_NOT_SIMULATED: Final = {
    "run_in_executor": "threads",
    **dict.fromkeys(("subprocess_exec", "subprocess_shell"), "processes"),
    **dict.fromkeys(
        (
            "add_reader",
            "add_writer",
            "create_connection",
            "create_datagram_endpoint",
            "create_server",
            "create_unix_connection",
            "create_unix_server",
            "getaddrinfo",
            "sock_accept",
            "sock_connect",
            "sock_recv",
            "sock_sendall",
        ),
        "sockets",
    ),
}
"""Methods of a loop that reach out of the simulation, and what for."""

type _Timer = tuple[float, int, asyncio.TimerHandle]


class Deadlock(RuntimeError):
    """Nothing is ready and nothing will be: whoever waits would wait for ever."""


class StepLimit(RuntimeError):
    """The simulation has taken more steps than it may: something spins."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks of simulated processes, one at a time, in virtual time.

    Args:
        random: picks which callback runs next.
        max_steps: callbacks that may run at all; StepLimit above.
    """

    def __init__(self, random: Random, *, max_steps: int) -> None:
        self._runs = False  # asked by what comes next
        super().__init__()
        self.refused: list[str] = []  # what callbacks asked for that is not simulated
        for name, what in _NOT_SIMULATED.items():
            setattr(self, name, partial(self._refuse, what))
        self.steps = 0
        self.fingerprint = 0  # of the schedule: two runs of one seed have the same
        self._random = random.random
        self._max_steps = max_steps
        self._now = 0.0
        self._numbers = itertools.count()
        self._queue: list[asyncio.Handle] = []
        self._timers: list[_Timer] = []
        self._paused: dict[str, float] = {}
        self._waiting: dict[str, list[asyncio.Handle]] = {}  # of paused processes
        self._dead: set[str] = set()
        self._buried: list[asyncio.Handle] = []  # kept: a collected task would run its `finally`
        self._ends = False

    # what processes can suffer

    def kill(self, process: str) -> None:
        """Let nothing of `process` run again, as after kill -9."""
        self._dead.add(process)
        self._buried += self._waiting.pop(process, [])

    def is_dead(self, process: str) -> bool:
        """Tell whether a process was killed."""
        return process in self._dead

    def pause(self, process: str, seconds: float) -> None:
        """Let `process` stand still for `seconds`, longer if it is paused for longer already."""
        until = self._now + seconds
        self._paused[process] = max(self._paused.get(process, 0.0), until)
        self.call_at(until, self._resume, process, context=Context())

    def is_paused(self, process: str) -> bool:
        """Tell whether a process stands still."""
        return self._paused.get(process, 0.0) > self._now

    def _resume(self, process: str) -> None:
        if not self.is_paused(process):
            self._paused.pop(process, None)
            self._queue += self._waiting.pop(process, [])

    def _refuse(self, what: str, *_: object, **__: object) -> NoReturn:
        """Refuse what is not under the simulation's control, and remember it."""
        process = PROCESS.get() or "the scenario"
        self.refused.append(f"{process} uses {what}")
        raise RuntimeError(f"there are no {what} in a simulation: use async functions that sleep")

    # what a loop is

    @override
    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._now

    @override
    def call_soon[*Ts](
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run `callback` in one of the next steps."""
        handle = asyncio.Handle(callback, args, self, context)
        self._queue.append(handle)
        return handle

    @override
    def call_soon_threadsafe[*Ts](
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run `callback` in one of the next steps; there are no other threads."""
        return self.call_soon(callback, *args, context=context)

    @override
    def call_at[*Ts](
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run `callback` when the virtual time has come."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    @override
    def call_later[*Ts](
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run `callback` after virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    @override
    def is_running(self) -> bool:
        """Tell whether somebody runs this loop."""
        return self._runs

    @override
    def stop(self) -> None:
        """Return from `run_forever` after this step."""
        self._ends = True

    @override
    def run_forever(self) -> None:
        """Run steps until stopped. Raises Deadlock, StepLimit."""
        self._runs, self._ends = True, False
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._finalize)
        asyncio._set_running_loop(self)
        try:
            while not self._ends:
                self._step()
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self._runs = False

    def _finalize(self, generator: AsyncGenerator[object, object]) -> None:
        if not self.is_closed():
            self.call_soon(self.create_task, generator.aclose())

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._max_steps:
            raise StepLimit(f"{self.steps - 1} steps at {self._now:.1f} s")
        timers = self._timers
        next_at = timers[0][0] if timers else math.inf
        moves = not self._queue
        if next_at - self._now <= _EARLY_SECONDS and self._random() < _EARLY_TIMER:
            moves = True
        if moves or next_at <= self._now:
            self._advance(moves)
        queue = self._queue
        if not queue:
            if not timers:
                raise Deadlock(
                    f"nothing to run at {self._now:.1f} s: somebody awaits what nobody will set"
                )
            return
        index = int(self._random() * len(queue))
        handle = queue[index]
        last = queue.pop()
        if last is not handle:
            queue[index] = last
        if handle.cancelled() or not self._may_run(handle):
            return
        self.fingerprint = (self.fingerprint * 31 + index + int(self._now * 1e6)) & 0xFFFF_FFFF
        handle._run()

    def _may_run(self, handle: asyncio.Handle) -> bool:
        process = handle.get_context().get(PROCESS, "")
        if not process:
            return True
        if process in self._dead:
            self._buried.append(handle)
            return False
        if process in self._paused and self.is_paused(process):
            self._waiting.setdefault(process, []).append(handle)
            return False
        return True

    def _advance(self, moves: bool) -> None:
        """Make what is due ready; with `moves`, let time go on to the next timer."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if moves and timers:
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now + _EPSILON_SECONDS:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                self._queue.append(handle)

    def discard(self) -> None:
        """End every task where it stands, and close: nothing of it is awaited.

        Their `finally` blocks run here, when the verdict is known and nobody looks any more.
        """
        self.set_exception_handler(_say_nothing)
        for task in asyncio.all_tasks(self):
            coroutine = task.get_coro()
            if coroutine is not None:
                with suppress(Exception, asyncio.CancelledError):
                    coroutine.close()
        self._queue.clear()
        self._timers.clear()
        self._waiting.clear()
        self._buried.clear()
        self.close()


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Let what a discarded task complains of go unheard."""
