"""The worker: claims Runs it has slots for, executes them, lets them go in order (R-15, R-21)."""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from typing import Final

from psych_runtime._version import __version__
from psych_runtime.core.models import altered
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import CapReached, Committed
from psych_runtime.ports.store import Admit, Seen, Store
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.choosing import Chooser, Pick, is_risky
from psych_runtime.runtime.claiming import Log, claim_each
from psych_runtime.runtime.commit import FIRST_DELAY_SECONDS, longer
from psych_runtime.runtime.execution import Known, execute
from psych_runtime.runtime.flusher import Flusher
from psych_runtime.runtime.host import Host
from psych_runtime.runtime.lease import Lease
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.signals import Lost
from psych_runtime.runtime.supervisor import Supervisor
from psych_runtime.runtime.takeover import End, take_and_settle
from psych_runtime.tools.code import CodeExecutor
from psych_schema.spec import AgentSpec
from psych_schema.store import RunRow

__all__ = ["Worker"]

_log: Final = logging.getLogger("psych_runtime")

_HEARTBEAT_SECONDS: Final = 0.2
_HANDING_OVER_SECONDS: Final = 5.0  # for what is cut to end, and to be written
_WINDOW: Final = 64  # tenants of one look: where it finds so many Runs, there may be more
_HEARING_SECONDS: Final = 3600.0
_EXHAUSTED: Final = End("failed", "attempts_exhausted")


class Worker:
    """Executes Runs of a store until it is stopped; any number of them share a store.

    Args:
        runtime: store, models, tools.
        concurrency: Runs held at once, at least 1.
        lease_seconds: how long the store believes this worker alive without a word.
        max_attempts: attempts in a row that may die or fail before the Run fails.
        grace_seconds: what `stop` gives running calls.
        poll_seconds: how often an idle worker looks for Runs that nobody told it of: those that
            other processes admit on stores without messages, and those of a parked worker.
        threads: False where there are none: the supervisor is a task then, and a tool that
            blocks the loop stops renewals, too.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        concurrency: int = 64,
        lease_seconds: float = 6.0,
        max_attempts: int = 10,
        grace_seconds: float = 30.0,
        poll_seconds: float = 0.2,
        threads: bool = sys.platform != "emscripten",
    ) -> None:
        self.runtime = runtime
        self.lease = Lease(runtime.system, seconds=lease_seconds)
        self.thread_id = threading.get_ident()
        self._concurrency = concurrency
        self._grace_seconds = grace_seconds
        self._poll_seconds = poll_seconds
        self._threads = threads
        self._held: dict[str, Attempt] = {}
        self._claiming: set[str] = set()
        self._broken: set[str] = set()  # Runs whose last attempt here died of a bug
        self._chooser = Chooser(runtime, max_attempts=max_attempts)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event = asyncio.Event()
        self._look = True  # Runs may wait that nobody has offered
        self._capped = False  # a cap may have kept some back
        self._offered: list[Admit] = []  # by this process, since the last look
        self._alive_at = 0.0
        self._after_tenant = chr(33 + int(90 * runtime.system.random()))  # each elsewhere
        self._context = runtime.new_context(None)
        pool = ThreadPoolExecutor(concurrency, "psych-tool") if threads else None
        self._pool = pool
        self._host = Host(
            runtime=runtime,
            lease=self.lease,
            flushes=Flusher(runtime.store, self._spawn, self._context),
            tools=CodeExecutor(pool, max_bytes=runtime.max_result_bytes),
            spawn=self._spawn,
            max_attempts=max_attempts,
        )

    # what the consumer calls

    async def run(self) -> None:
        """Execute Runs until `stop`; then let them go and return.

        Cancelling is a `stop` without grace. Raises what makes the store unusable.
        """
        self._loop = asyncio.get_running_loop()
        self.thread_id = threading.get_ident()
        self._beat()
        try:
            await self._enlist()
        except BaseException:
            self._loop = None  # the heart stops
            raise
        twin = self.runtime.store.twin()
        supervisor = Supervisor(self, twin, self.runtime.system)
        finished = self._supervise(supervisor, twin)
        try:
            await self._claim_until_stopped()
            await self._drain()
        except asyncio.CancelledError:
            self._host.grace_over = True
            self.stop()
            await asyncio.shield(self._drain())
            raise
        finally:
            for attempt in list(self._held.values()):
                self._lose(attempt, "the worker ended")
            supervisor.stop()
            self._loop = None
            await asyncio.shield(finished)
            await self._finish_tasks()
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Stop claiming and let every Run go, within the grace time; call it on the loop."""
        self._host.draining = True
        self._wake.set()
        for attempt in list(self._held.values()):
            attempt.kick()

    def nudge(self) -> None:
        """Look for Runs now, whatever is known of them."""
        self._look_now()

    def _look_now(self) -> None:
        self._look = True
        self._wake.set()

    # what the supervisor reads and posts

    def holdings(self) -> Mapping[str, Attempt]:
        """Return a snapshot of the attempts in hand."""
        return dict(self._held)

    def in_hand(self) -> frozenset[str]:
        """Return every Run that is held or being claimed."""
        return frozenset(self._held) | frozenset(self._claiming)

    def alive_at(self) -> float:
        """Return when the loop last turned, by the monotonic clock."""
        return self._alive_at

    def post(self, act: Callable[[], None]) -> None:
        """Run `act` on the executor's loop; nothing once the worker has ended."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(act, context=self._context)

    def died(self, worker: str) -> None:
        """Discard everything and come back under a new id (R-5)."""
        if self.lease.worker != worker:
            return
        self.lease.lost()
        for attempt in list(self._held.values()):
            self._lose(attempt, "the worker was declared dead")
        self._begin(self._enlist())

    def notice(self, seen: Mapping[str, Seen]) -> None:
        """Compare what the store says of held Runs with what their attempts know."""
        for run_id, one in seen.items():
            attempt = self._held.get(run_id)
            if attempt is not None and attempt.begun:
                self._compare(attempt, one)
        if self._look:  # it could not be made when it was due: the store answers now
            self._wake.set()

    def _compare(self, attempt: Attempt, seen: Seen) -> None:
        if seen.epoch > attempt.epoch:
            self._lose(attempt, "another attempt took the run")
        elif seen.epoch == attempt.epoch:
            if seen.overdue:
                attempt.pass_deadline()
            journal = attempt.journal
            if seen.head > journal.position.seq and not journal.busy:  # else it hears by itself
                journal.nudge()

    def adopt(self, worker: str, header: RunRow) -> None:
        """Claim anew a Run of ours that nobody here knows, never under the epoch found.

        It counts as a crash when it is unknown because its attempt died of a bug (R-7).
        """
        if worker != self.lease.worker or header.run_id in self.in_hand():
            return
        crashes = header.crashes + (header.run_id in self._broken)
        self._broken.discard(header.run_id)
        if crashes >= self._host.max_attempts:
            self._begin(self._exhaust(Pick(header, crashes), worker))
        else:
            self._begin(self._reclaim(Pick(header, crashes), worker))

    # claiming

    async def _claim_until_stopped(self) -> None:
        hearing = self._spawn(self._hear())
        try:
            while not self._host.draining:
                self._wake.clear()
                again = False
                try:
                    again = await self._claim()
                except (StoreUnavailable, Lost) as error:
                    _log.debug("no claims: %s", error)
                if not again and not self._host.draining:
                    await self._idle(self._poll_seconds)
        finally:
            hearing.cancel()

    async def _hear(self) -> None:
        """Hear of Runs that have come; polls find those that nobody tells of."""
        seen = 0
        while True:
            arrival = await self.runtime.store.arrival(seen, _HEARING_SECONDS)
            if arrival.seen == seen:
                continue
            seen = arrival.seen
            if arrival.admitted is None:
                self._look = True
            else:
                self._offered += arrival.admitted
            self._wake.set()

    async def _idle(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            self._look = True

    async def _claim(self) -> bool:
        """Claim what there are slots for; False: there is time to idle, until somebody wakes."""
        free = self._concurrency - len(self._held) - len(self._claiming)
        worker = self.lease.worker
        offered, self._offered = self._offered, []
        if free <= 0 or worker is None or not self.lease.fresh():
            self._look = True
            return False
        if self._look or len(offered) > free:
            headers = await self._find(free)
            logs: dict[str, Log] = {}
        else:  # nothing else waits, as far as is known: these need not be looked for
            headers = [self._header_of(one) for one in offered]
            logs = {one.run_id: [sealed.row for sealed in one.records] for one in offered}
        if not headers:
            return False
        chosen = await self._chooser.choose(headers, self._held.values())
        for one in chosen.exhausted:
            self._begin(self._exhaust(one, worker))
        self._look = self._look or chosen.learned > 0
        moved = await self._claim_each(chosen.picked, worker, logs)
        return chosen.learned > 0 or (moved and self._look)

    async def _find(self, free: int) -> Sequence[RunRow]:
        """Look for claimable Runs; whoever wants a look meanwhile gets another one."""
        sent = self.runtime.system.monotonic()
        self._look = False
        try:
            found = await self.runtime.store.ready(
                free,
                after_tenant=self._after_tenant,
                exclude=self._chooser.exclude(self.in_hand(), self._held.values()),
            )
        except StoreUnavailable:
            self._look = True
            raise
        self.lease.observe(found.now, sent)
        self._capped = found.capped
        self._look = self._look or len(found.headers) >= min(free, _WINDOW)
        if found.headers:
            self._after_tenant = found.headers[-1].tenant
        return found.headers

    def _header_of(self, admit: Admit) -> RunRow:
        """Return the header of a Run that has just been admitted here."""
        if admit.deadline_seconds is None:
            return admit.header
        deadline = self.lease.store_now() + timedelta(seconds=admit.deadline_seconds)
        return altered(admit.header, {"deadline_at": deadline})

    async def _claim_each(
        self, picked: Sequence[Pick], worker: str, logs: Mapping[str, Log]
    ) -> bool:
        """Take Runs and start them.

        Tell whether any is not ready any more: one that its tenant's cap kept out still is.
        """
        if not picked or self.lease.worker != worker:
            return False
        ids = {one.header.run_id for one in picked}
        self._claiming |= ids
        try:
            found = await claim_each(
                self.runtime.store,
                picked,
                worker=worker,
                system=self.runtime.system,
                give_up=lambda: self.lease.worker != worker or self._host.draining,
                logs=logs,
            )
            for one in found:
                if isinstance(one.answer, Committed) and self.lease.worker == worker:
                    await self._start(one.pick, one.known)
        except Lost:
            return False
        finally:
            self._claiming -= ids
        self._capped = self._capped or any(isinstance(one.answer, CapReached) for one in found)
        return not all(isinstance(one.answer, CapReached) for one in found)

    async def _reclaim(self, one: Pick, worker: str) -> None:
        await self._claim_each([one], worker, {})

    async def _start(self, one: Pick, known: Known | None) -> None:
        header, crashes = one
        spec = await self._chooser.spec(header)
        if spec is None:
            return  # the supervisor finds it as a stray
        header = altered(header, {"crashes": crashes})
        attempt = Attempt(self._host, header, epoch=header.epoch + 1)
        attempt.watch_deadline()
        self._held[header.run_id] = attempt
        attempt.task = self._spawn(self._execute(attempt, spec, known))

    async def _execute(self, attempt: Attempt, spec: AgentSpec, known: Known | None) -> None:
        try:
            await execute(attempt, spec, known)
        finally:
            attempt.end()
            if self._held.get(attempt.run_id) is attempt:
                del self._held[attempt.run_id]
            if attempt.broken:
                self._broken.add(attempt.run_id)
            if attempt.left_alone:
                self._chooser.leave_alone(attempt.run_id)
            self._refill(attempt)

    def _refill(self, attempt: Attempt) -> None:
        """Look for Runs at once where some may have waited for what this one held.

        And once it can be claimed itself, if that is a matter of time.
        """
        if self._look or self._capped or is_risky(attempt.header):
            self._look_now()
        if attempt.parked_seconds is not None and self._loop is not None:
            self._loop.call_later(attempt.parked_seconds, self._look_now)

    async def _exhaust(self, one: Pick, worker: str) -> None:
        """Fail a Run whose attempts keep dying (R-7)."""
        header, crashes = one
        self._claiming.add(header.run_id)
        try:
            await take_and_settle(
                self.runtime.store,
                header,
                _EXHAUSTED,
                worker=worker,
                crashes=crashes,
                system=self.runtime.system,
            )
        finally:
            self._claiming.discard(header.run_id)

    # being alive

    async def _enlist(self) -> None:
        """Get a worker id whose row exists; as long as it takes."""
        delay = FIRST_DELAY_SECONDS
        while not self._host.draining:
            worker = self.runtime.system.new_id("wrk")
            sent = self.runtime.system.monotonic()
            try:
                now = await self.runtime.store.enlist(
                    worker,
                    lease_seconds=self.lease.seconds,
                    build=__version__,
                    tools=sorted(self.runtime.registry.identities()),
                )
            except StoreUnavailable as error:
                _log.warning("cannot enlist: %s", error)
                await asyncio.sleep(delay)
                delay = longer(delay)
                continue
            self.lease.enlisted(worker, now=now, sent=sent)
            self._look_now()
            return

    def _beat(self) -> None:
        """Show that the loop turns."""
        self._alive_at = self.runtime.system.monotonic()
        if self._loop is not None:
            self._loop.call_later(_HEARTBEAT_SECONDS, self._beat)

    def _supervise(self, supervisor: Supervisor, twin: Store) -> asyncio.Future[None]:
        """Start the supervisor; the future ends with it, and so does its handle `twin`."""

        async def work() -> None:
            try:
                await supervisor.run()
            finally:
                await twin.close()

        if not self._threads:
            return self._spawn(work())
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[None] = loop.create_future()

        def supervise() -> None:
            try:
                asyncio.run(work())
            except Exception:  # without it nothing renews: the worker ends in order
                _log.exception("the supervisor failed; the worker stops")
                self.post(self.stop)
            finally:
                with suppress(RuntimeError):  # the loop has been closed: nobody waits
                    loop.call_soon_threadsafe(end)

        def end() -> None:
            thread.join()  # it has nothing left to do
            finished.set_result(None)

        thread = threading.Thread(target=supervise, name="psych-supervisor", daemon=True)
        thread.start()
        return finished

    def _lose(self, attempt: Attempt, why: str) -> None:
        attempt.revoked = True
        if attempt.begun:
            attempt.journal.lose(Lost(why))
        if attempt.task is not None:
            attempt.task.cancel()
        if self._held.get(attempt.run_id) is attempt:
            del self._held[attempt.run_id]

    # ending

    async def _drain(self) -> None:
        """Wait for the attempts to end in order; what cannot be written is not waited for."""
        until = self.runtime.system.monotonic() + self._grace_seconds
        while self._held or self._claiming:
            now = self.runtime.system.monotonic()
            if now >= until + _HANDING_OVER_SECONDS + self.lease.seconds:
                return
            if now >= until:
                self._host.grace_over = True
            for attempt in list(self._held.values()):
                if self._host.grace_over:
                    attempt.kick()
            await asyncio.sleep(min(0.05, self._grace_seconds + 0.01))

    async def _finish_tasks(self) -> None:
        """Wait for flushes and reads that are under way, not for tools given up."""
        left = [task for task in self._tasks if task is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=1.0)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Start a task that nobody awaits."""
        self._tasks.add(self._spawn(work))

    def _spawn(
        self, work: Coroutine[None, None, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        """Start a task at once, in a context of its own, never in a Run's (RUN-12)."""
        own = self.runtime.new_context(None) if context is None else context
        loop = asyncio.get_running_loop()
        task = asyncio.Task(work, loop=loop, context=own, eager_start=True)
        self._tasks.add(task)
        task.add_done_callback(self._reap)
        return task

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Lost):
            _log.debug("a task ended with %r", error)
