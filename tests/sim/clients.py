"""Outside writers and readers: they send, interrupt, decide, deliver and read at any moment.

Each asks again with its key while the store is away, as a program does that cannot know what
became of its request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import NamedTuple

from pydantic import JsonValue

from psych_runtime._decisions import Choice, Edit, decide
from psych_runtime._deliveries import deliver
from psych_runtime._messages import cancel, send
from psych_runtime._reads import status, stream
from psych_runtime._system import System
from psych_runtime.api import Version, dispatch, interrupt
from psych_runtime.errors import (
    ApprovalError,
    CorruptLog,
    EntryOver,
    QueueFull,
    RunSettled,
    RunStopping,
    StoreUnavailable,
    WaitNotFound,
    WaitOver,
)
from psych_runtime.ports.store import Store
from psych_schema.common import Queue, Scope
from psych_schema.receipt import Receipt
from psych_schema.store import RunRow
from psych_schema.view import StatusView

__all__ = ["Client", "Reader", "Sent"]

_REFUSED = (
    ApprovalError,
    CorruptLog,
    EntryOver,
    QueueFull,
    RunSettled,
    RunStopping,
    WaitNotFound,
    WaitOver,
)


class Sent(NamedTuple):
    """A message that has a receipt."""

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

    async def _send(self, run_id: str, queue: Queue) -> None:
        key = self._key()
        text = f"{self._scope.tenant} {key} in {queue}"

        async def say() -> Receipt:
            return await self._surely(
                lambda: send(
                    self._store,
                    run_id,
                    scope=self._scope,
                    message=text,
                    queue=queue,
                    key=key,
                    system=self._system,
                )
            )

        receipt = await say()
        self.sent.append(Sent(queue, text, receipt))
        if self._chance.random() < 0.3:
            again = await say()
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
        await self._twice(
            lambda key: deliver(
                self._store,
                run_id,
                scope=self._scope,
                payload={"n": 1},
                event="news",
                key=key,
                system=self._system,
            )
        )

    async def _cancel(self, run_id: str) -> None:
        header = await self._surely(lambda: self._store.header(self._scope.tenant, run_id))
        entry_id = self._open(header, "ent_")
        key = self._key()
        await self._surely(
            lambda: cancel(
                self._store, run_id, entry_id, scope=self._scope, key=key, system=self._system
            )
        )

    async def _deliver(self, run_id: str) -> None:
        """Answer something that the Run waits for and that does not come by itself."""
        waits = [one for one in (await self._status(run_id)).pending_waits if one.kind != "timer"]
        if not waits:
            raise _Gone
        wait = self._chance.choice(waits)
        payload: dict[str, JsonValue] = {"answers": ["yes"]}
        if wait.kind == "event":
            payload = {"n": 2}
        await self._twice(
            lambda key: deliver(
                self._store,
                run_id,
                scope=self._scope,
                payload=payload,
                wait=wait.wait_id,
                by="boss",
                key=key,
                system=self._system,
            )
        )

    async def _decide(self, run_id: str) -> None:
        """Decide about one or all calls that wait."""
        asked = (await self._status(run_id)).pending_approvals
        if not asked:
            raise _Gone
        chosen = asked if self._chance.random() < 0.3 else (self._chance.choice(asked),)
        decisions: dict[str, Choice] = {}
        for one in chosen:
            edited: Choice = Edit({"who": self._scope.tenant, "amount": 7})
            options: tuple[Choice, ...] = ("approve", "approve", "approve", edited, "deny")
            name = self._chance.choice((one.approval_id, one.call_id))
            decisions[name] = self._chance.choice(options)
        await self._twice(
            lambda key: decide(
                self._store,
                run_id,
                scope=self._scope,
                decisions=decisions,
                by="boss",
                key=key,
                system=self._system,
            )
        )

    async def _status(self, run_id: str) -> StatusView:
        return await self._surely(lambda: status(self._store, run_id, scope=self._scope))

    async def _twice(self, ask: Callable[[str], Awaitable[Receipt]]) -> None:
        """Ask under a key of its own, at times once more: the receipt stays the same."""
        key = self._key()
        receipt = await self._surely(lambda: ask(key))
        if self._chance.random() < 0.3:
            again = await self._surely(lambda: ask(key))
            if again != receipt:
                self.problems.append(f"one key gave {receipt} and {again}")

    def _open(self, header: RunRow, prefix: str) -> str:
        names = [name for name in header.open if name.startswith(prefix)]
        if not names:
            raise _Gone
        return self._chance.choice(names)


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
