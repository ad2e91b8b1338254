"""A loop that turns by hand, and a store whose every answer is somebody's decision."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from psych_runtime import errors
from psych_runtime.ports.answers import Answer, RunNotFound
from psych_runtime.ports.store import Unit
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RecordRow, RunRow

__all__ = ["HandLoop", "Read", "Scripted", "Sent", "at_once"]


def at_once[T](work: Coroutine[object, None, T]) -> T:
    """Return what a coroutine returns that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


class HandLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still unless it is told otherwise, one turn at a time."""

    def __init__(self) -> None:
        self._told_seconds = 0.0
        super().__init__()

    def time(self) -> float:
        """Return what was told."""
        return self._told_seconds

    def pass_time(self, seconds: float) -> None:
        """Let time go by."""
        self._told_seconds += seconds

    def turn(self, times: int = 10) -> None:
        """Run what is ready, so many times over."""
        for _ in range(times):
            self.call_soon(self.stop)
            self.run_forever()


@dataclass(eq=False)
class Sent:
    """A commit under way; `answers` are the store's, one for each time that it arrived."""

    units: tuple[Unit, ...]
    done: asyncio.Future[list[Answer]]
    answers: list[list[Answer]] = field(default_factory=list)


@dataclass(eq=False)
class Read:
    """A read under way; `rows` are those of the moment when it arrived."""

    run_id: str
    after: int
    done: asyncio.Future[list[RecordRow]]
    rows: list[RecordRow] | None = None


class Scripted(MemoryStore):
    """A store in memory to which nothing comes, and from which nothing comes back, by itself.

    What is answered is always true: a call arrives or does not, at some moment or at several,
    and its answer comes, comes late, or is lost.
    """

    def __init__(self, watch: Callable[[Sequence[Unit]], None]) -> None:
        super().__init__()
        self._watch = watch  # is told of each commit that is sent
        self.sent: list[Sent] = []
        self.reads: list[Read] = []
        self.all_units: list[Unit] = []
        self.gone: set[str] = set()
        self.poison: set[str] = set()  # ids of units that the adapter cannot write

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Wait for whatever becomes of it."""
        self._watch(units)
        call = Sent(tuple(units), asyncio.get_running_loop().create_future())
        self.all_units += units
        self.sent.append(call)
        return await call.done

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Wait for whatever becomes of it."""
        call = Read(run_id, after, asyncio.get_running_loop().create_future())
        self.reads.append(call)
        return await call.done

    def land(self, units: Sequence[Unit]) -> list[Answer]:
        """Let units reach the store, once more perhaps; return what it says.

        ValueError, and nothing is written, when the adapter cannot write one of them.
        """
        if any(unit.commit_id in self.poison for unit in units):
            raise ValueError("a bug of the adapter")
        found: list[Answer] = []
        for unit in units:
            gone = [one.run_id for one in unit.changes if one.run_id in self.gone]
            found += [RunNotFound(gone[0])] if gone else self.committed([unit])
        return found

    def committed(self, units: Sequence[Unit]) -> list[Answer]:
        """Commit at once."""
        return at_once(MemoryStore.commit(self, units))

    def rows(self, tenant: str, run_id: str, after: int = 0) -> list[RecordRow]:
        """Return what stands in a log."""
        return at_once(MemoryStore.read(self, tenant, run_id, after=after))

    def head(self, tenant: str, run_id: str) -> RunRow:
        """Return a header."""
        return at_once(MemoryStore.header(self, tenant, run_id))

    # what becomes of calls

    def arrive(self, call: Sent) -> None:
        """Let a commit arrive, once more perhaps; a bug of the adapter ends it."""
        try:
            call.answers.append(self.land(call.units))
        except ValueError as error:
            self.sent.remove(call)
            call.done.set_exception(error)

    def answer(self, call: Sent, *, first: bool = False) -> None:
        """Let a commit arrive, unless it has; its answer comes, of the first time or the last."""
        if not call.answers:
            self.arrive(call)
        if call in self.sent:
            self.sent.remove(call)
            call.done.set_result(call.answers[0 if first else -1])

    def lose(self, call: Sent, why: Exception, *, arrives: bool) -> None:
        """Let the answer be lost, whether or not the commit arrived."""
        if arrives:
            self.arrive(call)
        if call in self.sent:
            self.sent.remove(call)
            call.done.set_exception(why)

    def look(self, tenant: str, call: Read) -> None:
        """Let a read arrive; what is written from now on is not in it."""
        if call.run_id not in self.gone:
            call.rows = self.rows(tenant, call.run_id, call.after)

    def answer_read(self, tenant: str, call: Read) -> None:
        """Let a read be answered."""
        self.reads.remove(call)
        if call.rows is None:
            self.look(tenant, call)
        if call.rows is None:
            call.done.set_exception(errors.RunNotFound(run_id=call.run_id))
        else:
            call.done.set_result(call.rows)

    def lose_read(self, call: Read, why: Exception) -> None:
        """Let a read fail."""
        self.reads.remove(call)
        call.done.set_exception(why)
