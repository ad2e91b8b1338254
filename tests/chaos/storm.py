"""One chaos run: Runs are admitted while harm is done; then all is mended, and must end well."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from psych_runtime.api import dispatch, publish
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Exclude, Store
from psych_runtime.runtime.commit import ask_surely
from psych_runtime.store.open import open_store
from psych_schema.common import Scope
from tests.chaos.evidence import (
    Admission,
    Evidence,
    read_effects,
    read_logs,
    read_pauses,
    read_workers,
)
from tests.chaos.nursery import Job
from tests.chaos.places import NetPlace, Place, ServerPlace
from tests.chaos.schedule import Harm, Strike, schedule
from tests.chaos.work import Order, shop
from tests.processes.nursery import Nursery, Process

__all__ = ["QUIET_RUNS", "Plan", "Storm", "endure", "eventually"]

TENANTS: Final = ("acme", "globex", "initech", "umbrella")
QUIET_RUNS: Final = 6
"""The last Runs of every plan: they see one kill, and nothing else."""

_DISPATCHERS: Final = 4
_DELTAS_EVERY: Final = 3
_TWICE_EVERY: Final = 7
_MAX_RAISED: Final = 50


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Attributes:
        runs: how many in all, `QUIET_RUNS` among them; a slow place has a share of the others.
        seconds: of harm.
        settle_seconds: what Runs have to end once all harm is over; then they are lost.
    """

    seed: int
    runs: int = 300
    seconds: float = 60.0
    workers: int = 3
    concurrency: int = 16
    lease_seconds: float = 6.0
    settle_seconds: float = 120.0

    def strikes(self, place: Place) -> tuple[Strike, ...]:
        """Return what is done, and when."""
        return schedule(
            self.seed, seconds=self.seconds, lease_seconds=self.lease_seconds, harms=place.harms
        )

    def orders(self, place: Place) -> list[Order]:
        """Return what the Runs are asked to do: two or three turns, the last ones held."""
        chance = random.Random(f"{self.seed} orders")
        storm = max(1, round((self.runs - QUIET_RUNS) * place.share))
        stormy = [Order(number, chance.choice((2, 3))) for number in range(storm)]
        return stormy + [Order(storm + number, 1, held=True) for number in range(QUIET_RUNS)]


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Return True as soon as `condition` holds, False when it does not in `seconds`."""
    until = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.05)
    return True


@dataclass
class Storm:
    """What happens, and what has happened.

    Attributes:
        struck: how often each harm was done.
        restarts: how long each restart took, by how.
        raised: what the API raised to us that says nothing to a caller.
        quiet_kill: when and which process was killed with nothing else going on.
    """

    plan: Plan
    place: Place
    folder: Path
    store: Store
    nursery: Nursery[Job]
    slots: list[Process] = field(default_factory=list)
    struck: Counter[Harm] = field(default_factory=Counter)
    restarts: list[tuple[str, float]] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    refusals: int = 0
    raised: list[str] = field(default_factory=list)
    quiet_kill: tuple[float, int] | None = None
    seconds: float = 0.0

    async def run(self) -> Evidence:
        """Do all of it; return what is left."""
        begun = time.monotonic()
        self.slots = [self._start() for _ in range(self.plan.workers)]
        versions = {tenant: await self._publish(tenant) for tenant in TENANTS}
        orders = self.plan.orders(self.place)
        stormy = [order for order in orders if not order.held]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._admit(stormy, versions, self.plan.seconds * 0.8))
            for harm in self.place.harms:
                lane = [one for one in self.plan.strikes(self.place) if one.harm == harm]
                group.create_task(self._lane(lane))
        await self._settled()
        await self._quiet_kill([order for order in orders if order.held], versions)
        await self._settled()
        ended_alone = self.nursery.ended_alone()
        self.nursery.end_all()  # what is not settled by now must stand still to be looked at
        evidence = Evidence(
            admissions=self.admissions,
            logs=await self._ask(lambda: read_logs(self.store, TENANTS)),
            effects=read_effects(self.folder),
            workers=read_workers(self.folder),
            lives={one.pid: one.life for one in self.nursery.processes},
            lease_seconds=self.plan.lease_seconds,
            ended_alone=ended_alone,
            pauses=read_pauses(self.folder),
            raised=self.raised,
        )
        self.seconds = time.monotonic() - begun
        return evidence

    def _start(self) -> Process:
        plan = self.plan
        job = Job(
            folder=str(self.folder),
            url=self.place.url,
            prefix=self.place.prefix,
            lease_seconds=plan.lease_seconds,
            concurrency=plan.concurrency,
        )
        return self.nursery.start(job)

    # admission

    async def _publish(self, tenant: str) -> str:
        version = await ask_surely(lambda: publish(self.store, shop(), scope=Scope(tenant=tenant)))
        return version.hash

    async def _admit(
        self, orders: Sequence[Order], versions: dict[str, str], seconds: float
    ) -> None:
        """Dispatch each order in its time, also while the store is away."""
        begun = time.monotonic()
        waiting = iter(enumerate(orders))

        async def dispatcher() -> None:
            for place, order in waiting:
                due = begun + seconds * place / len(orders)
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._dispatch(order, versions)

        async with asyncio.TaskGroup() as group:
            for _ in range(_DISPATCHERS):
                group.create_task(dispatcher())

    async def _dispatch(self, order: Order, versions: dict[str, str]) -> None:
        """Admit one Run, exactly once however often it is asked for."""
        tenant = TENANTS[order.number % len(TENANTS)]
        times = 2 if order.number % _TWICE_EVERY == 0 else 1
        run_ids: list[str] = []
        while len(run_ids) < times:
            try:
                made = await dispatch(
                    self.store,
                    versions[tenant],
                    scope=Scope(tenant=tenant),
                    input={"message": order.text},
                    idempotency_key=f"order-{order.number}",
                    deltas=order.number % _DELTAS_EVERY == 0,
                )
            except StoreUnavailable:
                self.refusals += 1
                await asyncio.sleep(0.05)
            except Exception as error:  # a fault, which must not hide the others
                self._note(error)
                await asyncio.sleep(0.05)
            else:
                run_ids.append(made.run_id)
        self.admissions.append(Admission(order, tenant, tuple(run_ids)))

    async def _ask[T](self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns, also when the first tries raise what they must not."""
        while True:
            try:
                return await ask_surely(ask)
            except Exception as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        """Keep an error that the API must not raise; too many of them end the run."""
        self.raised.append(f"{type(error).__name__}: {error}")
        if len(self.raised) > _MAX_RAISED:
            raise error

    # harm

    async def _lane(self, strikes: Iterable[Strike]) -> None:
        """Do one kind of harm, each at its time or when the one before is over."""
        begun = time.monotonic()
        for strike in strikes:
            await asyncio.sleep(max(0.0, begun + strike.at - time.monotonic()))
            if await self._strike(strike):
                self.struck[strike.harm] += 1

    async def _strike(self, strike: Strike) -> bool:
        """Do harm; False when there was nobody to do it to."""
        match strike.harm:
            case "kill":
                return self._kill(strike.pick)
            case "stop":
                return await self._stop(strike)
            case _:
                await self._harm_server(strike)
                return True

    def _pick(self, pick: float) -> Process | None:
        """Return one of those that are up."""
        up = [one for one in self.slots if not one.stands]
        return up[int(pick * len(up))] if up else None

    def _kill(self, pick: float) -> bool:
        process = self._pick(pick)
        if process is None:
            return False
        process.kill()
        self.slots[self.slots.index(process)] = self._start()
        return True

    async def _stop(self, strike: Strike) -> bool:
        process = self._pick(strike.pick)
        if process is None:
            return False
        await self.place.stop(process)
        try:
            await asyncio.sleep(strike.seconds)
        finally:
            process.go_on()
        return True

    async def _harm_server(self, strike: Strike) -> None:
        place = self.place
        if strike.harm == "restart":
            assert isinstance(place, ServerPlace)
            await self._restart(place, strike)
            return
        assert isinstance(place, NetPlace)
        match strike.harm:
            case "cut":
                place.gate.cut()
            case "delay":
                place.gate.delay(0.02 + strike.pick * 0.1)
                await asyncio.sleep(strike.seconds)
                place.gate.delay(0.0)
            case "lose":
                place.gate.lose_answers()
                await asyncio.sleep(strike.seconds)
                place.gate.mend()

    async def _restart(self, place: ServerPlace, strike: Strike) -> None:
        begun = time.monotonic()
        if strike.seconds:
            await place.take_down(strike.how)
            await asyncio.sleep(strike.seconds)
            await place.bring_up()
        else:
            await place.restart(strike.how)
        self.restarts.append((strike.how, time.monotonic() - begun))

    # the end

    async def _settled(self) -> None:
        """Wait until every Run has settled, or the time for it is over.

        A worker that has ended by itself is a fault, and must not hide others: it is replaced.
        """
        self.slots = [self._start() if one.has_ended() else one for one in self.slots]
        waiting = [(one.tenant, one.run_ids[0]) for one in self.admissions]

        async def none_waits() -> bool:
            while waiting:
                header = await self._ask(lambda: self.store.header(*waiting[-1]))
                if header.state != "settled":
                    return False
                waiting.pop()
            return True

        await self._wait(none_waits)

    async def _wait(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait within bounds, and not at all when no worker is left."""

        async def over() -> bool:
            return all(one.has_ended() for one in self.slots) or await condition()

        await eventually(over, self.plan.settle_seconds)

    async def _quiet_kill(self, orders: Sequence[Order], versions: dict[str, str]) -> None:
        """Kill a worker in the middle of its calls, with the store in good health."""
        await self._wait(self._all_in_contact)
        hold = self.folder / "hold"
        hold.touch()
        for order in orders:
            await self._dispatch(order, versions)
        held = {one.run_ids[0] for one in self.admissions if one.order.held}

        async def all_charged() -> bool:
            effects = read_effects(self.folder)
            return held <= {one.run_id for one in effects if one.tool == "charge"}

        await self._wait(all_charged)
        holders = Counter(one.pid for one in read_effects(self.folder) if one.run_id in held)
        victim = max(self.slots, key=lambda one: holders[one.pid])
        victim.kill()
        self.quiet_kill = time.time(), victim.pid
        self.slots.remove(victim)
        hold.unlink()

    async def _all_in_contact(self) -> bool:
        """Tell whether every worker could judge a death by now, in the store's own words (R-6)."""
        look = partial(self.store.ready, 1, after_tenant="", exclude=Exclude())
        now = (await self._ask(look)).now
        rows = [row for row in await self._ask(self.store.workers) if row.lease_until > now]
        whole = [(now - row.since).total_seconds() >= self.plan.lease_seconds for row in rows]
        return len(rows) >= self.plan.workers and all(whole)


@asynccontextmanager
async def endure(plan: Plan, place: Place, folder: Path) -> AsyncIterator[Storm]:
    """Yield a storm that can be run; its processes end with it."""
    store = open_store(place.url, prefix=place.prefix)
    async with store:
        with Nursery[Job]("tests.chaos.nursery", folder / "log") as nursery:
            yield Storm(plan, place, folder, store, nursery)
