"""The worker's other loop: renewals, deaths, deadlines (R-5, R-6, R-21).

It runs on a thread of its own with a store handle of its own, so that a tool that blocks the
executor stops neither. It touches an attempt only by what it posts to the executor, and by
`revoked`, which the executor reads right before every effect.
"""

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Final, Protocol

from psych_runtime._system import System
from psych_runtime.errors import StoreError
from psych_runtime.ports.store import Seen, Store
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.lease import Lease
from psych_runtime.runtime.takeover import End, take_and_settle
from psych_schema.store import RunRow

__all__ = ["Executor", "Supervisor"]

_log: Final = logging.getLogger("psych_runtime")

_LONGEST_BEAT_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.5  # for the dead, and for overdue Runs
_HUNG_SECONDS: Final = 1.0  # of a heartbeat that stands still
_ASKED_SECONDS: Final = 2.0  # that an executor has to stop a Run by itself
_BATCH: Final = 8

_TIMED_OUT: Final = End("timed_out", "timed_out")


class Executor(Protocol):
    """The worker as its supervisor sees it; safe to read from another thread."""

    lease: Lease
    thread_id: int

    def holdings(self) -> Mapping[str, Attempt]:
        """Return a snapshot of the attempts in hand."""

    def in_hand(self) -> frozenset[str]:
        """Return every Run that is held or being claimed."""

    def alive_at(self) -> float:
        """Return when the executor's loop last turned, by the monotonic clock."""

    def post(self, act: Callable[[], None]) -> None:
        """Run `act` on the executor's loop."""

    def nudge(self) -> None:
        """Look for Runs now: somebody's have become free. On the executor's loop."""

    def died(self, worker: str) -> None:
        """The store says that the worker is dead. On the executor's loop."""

    def notice(self, seen: Mapping[str, Seen]) -> None:
        """The store says where held Runs stand. On the executor's loop."""

    def adopt(self, worker: str, header: RunRow) -> None:
        """The store says that a Run is ours that nobody here knows. On the executor's loop."""


class Supervisor:
    """Keeps a worker alive and judges what nobody holds."""

    def __init__(self, executor: Executor, store: Store, system: System) -> None:
        self._executor = executor
        self._store = store
        self._system = system
        self._end = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._must_stop: dict[str, float] = {}  # since when the executor was asked
        self._unsettled: dict[str, int] = {}  # heads at which a Run cannot be settled here
        self._warned = False

    def stop(self) -> None:
        """End soon; safe from another thread."""
        if self._loop is None:
            self._end.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)

    async def run(self) -> None:
        """Supervise until stopped."""
        self._loop = asyncio.get_running_loop()
        parts = (
            self._beats(),
            self._deaths(),
            self._sweeps(),
            self._overdue(),
            self._strays(),
            self._stopped(),
        )
        tasks = [asyncio.get_running_loop().create_task(part) for part in parts]
        try:
            # a part that waits for a store that is away does not hold up the end
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (*tasks, *self._tasks):
                task.cancel()
            await asyncio.gather(*tasks, *self._tasks, return_exceptions=True)

    async def _stopped(self) -> None:
        await self._end.wait()

    async def _pause(self, seconds: float) -> None:
        """Sleep, until stopped at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._end.wait()
        except TimeoutError:
            return

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._reap)

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("supervisor: %s", error, exc_info=error)

    # renewals

    async def _beats(self) -> None:
        """Send one each beat, never waiting for the one before: answers come in any order."""
        beat = min(_LONGEST_BEAT_SECONDS, self._executor.lease.seconds / 5)
        while not self._end.is_set():
            stands = self._system.monotonic() - self._executor.alive_at()
            self._watch_executor(stands)
            worker = self._executor.lease.worker
            if worker is not None and stands < self._executor.lease.seconds:
                self._spawn(self._beat(worker))
            await self._pause(beat)

    async def _beat(self, worker: str) -> None:
        held = tuple(self._executor.holdings())
        sent = self._system.monotonic()
        try:
            renewed = await self._store.renew(
                worker, lease_seconds=self._executor.lease.seconds, run_ids=held
            )
        except StoreError:
            return
        if renewed is None:
            self._executor.post(lambda: self._executor.died(worker))
            return
        self._executor.lease.renewed(worker, now=renewed.now, sent=sent)
        self._executor.post(lambda: self._executor.notice(renewed.seen))
        for run_id, seen in renewed.seen.items():
            if seen.abort or seen.overdue:
                self._must_stop.setdefault(run_id, self._system.monotonic())
        for run_id in [one for one in self._must_stop if one not in held]:
            del self._must_stop[run_id]

    def _watch_executor(self, stands_seconds: float) -> None:
        """Say once which tool blocks the loop, and where (R-21)."""
        if stands_seconds < _HUNG_SECONDS:
            self._warned = False
            return
        if self._warned:
            return
        self._warned = True
        running = sorted(
            {
                tool.name
                for one in self._executor.holdings().values()
                for tool in list(one.executing.values())
            }
        )
        level = logging.WARNING if running else logging.INFO
        if not _log.isEnabledFor(level):
            return
        frame = sys._current_frames().get(self._executor.thread_id)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "unknown\n"
        _log.log(
            level,
            "the executor's loop has stood still for %.1f s: a tool blocks it, or the process was "
            "stopped; tools running: %s\n%s",
            stands_seconds,
            ", ".join(running) or "none",
            stack,
        )

    # deaths

    async def _deaths(self) -> None:
        while not self._end.is_set():
            await self._pause(min(_LOOK_SECONDS, self._executor.lease.seconds / 4))
            worker = self._executor.lease.worker
            if worker is None or self._end.is_set():
                continue
            try:
                dead = await self._store.bury(worker)
            except StoreError:
                continue
            if dead:
                self._executor.post(self._executor.nudge)

    async def _sweeps(self) -> None:
        while not self._end.is_set():
            await self._pause(self._executor.lease.seconds)
            try:
                await self._store.sweep()
            except StoreError:
                continue

    # what nobody executes, and what the executor does not stop

    async def _overdue(self) -> None:
        while not self._end.is_set():
            await self._pause(_LOOK_SECONDS)
            worker = self._executor.lease.worker
            if worker is None:
                continue
            known = self._unsettled
            try:
                headers = await self._store.overdue(_BATCH + len(known))
            except StoreError:
                continue
            self._unsettled = {h.run_id: h.head for h in headers if known.get(h.run_id) == h.head}
            for header in headers:
                if header.run_id in self._unsettled:
                    continue
                if not await self._settle(header, header.epoch, worker):
                    self._unsettled[header.run_id] = header.head
            await self._take_hung()

    async def _take_hung(self) -> None:
        """Take own Runs that a hung executor was asked to stop and did not."""
        now = self._system.monotonic()
        for run_id, since in list(self._must_stop.items()):
            attempt = self._executor.holdings().get(run_id)
            hung = now - self._executor.alive_at() > _HUNG_SECONDS
            worker = self._executor.lease.worker  # this one holds it: a hung executor has no other
            if attempt is None or worker is None:
                continue
            if now - since < _ASKED_SECONDS or not hung:
                continue
            attempt.revoked = True
            del self._must_stop[run_id]
            await self._settle(attempt.header, attempt.epoch, worker)

    async def _settle(self, header: RunRow, epoch: int, worker: str) -> bool:
        """Settle one Run; what is wrong with it must not end the supervision of the others."""
        judged = header.model_copy(update={"epoch": epoch})
        try:
            return await take_and_settle(
                self._store,
                judged,
                _TIMED_OUT,
                worker=worker,
                crashes=header.crashes,
                system=self._system,
            )
        except Exception:
            _log.exception("run %s cannot be settled", header.run_id)
            return False

    # Runs that are ours in the store and unknown here

    async def _strays(self) -> None:
        """Once per lease: unknown before and after asking, and still ours: claim it anew."""
        while not self._end.is_set():
            await self._pause(self._executor.lease.seconds)
            worker = self._executor.lease.worker
            if worker is None or self._end.is_set():
                continue
            known = self._executor.in_hand()
            try:
                headers = await self._store.held_by(worker)
            except StoreError:
                continue
            for header in headers:
                if header.run_id not in known:
                    self._adopt(worker, header)

    def _adopt(self, worker: str, header: RunRow) -> None:
        self._executor.post(lambda: self._executor.adopt(worker, header))
