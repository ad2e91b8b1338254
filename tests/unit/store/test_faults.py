"""The wrapper of a faulty store: each kind of fault does what it says, to whom it says (R-20)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Answer, Committed, SeqConflict
from psych_runtime.ports.store import Unit
from psych_runtime.store.contract._build import TENANT, admit, change, new_id, unit
from psych_runtime.store.faults import FAULT_KINDS, FaultKind, Faults, FaultyStore
from psych_runtime.store.memory import MemoryStore

SURE: Mapping[FaultKind, float] = dict.fromkeys(FAULT_KINDS, 1.0)
BY_CHANCE = sorted(FAULT_KINDS.keys() - {"away", "stalled"})
TO_A_PROCESS: set[FaultKind] = {"crash_after", "crash_before", "cut_off", "hung", "paused"}


class Dice(System):
    """A System whose chance is the same number every time."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def random(self) -> float:
        return self.number


class Inner(MemoryStore):
    """A store that notes what reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[list[Answer]] = []

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        self.commits.append(await super().commit(units))
        return self.commits[-1]


class Process:
    """A victim that notes what befalls it."""

    def __init__(self) -> None:
        self.told: list[FaultKind] = []
        self.crashes = 0
        self.seconds: list[float] = []

    def crash(self) -> None:
        self.crashes += 1

    def pause(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def hang(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def struck(self, kind: FaultKind) -> None:
        self.told.append(kind)


def some_faults(*kinds: FaultKind, number: float = 0.0, scale: float = 0.001) -> Faults:
    return Faults(Dice(number), dict.fromkeys(kinds, 1.0), scale=scale)


async def until(done: Callable[[], bool]) -> None:
    """Let the loop run until `done`; what was not awaited has had its turn then."""
    for _ in range(1000):
        if done():
            break
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert done()


async def test_r_20_a_lost_call_never_reaches_the_store() -> None:
    """The caller learns no more than that there is no answer."""
    inner, faults = Inner(), some_faults("lost")
    with pytest.raises(StoreUnavailable):
        await FaultyStore(inner, faults).commit([unit(admit())])
    assert inner.commits == []
    assert faults.struck == {"lost": 1}


async def test_r_20_an_unanswered_call_is_done() -> None:
    """To the caller it looks as if it were lost."""
    inner, faults = Inner(), some_faults("unanswered")
    with pytest.raises(StoreUnavailable):
        await FaultyStore(inner, faults).commit([unit(admit())])
    assert inner.commits == [[Committed()]]
    assert faults.struck == {"unanswered": 1}


async def test_r_20_a_late_commit_lands_after_the_caller_was_told_that_it_failed() -> None:
    """`landed` returns when it has; it is delivered once."""
    inner, faults = Inner(), some_faults("late", number=0.9)
    with pytest.raises(StoreUnavailable):
        await FaultyStore(inner, faults).commit([unit(admit())])
    assert inner.commits == []
    await faults.landed()
    assert inner.commits == [[Committed()]]
    assert faults.struck == {"late": 1}


async def test_r_20_landed_returns_at_once_when_nothing_is_on_its_way() -> None:
    """And waits for all that are, not for the first."""
    inner, faults = Inner(), some_faults("late")
    await faults.landed()
    store = FaultyStore(inner, faults)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await store.commit([unit(admit())])
    await faults.landed()
    assert len(inner.commits) == 3


async def test_r_20_a_late_commit_lands_although_its_caller_was_cancelled() -> None:
    """Nobody can call back what is on its way."""
    inner, faults = Inner(), some_faults("late")

    async def call() -> None:
        try:
            await FaultyStore(inner, faults).commit([unit(admit())])
        except StoreUnavailable:
            await asyncio.get_running_loop().create_future()

    calling = asyncio.create_task(call())
    await until(lambda: faults.struck["late"] == 1)
    calling.cancel()
    await faults.landed()
    assert inner.commits == [[Committed()]]


async def test_r_20_a_doubled_commit_is_delivered_twice() -> None:
    """The caller has the answer of the first delivery."""
    inner, faults = Inner(), some_faults("doubled")
    admission = admit()
    answers = await FaultyStore(inner, faults).commit([unit(admission)])
    assert answers == [Committed()]
    assert inner.commits == [[Committed()], [SeqConflict(admission.run_id)]]
    assert isinstance(inner.commits[1][0], SeqConflict)
    assert faults.struck == {"doubled": 1}


@pytest.mark.parametrize(("number", "first"), [(0.0, 0), (0.4, 1), (0.99, 2)])
async def test_r_20_of_a_torn_group_only_the_first_units_land(number: float, first: int) -> None:
    """Never all of them, perhaps none."""
    inner, faults = Inner(), some_faults("torn", number=number)
    with pytest.raises(StoreUnavailable):
        await FaultyStore(inner, faults).commit([unit(admit()) for _ in range(3)])
    assert inner.commits == [[Committed()] * first]
    assert faults.struck == {"torn": 1}


async def test_r_20_a_unit_alone_is_not_torn() -> None:
    """Units are whole; only groups of them tear."""
    inner, faults = Inner(), some_faults("torn")
    assert await FaultyStore(inner, faults).commit([unit(admit(), admit())]) == [Committed()]
    assert faults.struck == {}


async def test_r_20_a_delayed_answer_is_not_there_when_the_store_has_answered() -> None:
    """The call is done long before its caller hears of it."""
    inner, faults = Inner(), some_faults("delayed", scale=1000.0)
    calling = asyncio.create_task(FaultyStore(inner, faults).commit([unit(admit())]))
    await until(lambda: inner.commits == [[Committed()]])
    assert not calling.done()
    assert faults.struck == {"delayed": 1}
    calling.cancel()


async def test_r_20_a_delayed_answer_comes() -> None:
    """It is the store's."""
    faults = some_faults("delayed")
    assert await FaultyStore(Inner(), faults).commit([unit(admit())]) == [Committed()]
    assert faults.struck == {"delayed": 1}


async def test_r_8_a_store_that_is_away_refuses_every_call_until_it_is_back() -> None:
    """Nothing reaches it."""
    inner, faults = Inner(), some_faults()
    store = FaultyStore(inner, faults)
    faults.go_away(60.0)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await store.commit([unit(admit())])
    assert inner.commits == []
    faults.go_away(0.0)
    assert await store.commit([unit(admit())]) == [Committed()]
    assert faults.struck == {"away": 2}


async def test_r_8_calls_of_a_store_that_stalls_hang_and_then_land() -> None:
    """All that were made meanwhile."""
    inner, faults = Inner(), some_faults()
    store = FaultyStore(inner, faults)
    faults.go_away(60.0, stalls=True)
    hanging = asyncio.create_task(store.commit([unit(admit())]))
    await until(lambda: faults.struck["stalled"] == 1)
    assert not hanging.done()
    hanging.cancel()
    faults.go_away(0.05, stalls=True)
    assert await store.commit([unit(admit())]) == [Committed()]
    assert inner.commits == [[Committed()]]
    assert faults.struck == {"stalled": 2}


async def test_r_8_a_call_that_hung_is_refused_by_a_store_that_is_away_again() -> None:
    """It does not slip through between two outages."""
    inner, faults = Inner(), some_faults()
    faults.go_away(0.2, stalls=True)
    hanging = asyncio.create_task(FaultyStore(inner, faults).commit([unit(admit())]))
    await until(lambda: faults.struck["stalled"] == 1)
    faults.go_away(60.0)
    with pytest.raises(StoreUnavailable):
        await hanging
    assert inner.commits == []
    assert faults.struck == {"stalled": 1, "away": 1}


@pytest.mark.parametrize(("kind", "done"), [("crash_before", 0), ("crash_after", 1)])
async def test_r_20_a_process_that_crashes_in_a_call_never_goes_on(
    kind: FaultKind, done: int
) -> None:
    """Before the call is sent, or after it is done."""
    inner, faults, process = Inner(), some_faults(kind), Process()
    calling = asyncio.create_task(FaultyStore(inner, faults, process).commit([unit(admit())]))
    await until(lambda: process.crashes == 1)
    assert len(inner.commits) == done
    assert not calling.done()
    assert process.told == [kind]
    calling.cancel()


@pytest.mark.parametrize(("kind", "longest_seconds"), [("paused", 25.0), ("hung", 25.0)])
async def test_r_9_a_process_that_stands_still_goes_on_with_its_call(
    kind: FaultKind, longest_seconds: float
) -> None:
    """For a while that has bounds; it is up to the victim to stand still."""
    for number in (0.0, 0.999):
        inner, process = Inner(), Process()
        faults = Faults(Dice(number), {kind: 1.0})
        store = FaultyStore(inner, faults, process)
        assert await store.commit([unit(admit())]) == [Committed()]
        (seconds,) = process.seconds
        assert 1.0 <= seconds <= longest_seconds
        assert process.told == [kind]


@pytest.mark.parametrize(("number", "done"), [(0.0, 0), (0.999, 1)], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["paused", "hung"])
async def test_r_9_a_process_stands_still_before_its_call_or_when_it_is_done(
    kind: FaultKind, number: float, done: int
) -> None:
    """What it goes on with then is old: whatever it has decided, or what it has been told."""
    inner, seen = Inner(), list[int]()

    class Stopped(Process):
        def pause(self, seconds: float) -> None:
            seen.append(len(inner.commits))

        hang = pause

    faults = Faults(Dice(number), {kind: 1.0})
    assert await FaultyStore(inner, faults, Stopped()).commit([unit(admit())]) == [Committed()]
    assert seen == [done]


async def test_r_5_a_process_that_is_cut_off_reaches_the_store_no_more_for_a_while() -> None:
    """None of its calls does, and others' do; it hears of each."""
    inner, process = Inner(), Process()
    chances: dict[FaultKind, float] = {"cut_off": 1.0}
    faults = Faults(Dice(0.0), chances)
    store, others = FaultyStore(inner, faults, process), FaultyStore(inner, faults, Process())
    with pytest.raises(StoreUnavailable, match="cut off"):
        await store.commit([unit(admit())])
    chances.clear()
    with pytest.raises(StoreUnavailable, match="cut off"):
        await store.twin().workers()
    assert process.told == ["cut_off"] * 2
    assert await others.commit([unit(admit())]) == [Committed()]
    assert inner.commits == [[Committed()]]
    faults.quiet = True
    assert await store.commit([unit(admit())]) == [Committed()]


async def test_r_5_a_process_that_was_cut_off_reaches_the_store_again() -> None:
    """When the time is over."""
    chances: dict[FaultKind, float] = {"cut_off": 1.0}
    store = FaultyStore(Inner(), Faults(Dice(0.0), chances, scale=0.001), Process())
    with pytest.raises(StoreUnavailable):
        await store.workers()
    chances.clear()
    async with asyncio.timeout(5):
        while True:
            try:
                assert await store.workers() == []
                break
            except StoreUnavailable:
                await asyncio.sleep(0)


async def test_r_6_a_store_is_back_for_one_process_before_another() -> None:
    """Each learns of it within the bound, and then for good."""
    inner, dice = Inner(), Dice(0.0)
    faults = Faults(dice, {})
    first, second = (FaultyStore(inner, faults, Process()) for _ in range(2))
    faults.go_away(0.0, apart_seconds=60.0)
    assert await first.workers() == []
    dice.number = 0.9
    with pytest.raises(StoreUnavailable, match="away"):
        await second.workers()
    assert await first.workers() == []
    faults.go_away(0.0)
    assert await second.workers() == []


@pytest.mark.parametrize("kind", sorted(TO_A_PROCESS))
async def test_r_20_without_a_process_only_calls_fail(kind: FaultKind) -> None:
    """Nobody is there whom a crash could hit; it is not counted."""
    faults = some_faults(kind)
    assert await FaultyStore(Inner(), faults).commit([unit(admit())]) == [Committed()]
    assert faults.struck == {}


@pytest.mark.parametrize(
    "kind", [kind for kind in BY_CHANCE if kind not in TO_A_PROCESS and kind != "unheard"]
)
async def test_r_20_a_victim_is_told_what_hits_its_call(kind: FaultKind) -> None:
    """Once for each fault."""
    faults, process = some_faults(kind), Process()
    store = FaultyStore(Inner(), faults, process)
    await asyncio.gather(store.commit([unit(admit()), unit(admit())]), return_exceptions=True)
    await faults.landed()
    assert process.told == [kind]


async def test_r_15_a_message_of_work_that_is_lost_is_as_if_there_was_none() -> None:
    """Whoever waits is told of the next one only; the count goes on."""
    faults, process = Faults(Dice(0.0), {"unheard": 1.0}), Process()
    inner = MemoryStore()
    lost, heard = FaultyStore(inner, faults, process), FaultyStore(inner, faults)
    before = (await inner.arrival(-1, 0)).seen
    await inner.commit([unit(admit())])
    assert (await lost.arrival(before, 0.01)).seen == before + 1
    assert process.told == ["unheard"]
    faults.quiet = True
    await inner.commit([unit(admit())])
    found = await heard.arrival(before + 1, 5)
    assert (found.seen, len(found.admitted or ())) == (before + 2, 1)


async def test_r_20_a_victim_is_told_of_an_outage() -> None:
    """Of each call that meets it."""
    faults, process = some_faults(), Process()
    faults.go_away(60.0)
    with pytest.raises(StoreUnavailable):
        await FaultyStore(Inner(), faults, process).workers()
    assert process.told == ["away"]


async def test_r_20_quiet_faults_never_strike() -> None:
    """Whatever their chances; louder again, they do."""
    faults, process = Faults(Dice(0.0), SURE, scale=0.001), Process()
    store = FaultyStore(Inner(), faults, process)
    faults.quiet = True
    assert await store.commit([unit(admit()), unit(admit())]) == [Committed()] * 2
    assert await store.workers() == []
    assert (faults.struck, process.told) == ({}, [])
    faults.quiet = False
    with pytest.raises(StoreUnavailable):
        await store.workers()
    assert process.told == ["lost"]


@pytest.mark.parametrize("kind", BY_CHANCE)
async def test_r_20_a_kind_that_is_not_named_never_strikes(kind: FaultKind) -> None:
    """Nor does one whose chance is nothing, at the luckiest throw."""
    for chances in ({}, {kind: 0.0}):
        faults, process = Faults(Dice(0.0), chances), Process()
        store = FaultyStore(Inner(), faults, process)
        assert await store.commit([unit(admit()), unit(admit())]) == [Committed()] * 2
        assert (faults.struck, process.told, process.crashes) == ({}, [], 0)


@pytest.mark.parametrize("kind", BY_CHANCE)
def test_r_20_every_kind_strikes_as_often_as_its_chance_says(kind: FaultKind) -> None:
    """Below its chance it does, at it no more; it is counted and told."""
    dice, process = Dice(0.49), Process()
    faults = Faults(dice, {kind: 0.5})
    assert faults.strikes(kind, process)
    dice.number = 0.5
    assert not faults.strikes(kind, process)
    assert (faults.struck, process.told) == ({kind: 1}, [kind])


async def test_r_21_a_twin_shares_faults_and_victim() -> None:
    """The supervisor's handle is hit, too; it is another handle of the same rows."""
    inner, faults, process = Inner(), some_faults("unanswered"), Process()
    store = FaultyStore(inner, faults, process)
    twin = store.twin()
    admission = admit()
    with pytest.raises(StoreUnavailable):
        await twin.commit([unit(admission)])
    assert (faults.struck, process.told) == ({"unanswered": 1}, ["unanswered"])
    faults.quiet = True
    await store.close()
    assert (await twin.header(TENANT, admission.run_id)).head == 1


async def test_r_20_migrating_and_closing_are_spared() -> None:
    """They set up and end what is to be broken."""
    faults = Faults(Dice(0.0), SURE)
    faults.go_away(60.0)
    async with FaultyStore(Inner(), faults) as store:
        await store.migrate()
    assert faults.struck == {}


async def test_r_20_faults_are_drawn_from_the_given_chance_alone() -> None:
    """The same numbers, the same faults."""

    class Numbers(System):
        def __init__(self) -> None:
            super().__init__()
            self._number = 0

        def random(self) -> float:
            self._number += 7
            return self._number % 10 / 10

    fates: list[list[str]] = []
    for _ in range(2):
        faults = Faults(Numbers(), {"lost": 0.3, "unanswered": 0.3}, scale=0.001)
        inner = MemoryStore()
        admission = admit()
        await inner.commit([unit(admission)])
        store, seen = FaultyStore(inner, faults), list[str]()
        for _ in range(20):
            try:
                await store.commit([unit(change(new_id(), 1))])
                seen.append("answered")
            except StoreUnavailable as error:
                seen.append(error.problem)
        fates.append(seen)
    assert fates[0] == fates[1]
    assert len(set(fates[0])) == 3


async def test_r_20_latency_is_paid_on_both_ways() -> None:
    """A mean of so many seconds each way, as chance has it: none, at its luckiest."""
    faults = Faults(Dice(0.0), {}, latency_seconds=1000.0)
    assert await FaultyStore(Inner(), faults).commit([unit(admit())]) == [Committed()]
    unlucky = Faults(Dice(0.5), {}, latency_seconds=1000.0)
    inner = Inner()
    calling = asyncio.create_task(FaultyStore(inner, unlucky).commit([unit(admit())]))
    await until(lambda: not calling.done())
    assert inner.commits == []
    calling.cancel()
