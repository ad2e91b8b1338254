"""Outside writers and readers: they send, interrupt, decide, deliver and read at any moment.

Each asks again with its key while the store is away, as a program does that cannot know what
became of its request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Literal, NamedTuple

from psych_runtime._reads import stream
from psych_runtime._system import System
from psych_runtime.api import Version, dispatch, interrupt
from psych_runtime.core.codec import decode
from psych_runtime.errors import CorruptLog, RunSettled, RunStopping, StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, write_outside
from psych_schema.common import Queue, Scope
from psych_schema.model import TextPart, UserMessage
from psych_schema.receipt import Receipt
from psych_schema.record import (
    ApprovalDecided,
    ApprovalRequested,
    EventReceived,
    QueueCancelled,
    QueueEnqueued,
    Record,
    WaitResolved,
)
from psych_schema.store import RunRow

__all__ = ["Client", "Reader", "Sent"]

_REFUSED = (RunSettled, RunStopping, CorruptLog)


class Sent(NamedTuple):
    """A message that has a receipt."""

    run_id: str
    queue: Queue
    text: str
    receipt: Receipt


class _Gone(Exception):
    """What was to be written about is not there any more."""


class Client:
    """Whoever starts a Run and then talks to it."""

    def __init__(self, store: Store, system: System, chance: Random, scope: Scope, name: str):
        self.sent: list[Sent] = []
        self.problems: list[str] = []
        self._store = store
        self._system = system
        self._chance = chance
        self._scope = scope
        self._name = name
        self._requests = 0
        self._stops = chance.choice((0.0, 0.1, 0.6))  # how often it means it
        self._pause_seconds = chance.choice((0.5, 2.0, 5.0))

    async def live(self, version: Version, message: str, *, deadline_seconds: float) -> str:
        """Start a Run, talk to it for a while, and return its id."""
        await asyncio.sleep(self._chance.choice((0.0, 0.0, 2.0, 8.0)))
        deltas = self._chance.random() < 0.3

        async def start() -> str:
            made = await dispatch(
                self._store,
                version,
                scope=self._scope,
                input={"message": message},
                idempotency_key=self._name,
                deadline_seconds=deadline_seconds,
                deltas=deltas,
                system=self._system,
            )
            return made.run_id

        run_id = await self._surely(start)
        if self._chance.random() < 0.2:
            again = await self._surely(start)
            if again != run_id:
                self.problems.append(f"one key admitted {run_id} and {again}")
        for _ in range(self._chance.randrange(0, 9)):
            await asyncio.sleep(self._chance.expovariate(1 / self._pause_seconds))
            await self._act(run_id)
        return run_id

    async def decide_all(self, run_id: str) -> None:
        """Answer whatever the Run waits for now."""
        header = await self._store.header(self._scope.tenant, run_id)
        for name in list(header.open):
            if name.startswith("apr_"):
                await self._try(lambda: self._decide(run_id))
            elif name.startswith("wait_"):
                await self._try(lambda: self._deliver(run_id))

    async def _act(self, run_id: str) -> None:
        act = self._chance.choice(
            ("steer", "follow_up", "next_run", "stop", "event")
            + ("decide",) * 3
            + ("deliver",) * 2
            + ("cancel",)
        )
        match act:
            case "steer" | "follow_up" | "next_run":
                await self._try(lambda: self._send(run_id, act))
            case "stop":
                if self._chance.random() < self._stops:
                    await self._try(lambda: self._interrupt(run_id))
            case "event":
                await self._try(lambda: self._tell(run_id))
            case "decide":
                await self._try(lambda: self._decide(run_id))
            case "deliver":
                await self._try(lambda: self._deliver(run_id))
            case _:
                await self._try(lambda: self._cancel(run_id))

    async def _try(self, act: Callable[[], Awaitable[None]]) -> None:
        """Do something that the Run may refuse by now."""
        try:
            await act()
        except (*_REFUSED, _Gone):
            return

    async def _surely[T](self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except StoreUnavailable:
                await asyncio.sleep(self._chance.uniform(0.1, 2.0))

    def _key(self) -> str:
        self._requests += 1
        return f"{self._name}.{self._requests}"

    async def _write(
        self, run_id: str, key: str | None, text: str, make: Callable[[RunRow], Record]
    ) -> Receipt:
        request = Request(self._scope.tenant, run_id, key, text)
        return await self._surely(
            lambda: write_outside(self._store, request, make, system=self._system)
        )

    async def _send(self, run_id: str, queue: Queue) -> None:
        key = self._key()
        text = f"{self._scope.tenant} {key} in {queue}"

        def make(header: RunRow) -> Record:
            return QueueEnqueued(
                run_id=header.run_id,
                id=self._system.new_id("rec"),
                at=self._system.now(),
                entry_id=self._system.new_id("ent"),
                queue=queue,
                message=UserMessage(parts=(TextPart(text=text),)),
                key=key,
            )

        receipt = await self._write(run_id, key, text, make)
        self.sent.append(Sent(run_id, queue, text, receipt))
        if self._chance.random() < 0.3:
            again = await self._write(run_id, key, text, make)
            if again != receipt:
                self.problems.append(f"one key gave {receipt} and {again}")

    async def _interrupt(self, run_id: str) -> None:
        force = self._chance.random() < 0.4
        key = self._key()
        await self._surely(
            lambda: interrupt(
                self._store, run_id, scope=self._scope, force=force, key=key, system=self._system
            )
        )

    async def _tell(self, run_id: str) -> None:
        def make(header: RunRow) -> Record:
            return EventReceived(
                run_id=header.run_id,
                id=self._system.new_id("rec"),
                at=self._system.now(),
                event_id=self._system.new_id("evt"),
                name="news",
                payload={"n": 1},
            )

        await self._write(run_id, self._key(), "event", make)

    async def _cancel(self, run_id: str) -> None:
        def make(header: RunRow) -> Record:
            return QueueCancelled(
                run_id=header.run_id,
                id=self._system.new_id("rec"),
                at=self._system.now(),
                entry_id=self._open(header, "ent_"),
            )

        await self._write(run_id, self._key(), "cancel", make)

    async def _deliver(self, run_id: str) -> None:
        def make(header: RunRow) -> Record:
            return WaitResolved(
                run_id=header.run_id,
                id=self._system.new_id("rec"),
                at=self._system.now(),
                wait_id=self._open(header, "wait_"),
                how="delivered",
                payload="yes",
            )

        await self._write(run_id, self._key(), "deliver", make)

    async def _decide(self, run_id: str) -> None:
        """Decide one open approval, as its request in the log says what would be approved."""
        header = await self._surely(lambda: self._store.header(self._scope.tenant, run_id))
        asked = await self._surely(lambda: self._request_of(header))
        decision: Literal["approve", "deny"] = "approve" if self._chance.random() < 0.7 else "deny"

        def make(header: RunRow) -> Record:
            return ApprovalDecided(
                run_id=header.run_id,
                id=self._system.new_id("rec"),
                at=self._system.now(),
                by="boss",
                approval_id=asked.approval_id,
                decision=decision,
                digest=asked.digest,
            )

        await self._write(run_id, self._key(), f"{asked.approval_id} {decision}", make)

    def _open(self, header: RunRow, prefix: str) -> str:
        names = [name for name in header.open if name.startswith(prefix)]
        if not names:
            raise _Gone
        return self._chance.choice(names)

    async def _request_of(self, header: RunRow) -> ApprovalRequested:
        approval_id = self._open(header, "apr_")
        rows = await self._store.read(
            header.tenant, header.run_id, after=header.open[approval_id] - 1, limit=1
        )
        record = decode(rows[0]).record
        if not isinstance(record, ApprovalRequested):
            raise _Gone  # decided already
        return record


class Reader:
    """Whoever follows a Run, is cut off at any record, and comes back for what is missing."""

    def __init__(self, store: Store, chance: Random, scope: Scope) -> None:
        self.seen: list[int] = []
        self._store = store
        self._chance = chance
        self._scope = scope

    async def follow(self, run_id: str) -> None:
        """Read until the Run has settled."""
        settled = False
        while not settled:
            settled = await self._once(run_id, self._chance.randrange(1, 12))

    async def _once(self, run_id: str, bound: int) -> bool:
        after = self.seen[-1] if self.seen else 0
        records = stream(self._store, run_id, scope=self._scope, after=after)
        async with aclosing(records):
            async for record in records:
                self.seen.append(record.seq)
                bound -= 1
                if bound == 0:
                    return record.type == "run.settled"
        return True
