"""The scenario of every seed: workers, tools of every kind, people who interfere, readers.

What holds at each commit is judged by the watch; here is judged what must be true at the end.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from random import Random
from typing import Final

from psych_runtime import AgentSpec, BuiltinTool, CodeTool, Limits, ModelRef, Scope, tool
from psych_runtime._reads import report
from psych_runtime.api import publish
from psych_runtime.core.codec import decode, record_text
from psych_runtime.testing.simulation import Simulation
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.reconciled import Reconciled
from psych_schema.receipt import Receipt
from psych_schema.record import (
    ModelCompleted,
    ModelFailed,
    QueueCancelled,
    QueueConsumed,
    Record,
    RunAdmitted,
    RunSettled,
    ToolCompleted,
)
from tests.sim.clients import Client, Reader
from tests.sim.people import Careful, news, patience
from tests.sim.talk import BUILTINS, TOOLS, Talker

__all__ = ["crowd"]

_TENANTS: Final = ("acme", "globex")
_DEADLINES_SECONDS: Final = (900.0, 900.0, 900.0, 900.0, 6.0, 10.0, 20.0, 60.0)

_mine: ContextVar[str] = ContextVar("mine", default="")
"""What a tool of one Run leaves behind must not be seen by another's (RUN-12)."""


class Tools:
    """The tools of one world; each takes virtual time and looks around for what is not its."""

    def __init__(self, seed: int) -> None:
        self.problems: list[str] = []
        self.booked: set[str] = set()  # by key; the service outlives every process
        self._given_up: set[str] = set()
        self._chance = Random(f"{seed}:tools")

    def functions(self) -> list[Callable[..., object]]:
        """Return the functions, by the names that Specs grant."""

        @tool(timeout_seconds=20.0)
        async def charge(who: str, amount: int, context: ToolContext) -> str:
            """Charge once: nothing recognises a repetition.

            Args:
                who: the tenant
                amount: how much
            """
            return await self._act(who, context, 0.05, 2.0)

        @tool(annotations={"read-only"}, safe_to_retry=True)
        async def look(who: str, amount: int, context: ToolContext) -> str:
            """Read something.

            Args:
                who: the tenant
                amount: how much
            """
            return await self._act(who, context, 0.05, 1.0)

        @tool(safe_to_retry=True, concurrent=False)
        async def put(who: str, amount: int, context: ToolContext) -> str:
            """Set something, which may be repeated.

            Args:
                who: the tenant
                amount: how much
            """
            return await self._act(who, context, 0.05, 2.0)

        @tool(interruptible=False)
        async def slow(who: str, amount: int, context: ToolContext) -> str:
            """Take long, and never stop half-way.

            Args:
                who: the tenant
                amount: how much
            """
            return await self._act(who, context, 2.0, 9.0)

        @tool(annotations={"destructive"})
        async def pay(who: str, amount: int, context: ToolContext) -> str:
            """Pay, once somebody has agreed.

            Args:
                who: the tenant
                amount: how much
            """
            return await self._act(who, context, 0.05, 2.0)

        @tool(timeout_seconds=8.0, reconcile=self._find)
        async def book(who: str, amount: int, context: ToolContext) -> str:
            """Book at a service that can be asked what became of it.

            Args:
                who: the tenant
                amount: how much
            """
            done = await self._act(who, context, 0.05, 3.0)
            if context.idempotency_key in self._given_up:
                raise ValueError("nobody waits for this booking any more")
            self.booked.add(context.idempotency_key)
            await asyncio.sleep(self._chance.uniform(0.05, 5.0))
            return done

        return [charge, look, put, slow, pay, book]

    async def _find(self, call: StartedCall) -> Reconciled:
        """Say what became of a booking; one that is not there is given up for good."""
        if call.arguments["who"] != call.scope.tenant:
            self.problems.append(f"{call.run_id} of {call.scope.tenant} asks for another")
        chance = self._chance.random()
        await asyncio.sleep(20.0 if chance < 0.05 else self._chance.uniform(0.0, 2.0))
        if chance > 0.95:
            raise ValueError("the service is closed")
        if chance > 0.9:
            return Reconciled.unknown("the service does not know")
        if call.idempotency_key in self.booked:
            return Reconciled.happened(f"done for {call.scope.tenant}")
        self._given_up.add(call.idempotency_key)
        return Reconciled.not_happened()

    async def _act(self, who: str, context: ToolContext, low: float, high: float) -> str:
        if who != context.scope.tenant:
            self.problems.append(f"{context.run_id} of {context.scope.tenant} acts for {who}")
        if context.idempotency_key != context.call_id:
            self.problems.append(f"{context.call_id} has the key {context.idempotency_key}")
        if _mine.get() not in ("", context.run_id):
            self.problems.append(f"{context.run_id} sees the context of {_mine.get()}")
        _mine.set(context.run_id)
        await asyncio.sleep(self._chance.uniform(low, high))
        if self._chance.random() < 0.05:
            raise ValueError("it did not work")
        return f"done for {who}"


async def crowd(world: Simulation) -> None:
    """Live through one seed, and judge it."""
    chance = Random(f"{world.seed}:crowd")
    talker, tools = Talker(world.seed), Tools(world.seed)
    spec = AgentSpec(
        name="clerk",
        instructions="Do what you are told.",
        model=ModelRef(model="talker"),
        tools=[
            *[CodeTool(name=name) for name in TOOLS if name != "missing"],
            *[BuiltinTool(name=name) for name in BUILTINS],
        ],
        questions=patience(chance),
        events=[news(chance)],
        limits=Limits(transient_retry_budget=chance.choice((0, 2, 8)), max_turns=12),
    )
    scopes = {tenant: Scope(tenant=tenant) for tenant in _TENANTS}
    versions = {
        tenant: await publish(world.store, spec, scope=scope) for tenant, scope in scopes.items()
    }
    world.start(
        model=talker,
        tools=tools.functions(),
        policy=Careful(),
        workers=chance.choice((1, 2, 3)),
        concurrency=chance.choice((1, 2, 4)),
        max_attempts=1000 if chance.random() < 0.7 else 4,
    )
    clients: list[Client] = []
    lives: list[asyncio.Task[tuple[Client, str, str]]] = []
    readers: list[tuple[Reader, asyncio.Task[None]]] = []

    async def live(client: Client, tenant: str, name: str) -> tuple[Client, str, str]:
        run_id = await client.live(
            versions[tenant],
            f"{tenant} {name}",
            deadline_seconds=chance.choice(_DEADLINES_SECONDS),
        )
        return client, tenant, run_id

    async def read(reader: Reader, life: asyncio.Task[tuple[Client, str, str]]) -> None:
        await reader.follow((await life)[2])

    for number in range(chance.choice((1, 1, 2, 3, 6))):
        tenant = chance.choice(_TENANTS)
        own = Random(chance.getrandbits(64))
        client = Client(world.handle(), world.system(), own, scopes[tenant], f"r{number}")
        clients.append(client)
        life = asyncio.create_task(live(client, tenant, f"r{number}"))
        lives.append(life)
        if chance.random() < 0.4:
            reader = Reader(world.handle(), own, scopes[tenant])
            readers.append((reader, asyncio.create_task(read(reader, life))))
    await asyncio.gather(*lives)
    helping = asyncio.create_task(_answer_all(world, talker, [life.result() for life in lives]))
    await world.finished()
    helping.cancel()
    await asyncio.gather(*(task for _, task in readers))
    for problem in (*talker.problems, *tools.problems, *(p for c in clients for p in c.problems)):
        world.watch.fail(problem)
    await _judge(world, scopes, clients, readers)
    await _judge_bookings(world, tools)


async def _answer_all(
    world: Simulation, talker: Talker, lives: list[tuple[Client, str, str]]
) -> None:
    """Once the storm is over, let people answer whatever is asked."""
    while True:
        await asyncio.sleep(2.0)
        if not world.faults.quiet:
            continue
        talker.calm = True
        for client, tenant, run_id in lives:
            thread = (await world.store.header(tenant, run_id)).thread
            tail = await world.store.tail(tenant, thread)
            for one in dict.fromkeys((run_id, tail.run_id if tail else run_id)):
                await client.decide_all(one)


async def _judge(
    world: Simulation,
    scopes: dict[str, Scope],
    clients: list[Client],
    readers: list[tuple[Reader, asyncio.Task[None]]],
) -> None:
    """Judge what can only be judged when everything has ended."""
    fail = world.watch.fail
    places: Counter[tuple[str, str, int]] = Counter()
    entries: Counter[str] = Counter()
    inputs: list[str] = []
    cancelled: set[str] = set()
    for run_id, header in world.watch.headers.items():
        places[header.tenant, header.thread, header.position] += 1
        rows = await world.store.read(header.tenant, run_id)
        records = [decode(row).record for row in rows]
        inputs.append(rows[0].content or "")
        other = next(tenant for tenant in _TENANTS if tenant != header.tenant)
        if any(other in record_text(row) for row in rows):
            fail(f"the log of {run_id} names the other tenant")
        if not isinstance(records[-1], RunSettled):
            fail(f"{run_id} has not settled")
        for record in records:
            if isinstance(record, QueueConsumed):
                entries.update(record.entries)
            if isinstance(record, QueueCancelled):
                cancelled.add(record.entry_id)
            if isinstance(record, RunAdmitted) and header.position > 1:
                previous = world.watch.headers.get(header.previous or "")
                if previous is None or previous.position != header.position - 1:
                    fail(f"{run_id} continues {header.previous}")
        await _judge_usage(world, scopes[header.tenant], run_id, records)
    for place, count in places.items():
        if count > 1:
            fail(f"{count} runs at {place}")
    for entry, count in entries.items():
        if count > 1:
            fail(f"{entry} was consumed {count} times")
    for client in clients:
        for sent in client.sent:
            await _judge_sent(world, sent.receipt, sent.text)
            begun = sum(sent.text in one for one in inputs)
            wanted = sent.queue == "next_run" and sent.receipt.entry_id not in cancelled
            if begun != wanted:
                fail(f"{sent.text!r} is input of {begun} runs")
    for reader, _ in readers:
        if reader.seen != list(range(1, len(reader.seen) + 1)):
            fail(f"a reader saw {reader.seen}")


async def _judge_bookings(world: Simulation, tools: Tools) -> None:
    """See that what was looked up is so, in the end, too (RUN-1)."""
    for run_id, header in world.watch.headers.items():
        for row in await world.store.read(header.tenant, run_id):
            record = decode(row).record
            if not isinstance(record, ToolCompleted) or record.source != "reconciled":
                continue
            known = record.outcome != "unknown"
            if known and (record.outcome == "ok") != (record.call_id in tools.booked):
                world.watch.fail(f"{record.call_id} of {run_id} ended {record.outcome}: it is not")


async def _judge_sent(world: Simulation, receipt: Receipt, text: str) -> None:
    """See that a message with a receipt stands once in the log, where the receipt says."""
    header = world.watch.headers[receipt.run_id]
    rows = await world.store.read(header.tenant, receipt.run_id)
    kind = "run.admitted" if receipt.seq == 1 else "queue.enqueued"
    at = [row.seq for row in rows if row.type == kind and text in (row.content or "")]
    if at != [receipt.seq]:
        world.watch.fail(f"{text!r} stands at {at} of {receipt.run_id}, not at {receipt.seq}")


async def _judge_usage(
    world: Simulation, scope: Scope, run_id: str, records: Sequence[Record]
) -> None:
    """Compare the report's tokens with the sum over the log (TOK-5)."""
    usages = [one.usage for one in records if isinstance(one, ModelCompleted | ModelFailed)]
    totals = (await report(world.store, run_id, scope=scope)).totals
    for name in ("input_tokens", "output_tokens"):
        known = [getattr(usage, name) for usage in usages if usage is not None]
        wanted = sum(one for one in known if one is not None)
        found = getattr(totals.usage, name)
        complete = totals.calls_without_usage == 0
        if (found is None) == complete or (found is not None and found != wanted):
            world.watch.fail(f"{name} of {run_id} is {found}, its log says {wanted}")
