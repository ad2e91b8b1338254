"""What engine tests share: agents, workers, logs, and waiting for what must come."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from psych_runtime._system import System
from psych_runtime.api import Version, dispatch, publish
from psych_runtime.core.codec import Entry, decode
from psych_runtime.core.fold import RunState, fold
from psych_runtime.core.header import OPEN_PHASES
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, write_outside
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.tools.policy import AllowAll
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Queue, Scope
from psych_schema.model import TextPart, UserMessage
from psych_schema.receipt import Receipt
from psych_schema.record import QueueEnqueued, Record
from psych_schema.spec import AgentSpec, CodeTool, Limits, ModelRef
from psych_schema.store import RunRow
from tests.stores.tables import SqlTables

ACME = Scope(tenant="acme")
BOUND_SECONDS = 20.0
"""How long a test waits for what must come; only a broken engine needs it all."""


async def eventually(condition: Callable[[], object], bound_seconds: float = BOUND_SECONDS) -> None:
    """Return once `condition`, which may be async, is true; fail after `bound_seconds`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + bound_seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        if loop.time() > until:
            raise AssertionError(f"did not come true within {bound_seconds:g} s: {condition}")
        await asyncio.sleep(0.01)


class ShiftedSystem(System):
    """Real ids and chance; clocks that a test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self._shift_seconds = 0.0

    @property
    def shift_seconds(self) -> float:
        """By how much both clocks are ahead."""
        return self._shift_seconds

    @shift_seconds.setter
    def shift_seconds(self, seconds: float) -> None:
        self._move(seconds - self._shift_seconds)
        self._shift_seconds = seconds

    def _move(self, seconds: float) -> None:
        """Let time pass for what has no clock of this kind."""

    def monotonic(self) -> float:
        """Return the real clock plus the shift."""
        return super().monotonic() + self.shift_seconds

    def now(self) -> datetime:
        """Return the real time plus the shift."""
        return super().now() + timedelta(seconds=self.shift_seconds)


class ServerClock(ShiftedSystem):
    """Moves back what a server judges by its own clock, when a test moves this one on."""

    def __init__(self, tables: SqlTables) -> None:
        super().__init__()
        self._tables = tables

    def _move(self, seconds: float) -> None:
        with ThreadPoolExecutor(1) as thread:  # the loop of this one runs already
            thread.submit(asyncio.run, self._tables.advance(seconds)).result()


def agent(*tools: str, name: str = "helper", **limits: Any) -> AgentSpec:
    """Return a small agent that may call `tools`."""
    return AgentSpec(
        name=name,
        instructions="Help.",
        model=ModelRef(model="fake"),
        tools=tuple(CodeTool(name=tool) for tool in tools),
        limits=Limits(**limits),
    )


def registry(*functions: Callable[..., object]) -> ToolRegistry:
    """Return a registry of functions, with the options that @tool gave them."""
    made = ToolRegistry()
    for function in functions:
        made.register(function)
    return made


def runtime(
    store: Store,
    model: ModelClient,
    *functions: Callable[..., object],
    policy: Policy | None = None,
    blob: BlobStore | None = None,
    context: Callable[[Scope | None], None] | None = None,
    system: System | None = None,
) -> Runtime:
    """Return a Runtime that allows every call."""
    return Runtime(
        store=store,
        model=model,
        registry=registry(*functions),
        policy=AllowAll() if policy is None else policy,
        blob=blob,
        context=context,
        system=system,
    )


class Crew:
    """Workers of one test; whatever still runs at its end is stopped."""

    def __init__(self) -> None:
        self._running: dict[Worker, asyncio.Task[None]] = {}
        self._heal: list[Callable[[], None]] = []

    def at_end(self, heal: Callable[[], None]) -> None:
        """Call `heal` before the workers are stopped: a held store would hold them, too."""
        self._heal.append(heal)

    async def start(self, made: Runtime, **options: Any) -> Worker:
        """Start a worker and return it once it has an id."""
        settings = {"poll_seconds": 0.02, "grace_seconds": 5.0, "lease_seconds": 6.0} | options
        worker = Worker(made, **settings)
        self._running[worker] = asyncio.create_task(worker.run())
        await eventually(lambda: worker.lease.worker)
        return worker

    async def stop(self, worker: Worker) -> None:
        """Let a worker go in order."""
        worker.stop()
        await self._running.pop(worker)

    def running(self, worker: Worker) -> asyncio.Task[None]:
        """Return the task that awaits `worker.run()`."""
        return self._running[worker]

    async def close(self) -> None:
        """Stop the rest."""
        for heal in self._heal:
            heal()
        for worker in self._running:
            worker.stop()
        await asyncio.gather(*self._running.values(), return_exceptions=True)


async def admit(
    store: Store,
    spec: AgentSpec | Version,
    message: str = "Go.",
    *,
    scope: Scope = ACME,
    **options: Any,
) -> str:
    """Publish and dispatch; return the Run's id."""
    version = spec if isinstance(spec, Version) else await publish(store, spec, scope=scope)
    made = await dispatch(store, version, scope=scope, input={"message": message}, **options)
    return made.run_id


async def send(
    store: Store,
    run_id: str,
    queue: Queue,
    text: str,
    *,
    key: str | None = None,
    tenant: str = ACME.tenant,
) -> Receipt:
    """Put a message into a Run's queue, as an outside writer does."""
    system = System()

    async def make(header: RunRow) -> Sequence[Record]:
        message = QueueEnqueued(
            run_id=header.run_id,
            id=system.new_id("rec"),
            at=system.now(),
            entry_id=system.new_id("ent"),
            queue=queue,
            message=UserMessage(parts=(TextPart(text=text),)),
            key=key,
        )
        return (message,)

    return await write_outside(store, Request(tenant, run_id, key, text), make, system=system)


async def entries_of(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> list[Entry]:
    """Return the whole log, decoded."""
    return [decode(row) for row in await store.read(tenant, run_id)]


async def records_of(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> list[Record]:
    """Return the records of a Run."""
    return [entry.record for entry in await entries_of(store, run_id, tenant=tenant)]


async def of_type[R: Record](
    store: Store, run_id: str, kind: type[R], *, tenant: str = ACME.tenant
) -> list[R]:
    """Return a Run's records of one class."""
    return [r for r in await records_of(store, run_id, tenant=tenant) if isinstance(r, kind)]


async def run_to_end(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> RunRow:
    """Wait until a Run has settled; check that log and header agree; return the header."""

    async def settled() -> bool:
        return (await store.header(tenant, run_id)).state == "settled"

    await eventually(settled)
    await sound(store, run_id, tenant=tenant)
    return await store.header(tenant, run_id)


async def sound(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> RunState:
    """Fold a log (gapless, chained, epochs in order) and compare it with its header (R-1)."""
    header = await store.header(tenant, run_id)
    entries = await entries_of(store, run_id, tenant=tenant)
    state = fold(entries[: header.head])
    assert state.position.seq == header.head
    assert state.position.hash == header.head_hash
    assert state.phase == header.state
    assert state.epoch == header.epoch
    assert state.get("abort").phase == (header.abort or "none")
    open_now = {key for kind, phases in OPEN_PHASES.items() for key in state.ids(kind, *phases)}
    assert set(header.open) == open_now
    assert (header.worker is not None) == (header.state == "running")
    return state


async def kinds_of(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> list[str]:
    """Return the types of a Run's records, in order."""
    return [record.type for record in await records_of(store, run_id, tenant=tenant)]


async def declare_dead(store: Store, worker: str) -> None:
    """Have the store call a worker dead that does not renew any more, without its lease's wait."""
    observer = System().new_id("wrk")
    lease = 0.12
    await store.enlist(observer, lease_seconds=lease, build="test", tools=())

    async def buried() -> bool:
        nonlocal lease
        begun = asyncio.get_running_loop().time()
        await store.renew(worker, lease_seconds=0.0, run_ids=())
        await store.renew(observer, lease_seconds=lease, run_ids=())
        await store.bury(observer)
        alive = {row.id for row in await store.workers()}
        took = asyncio.get_running_loop().time() - begun
        lease = max(lease, 4 * took)  # a slow store would break a short one's contact for ever
        return worker not in alive

    await eventually(buried)
    await store.renew(observer, lease_seconds=0.0, run_ids=())


def texts_of(messages: Sequence[object]) -> list[str]:
    """Return the texts of messages, one for each."""
    return [
        "".join(getattr(part, "text", "") for part in getattr(message, "parts", ()))
        for message in messages
    ]


def only[T](found: Iterable[T]) -> T:
    """Return the single item."""
    [one] = found
    return one
