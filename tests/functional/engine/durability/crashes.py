"""Deaths of workers, and tools whose executions are counted."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from psych_runtime._system import System
from psych_runtime.core.codec import Position, seal, sha256
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.common import Queue
from psych_schema.record import QueueEnqueued
from tests.functional.engine.flaky import Flaky, units_of
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    declare_dead,
    eventually,
    runtime,
    send,
)

type Tool = Callable[..., object]


async def hold_as_dead(store: Store, run_id: str, *, times: int) -> None:
    """Let `times` workers that never had a row claim a Run and vanish."""
    system = System()
    for _ in range(times):
        header = await store.header(ACME.tenant, run_id)
        crashes = header.crashes + (header.state == "running")
        claim = Claim.of(header, worker=system.new_id("wrk"), crashes=crashes)
        await store.commit([claim_unit(header, claim, system=system)])


async def write_newer(store: Store, run: str, *, short: bool = False) -> str:
    """Append a record of a type that this build does not know; return its hash.

    `short`: it is kept in a form that this build does not know, either.
    """
    system = System()
    header = await store.header(ACME.tenant, run)
    draft = QueueEnqueued(
        v=2,
        run_id=run,
        id=system.new_id("rec"),
        at=system.now(),
        entry_id=system.new_id("ent"),
        queue="steer",
    )
    commit = system.new_id("com")
    [sealed] = seal(
        [draft],
        Position(header.head, header.head_hash, header.head_at),
        tenant=ACME.tenant,
        epoch=0,
        commit_id=commit,
        salts=iter(system.salt, ""),
    )
    body = sealed.row.body.replace("queue.enqueued", "queue.teleported")
    kept = f"B261130171828208752?{body}" if short else body
    row = sealed.row.model_copy(update={"body": kept, "type": "queue.teleported"})
    written = sealed._replace(row=row, hash=sha256(body))
    change = Change(run, header.head, None, (written,), HeaderChange())
    assert await store.commit([Unit(commit, ACME.tenant, (change,))]) == [Committed()]
    return written.hash


async def die(flaky: Flaky, store: Store, worker: Worker) -> None:
    """Cut a worker off and have the store call it dead."""
    dead = worker.lease.worker
    assert dead is not None
    flaky.faults.away = True
    await declare_dead(store, dead)


class Bench:
    """Tools whose executions are counted; each holds in the first worker only."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.keys: list[str] = []
        self.hold = True
        self.release = asyncio.Event()

    async def _work(self, name: str, context: ToolContext) -> str:
        self.ran.append(name)
        self.keys.append(context.idempotency_key)
        if self.hold:
            await self.release.wait()
        return f"{name} is done"

    def unsafe(self) -> Tool:
        """Return a tool that must not run twice."""

        @tool(name="charge")
        async def charge(context: ToolContext) -> str:
            """Charge the card."""
            return await self._work("charge", context)

        return charge

    def safe(self) -> Tool:
        """Return a tool that may run again."""

        @tool(name="put", safe_to_retry=True)
        async def put(context: ToolContext) -> str:
            """Put the document."""
            return await self._work("put", context)

        return put

    def quick(self) -> Tool:
        """Return a tool that ends at once."""

        @tool(name="lookup")
        async def lookup(context: ToolContext) -> str:
            """Look something up."""
            self.ran.append("lookup")
            return "found"

        return lookup


class Held(NamedTuple):
    """A Run whose first worker waits in a tool; `made` is what that worker executes with."""

    bench: Bench
    model: FakeModel
    made: Runtime
    worker: Worker
    run: str


async def held_in_a_call(
    store: Store, crew: Crew, *, safe: bool = False, through: Store | None = None, **options: float
) -> Held:
    """Start a worker, with a store of its own if one is given, and wait until its tool waits."""
    bench = Bench()
    name, tool = ("put", bench.safe()) if safe else ("charge", bench.unsafe())
    model = FakeModel().turn(tool_calls=[(name, {})]).turn(text="Done.")
    made = runtime(through or store, model, tool)
    worker = await crew.start(made, **options)
    run = await admit(store, agent(name))
    await eventually(lambda: bench.ran)
    return Held(bench, model, made, worker, run)


def overtake_settlement(flaky: Flaky, store: Store, queue: Queue, text: str) -> list[str]:
    """Let a message come between a Run's last decision and its end; return whose it was, then."""
    raced: list[str] = []

    async def overtake(argument: object) -> None:
        for unit in units_of(argument):
            types = [s.row.type for change in unit.changes for s in change.records]
            if "run.settled" in types and not raced:
                raced.append(unit.changes[0].run_id)
                await send(store, raced[0], queue, text)

    flaky.faults.before["commit"] = overtake
    return raced
