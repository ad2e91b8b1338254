"""One execution pass over a Run: what it holds, when it must stop, how it waits."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from psych_runtime.core.awaited import Awaited
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState
from psych_runtime.core.streaks import Streaks
from psych_runtime.runtime.attachments import Attachments
from psych_runtime.runtime.host import Host
from psych_runtime.runtime.journal import Journal
from psych_runtime.runtime.signals import Lost
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.record import RunAdmitted
from psych_schema.spec import AgentSpec
from psych_schema.store import RunRow

__all__ = ["Attempt", "Stop"]

type Stop = Literal["aborted", "timed_out", "drained", "blocked"]


class Attempt:
    """A Run in the hands of this worker, under one epoch."""

    admitted: RunAdmitted
    awaited: Awaited  # live, as state and conversation: notes included
    conversation: Conversation
    journal: Journal
    run_salt: str
    spec: AgentSpec
    state: RunState
    streaks: Streaks
    tools: Mapping[str, RegisteredTool]  # that the Spec grants and this worker has, by name

    def __init__(self, host: Host, header: RunRow, *, epoch: int) -> None:
        self.host = host
        self.header = header
        self.run_id = header.run_id
        self.tenant = header.tenant
        self.epoch = epoch
        self.overdue = False
        self.revoked = False  # the supervisor takes the Run: no effect may start
        self.broken = False  # it died of a bug, with the Run in its hands
        self.left_alone = False  # another build must go on with the Run
        self.parked_seconds: float | None = None  # until it can be claimed again
        self.preparing: set[str] = set()  # calls that only ask or read: they can be cut
        self.asking: set[str] = set()  # calls whose approval or wait is being written
        self.executing: dict[str, RegisteredTool] = {}
        self.attachments = Attachments()
        self.task: asyncio.Task[None] | None = None
        self.begun = False  # whether the log has been folded
        self._kicked = False
        self._waker: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(
        self,
        *,
        admitted: RunAdmitted,
        spec: AgentSpec,
        run_salt: str,
        state: RunState,
        conversation: Conversation,
        awaited: Awaited,
        streaks: Streaks,
    ) -> None:
        """Take the folded log."""
        self.begun = True
        self.admitted = admitted
        self.spec = spec
        self.tools = self.host.runtime.granted(spec)
        self.run_salt = run_salt
        self.state = state
        self.conversation = conversation
        self.awaited = awaited
        self.streaks = streaks
        self.journal = Journal(
            tenant=self.tenant,
            run_id=self.run_id,
            epoch=self.epoch,
            crashes=self.header.crashes,
            state=state,
            conversation=conversation,
            awaited=awaited,
            streaks=streaks,
            flushes=self.host.flushes,
            system=self.host.system,
            on_foreign=self.kick,
        )

    def new_id(self, prefix: str) -> str:
        """Return a fresh id."""
        return self.host.system.new_id(prefix)

    def now(self) -> datetime:
        """Return the writer's clock, for `at`."""
        return self.host.system.now()

    def store_now(self) -> datetime:
        """Return the store's clock, for instants that the store judges."""
        return self.host.lease.store_now()

    # its deadline

    def watch_deadline(self) -> None:
        """Stop at the deadline by our own idea of the store's clock (R-14)."""
        rest = self.header.remaining_seconds
        if self.header.deadline_at is not None:
            rest = (self.header.deadline_at - self.store_now()).total_seconds()
        if rest is None:
            return
        if rest <= 0:
            self.overdue = True
            return
        self._timer = asyncio.get_running_loop().call_later(rest, self.pass_deadline)

    def end(self) -> None:
        """The attempt has ended: no deadline to watch, and nothing that keeps it in memory."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.begun:
            self.journal.deaf()
        self.task = None

    def pass_deadline(self) -> None:
        """The deadline has passed."""
        if not self.overdue:
            self.overdue = True
            self.kick()

    # when to stop

    def stop(self) -> Stop | None:
        """Say why the attempt must end, None to go on. Raises Lost."""
        self.check_held()
        if self.state.get("abort").phase != "none":
            return "aborted"
        if self.overdue:
            return "timed_out"
        if self.journal.needs_version is not None:
            return "blocked"
        return "drained" if self.host.draining else None

    def check_held(self) -> None:
        """Raise Lost when the Run is not ours any more."""
        if self.journal.lost is not None:
            raise Lost(str(self.journal.lost)) from self.journal.lost

    @property
    def forced(self) -> bool:
        """Tell whether what cannot be interrupted is to be given up, too (R-19)."""
        return self.state.get("abort").phase == "forced"

    def cuts_model(self) -> bool:
        """Tell whether a running model stream must be closed now."""
        why = self.stop()
        return why in ("aborted", "timed_out") or (why is not None and self._drained_out())

    def cuts_tool(self, tool: RegisteredTool) -> bool:
        """Tell whether a running call must be cut now (R-19, drain)."""
        match self.stop():
            case "timed_out":
                return True
            case "aborted":
                return tool.interruptible or self.forced or self._drained_out()
            case "drained" | "blocked":
                return self._drained_out()
            case None:
                return False

    def _drained_out(self) -> bool:
        return self.host.draining and self.host.grace_over

    async def guard(self) -> None:
        """Wait until our clock proves the lease: right before an effect (R-9).

        Raises Lost when the Run is being taken away.
        """
        while not self.host.lease.fresh() and self.stop() is None:  # noqa: ASYNC110  a clock
            await asyncio.sleep(self.host.lease.seconds / 20)
        if self.revoked:
            raise Lost("the supervisor takes the Run")

    def may_start(self) -> bool:
        """Tell whether an effect may start now; safe to ask from a tool's thread (R-9)."""
        lost = self.revoked or self.journal.lost is not None
        return not lost and self.host.lease.fresh()

    # how to wait

    def kick(self) -> None:
        """Something may have changed: look again."""
        self._kicked = True
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    async def wait_any[T](
        self, tasks: Iterable[asyncio.Task[T]], *, timeout_seconds: float | None = None
    ) -> None:
        """Return when a task is done, somebody kicked, or the time is over."""
        if not self._kicked:
            self._waker = asyncio.get_running_loop().create_future()
            watched: list[asyncio.Future[T] | asyncio.Future[None]] = [*tasks, self._waker]
            await asyncio.wait(
                watched,
                timeout=timeout_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        self._kicked = False

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, sooner when somebody kicks."""
        await self.wait_any((), timeout_seconds=max(0.0, seconds))
