"""Deaths between machines whose clocks differ (R-6, R-14), and how soon they are declared (R-5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
from botocore.exceptions import ReadTimeoutError

from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import claimed, enlisted
from psych_runtime.store.dynamodb._client import DynamoClient
from psych_schema.dynamodb import worker_key
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked

_LEASE = 100.0
_SHORT = 3.0
_LOOK_SECONDS = 0.5  # between two looks of a supervisor
_ROWS = worker_key(id="")["pk"]


async def _beat(store: Store, worker: str, lease_seconds: float = _LEASE) -> None:
    answer = await store.renew(worker, lease_seconds=lease_seconds, run_ids=())
    assert answer is not None


async def test_r_14_a_death_is_observed_whatever_the_dead_ones_clock_said(
    harness: DynamoHarness,
) -> None:
    """One whose clock was an hour ahead has a lease that seems to run for an hour."""
    there = harness.elsewhere()
    await there.advance(3600)
    async with harness.open() as store, there.open() as ahead:
        observer, worker = await enlisted(store), await enlisted(ahead)
        assert await store.bury(observer) == []
        for _ in range(2):
            await harness.advance(40)
            await _beat(store, observer)
            assert await store.bury(observer) == []
        await harness.advance(40)
        await _beat(store, observer)
        assert await store.bury(observer) == [worker]


async def test_r_14_a_worker_whose_clock_is_behind_lives_while_it_beats(
    harness: DynamoHarness,
) -> None:
    """By its row its lease is over since an hour; every beat shows that it is not."""
    here = harness.elsewhere()
    await here.advance(3600)
    async with harness.open() as behind, here.open() as store:
        observer, worker = await enlisted(store), await enlisted(behind)
        for _ in range(6):
            await here.advance(45)
            await harness.advance(45)
            await _beat(store, observer)
            await _beat(behind, worker)
            assert await store.bury(observer) == []
        assert {row.id for row in await store.workers()} == {observer, worker}


async def test_r_6_a_process_that_has_just_begun_has_observed_nobody(
    harness: DynamoHarness,
) -> None:
    """The silence before it came is not its own lease."""
    here = harness.elsewhere()
    async with harness.open() as store:
        worker = await enlisted(store)
        async with here.open() as fresh:
            await here.advance(1000)
            observer = await enlisted(fresh)
            for deaths in ([], [], [worker]):
                await here.advance(50)
                await _beat(fresh, observer)
                assert await fresh.bury(observer) == deaths


async def test_r_5_a_beat_whose_answer_was_lost_is_counted_once(new_harness: NewHarness) -> None:
    """Nor is a worker that was enlisted unheard enlisted twice, or a death counted by nobody."""
    lost: set[str] = set()

    async def lose_once(call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        name = str(arguments.get("UpdateExpression", "put"))
        if name not in lost:
            lost.add(name)
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    harness = new_harness(hooked(update_item=lose_once, put_item=lose_once))
    async with harness.open() as store:
        lost.clear()
        observer, worker = await enlisted(store), await enlisted(store)
        assert [row.beat for row in await store.workers()] == [0, 0]
        for beat in (1, 2, 3):
            await harness.advance(40)
            await _beat(store, observer)
            beats = {row.id: row.beat for row in await store.workers()}
            assert beats == {observer: beat, worker: 0}
        assert await store.bury(observer) == [worker]
        assert len(lost) == 3


class Looking:
    """One process that looks for the dead as its supervisor does, each look at its moment.

    Its clock stands still but where a look waits for one that falls due: there it goes on by
    `waits`, and `meanwhile` happens. How long the look really waited is noted.
    """

    def __init__(self, harness: DynamoHarness) -> None:
        self._harness = harness.elsewhere(self._wrap)
        self._read_at: float | None = None  # in this look
        self.moment = 0.0
        self.waits = 0.0
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.asked = 0
        self.waited = 0.0

    def open(self) -> AbstractAsyncContextManager[Store]:
        return self._harness.open()

    def _wrap(self, client: DynamoClient) -> DynamoClient:
        return hooked(query=self._query)(client)

    async def _query(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        values = arguments["ExpressionAttributeValues"]
        assert isinstance(values, Mapping)
        if values[":p"] == {"S": _ROWS}:
            self.asked += 1
            now = asyncio.get_running_loop().time()
            if self._read_at is not None:
                self.waited = now - self._read_at
                await self.goes_on(self.waits)
                if self.meanwhile is not None:
                    await self.meanwhile()
            self._read_at = now
        return await call(**arguments)

    async def goes_on(self, seconds: float) -> None:
        """Let time pass."""
        self.moment += seconds
        await self._harness.advance(seconds)

    async def look(self, store: Store, observer: str, after_seconds: float) -> list[str]:
        """Beat and look, so long after the look before."""
        await self.goes_on(after_seconds)
        await _beat(store, observer, _SHORT)
        self._read_at, self.asked, self.waited = None, 0, 0.0
        dead = await store.bury(observer)
        self._read_at = None
        return dead

    async def observe(self, store: Store, observer: str, until: float) -> None:
        """Look, as often as supervisors do, until the last look is at a moment; nobody is dead."""
        while self.moment < until:
            step = min(_LOOK_SECONDS, until - self.moment)
            assert await self.look(store, observer, step) == []
            assert self.asked == 1


@pytest.fixture
async def looking(harness: DynamoHarness) -> Looking:
    """The observer's process, of tables that are there."""
    async with harness.open():
        return Looking(harness)


@pytest.mark.parametrize("early", [0.001, 0.2, 0.499])
async def test_r_5_a_death_is_declared_within_a_lease_and_half_a_second(
    harness: DynamoHarness, looking: Looking, early: float
) -> None:
    """The last sign came right behind a look, and a look comes right before its lease is over.

    So it is seen as late as can be; whoever only looked again would be later by another look.
    """
    async with harness.open() as there, looking.open() as here:
        observer = await enlisted(here, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.0)
        worker = await enlisted(there, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.0 + _SHORT)
        looking.waits = early
        dead = await looking.look(here, observer, _LOOK_SECONDS - early)
        if not dead:
            dead = await looking.look(here, observer, _LOOK_SECONDS)
        assert dead == [worker]
        assert looking.moment <= 6.0 + _SHORT + _LOOK_SECONDS + 1e-6
        assert looking.waited >= early


async def test_r_5_a_look_waits_for_one_death_and_leaves_none_late(
    harness: DynamoHarness, looking: Looking
) -> None:
    """Two in turn: the second one fell silent later, so the next look is soon enough for it."""
    async with harness.open() as there, looking.open() as here:
        observer = await enlisted(here, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.0)
        first = await enlisted(there, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.5)
        second = await enlisted(there, lease_seconds=_SHORT)
        await looking.goes_on(0.3)
        await here.workers()  # others ask for the rows, too: it is seen at 6.8
        await looking.observe(here, observer, 6.5 + _SHORT - _LOOK_SECONDS)
        looking.waits = 0.2
        assert await looking.look(here, observer, 0.3) == [first]
        assert looking.asked == 2
        assert await looking.look(here, observer, _LOOK_SECONDS) == [second]
        assert looking.asked == 1
        assert looking.moment <= 6.5 + _SHORT + _LOOK_SECONDS + 1e-6


@pytest.mark.parametrize("why", ["it beats", "the observer is out of contact", "it is dead"])
async def test_r_6_what_happens_while_a_look_waits_is_judged_anew(
    harness: DynamoHarness, looking: Looking, why: str
) -> None:
    """A beat in the last moment counts; a store that was away for half a lease kills nobody."""
    async with harness.open() as there, looking.open() as here:
        observer = await enlisted(here, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.0)
        worker = await enlisted(there, lease_seconds=_SHORT)
        await looking.observe(here, observer, 6.0 + _SHORT)

        async def meanwhile() -> None:
            if why == "it beats":
                await _beat(there, worker, _SHORT)
            elif why == "it is dead":
                await there.renew(worker, lease_seconds=0.0, run_ids=())
                assert worker in await there.bury(await enlisted(there, lease_seconds=0.0))

        looking.meanwhile = meanwhile
        looking.waits = _SHORT if why.startswith("the observer") else 0.2
        assert await looking.look(here, observer, _LOOK_SECONDS - 0.2) == []
        assert looking.asked == 2
        alive = {row.id for row in await here.workers()}
        assert (worker in alive) == (why != "it is dead")


async def test_r_5_a_death_is_heard_of_with_the_next_look_at_the_rows(
    harness: DynamoHarness,
) -> None:
    """Whoever did not declare it, and has just looked which workers are dead, waits for nothing."""
    elsewhere = harness.elsewhere()
    async with harness.open() as here, elsewhere.open() as there:
        observer, worker = await enlisted(here), await enlisted(here)
        run_id = await claimed(here, worker)
        assert await here.bury(observer) == []
        for _ in range(3):
            await harness.advance(40)
            await _beat(here, observer)
        other = await enlisted(there)
        assert (await there.ready(8)).headers == ()
        seen = (await there.arrival(-1, 0)).seen
        assert await here.bury(observer) == [worker]
        assert await there.bury(other) == []
        arrival = await there.arrival(seen, 0)
        assert arrival.seen != seen
        assert arrival.admitted is None
        assert [row.run_id for row in (await there.ready(8)).headers] == [run_id]
        assert await there.bury(other) == []
        assert (await there.arrival(arrival.seen, 0)).seen == arrival.seen
