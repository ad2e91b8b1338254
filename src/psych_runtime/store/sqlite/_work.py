"""Work that a loop hands to a thread, and how the answer comes back to that loop."""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress

from psych_runtime.errors import StoreUnavailable

__all__ = ["Job", "Look", "Stop", "Work", "deliver"]


class Work(ABC):
    """What a thread does for a loop: once done it is settled there."""

    def __init__(self, *, needs_schema: bool = True) -> None:
        self.needs_schema = needs_schema
        self.slices = 0
        self.loop = asyncio.get_running_loop()

    @abstractmethod
    def execute(self, connection: sqlite3.Connection) -> None:
        """Do the work; what it raises passes. May be repeated after a rollback."""

    def execute_all(self, connection: sqlite3.Connection, jobs: Sequence["Work"]) -> None:
        """Do the work of `jobs`, all of this kind, one after another; this is the first."""
        for job in jobs:
            job.execute(connection)

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """Note that the work cannot be done."""

    @abstractmethod
    def finish(self) -> None:
        """Run what follows a success that is durable."""

    @abstractmethod
    def settle(self) -> None:
        """Answer, in the loop that asked."""


class Job[T](Work):
    """A function of the connection; `after` runs in the thread once its result is durable."""

    def __init__(
        self,
        run: Callable[[sqlite3.Connection], T],
        after: Callable[[T], None] | None = None,
        *,
        needs_schema: bool = True,
    ) -> None:
        super().__init__(needs_schema=needs_schema)
        self._run = run
        self._after = after
        self._future: asyncio.Future[T] = self.loop.create_future()
        self._result: list[T] = []
        self._error: Exception | None = None

    def execute(self, connection: sqlite3.Connection) -> None:
        """Call the function."""
        self.succeed(self._run(connection))

    def succeed(self, result: T) -> None:
        """Answer with a result."""
        self._result = [result]

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self._error = error

    def finish(self) -> None:
        """Call what follows."""
        if self._error is None and self._after is not None:
            self._after(self._result[0])

    def settle(self) -> None:
        """Answer, unless whoever asked has given up."""
        if self._future.done():
            return
        if self._error is None:
            self._future.set_result(self._result[0])
        else:
            self._future.set_exception(self._error)

    async def answer(self, patience_seconds: float | None) -> T:
        """Return the result. StoreUnavailable after `patience_seconds`; it may still happen."""
        timer = None
        if patience_seconds is not None:
            timer = self.loop.call_later(patience_seconds, self._give_up, patience_seconds)
        try:
            return await self._future
        finally:
            if timer is not None:
                timer.cancel()

    def _give_up(self, patience_seconds: float) -> None:
        if not self._future.done():
            problem = f"no answer within {patience_seconds:g} s"
            self._future.set_exception(StoreUnavailable(problem=problem))


class Look(Work):
    """Nothing but a reason to look at once whether Runs have moved; nobody waits for it."""

    def execute(self, connection: sqlite3.Connection) -> None:
        """Do nothing: the thread looks behind it."""

    def fail(self, error: Exception) -> None:
        """Do nothing: a hint is lost."""

    def finish(self) -> None:
        """Do nothing: nothing follows."""

    def settle(self) -> None:
        """Do nothing: nobody waits."""


class Stop(Work):
    """The last work of a thread."""

    def __init__(self) -> None:
        super().__init__(needs_schema=False)
        self.stopped: asyncio.Future[None] = self.loop.create_future()

    def execute(self, connection: sqlite3.Connection) -> None:
        """Do nothing: a thread ends when it meets this."""

    def fail(self, error: Exception) -> None:
        """Do nothing: it cannot fail."""

    def finish(self) -> None:
        """Do nothing: nothing follows."""

    def settle(self) -> None:
        """Let stop() return."""
        if not self.stopped.done():
            self.stopped.set_result(None)


def deliver(jobs: Sequence[Work]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Work]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, theirs in by_loop.items():
        with suppress(RuntimeError):  # the loop has been closed: nobody waits
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(jobs: Sequence[Work]) -> None:
    for job in jobs:
        job.settle()
