"""Direct writers: a unit in doubt is repeated until its fate is known (R-20)."""

from collections.abc import Sequence

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Answer, Committed, LeaseLost, SeqConflict
from psych_runtime.ports.store import Unit
from psych_runtime.runtime.admission import admit, run_admitted
from psych_runtime.runtime.commit import ask_surely, commit_surely
from psych_runtime.runtime.signals import Lost
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.store.memory import MemoryStore
from psych_schema.common import Scope
from tests.unit.runtime.made import SYSTEM, TENANT, Made, held, steer, write


class Losing(MemoryStore):
    """A store that loses commits, or their answers."""

    def __init__(self) -> None:
        super().__init__()
        self.lose_before = 0
        self.lose_after = 0
        self.commits = 0

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        self.commits += 1
        if self.lose_before:
            self.lose_before -= 1
            raise StoreUnavailable(problem="nothing arrived")
        answers = await super().commit(units)
        if self.lose_after:
            self.lose_after -= 1
            raise StoreUnavailable(problem="the answer was lost")
        return answers


async def ready() -> tuple[Losing, Made]:
    """Return a store and a Run in it."""
    store = Losing()
    made = await held(store)
    store.commits = 0
    return store, made


async def claim(made: Made) -> Unit:
    """Return a claim of the Run as it stands."""
    header = await made.store.header(TENANT, made.run)
    return claim_unit(header, Claim(SYSTEM.new_id("wrk"), "reclaimed", 1), system=SYSTEM)


async def test_r_20_answer_that_comes_is_the_answer() -> None:
    """No doubt, no second look."""
    store, made = await ready()
    assert await commit_surely(store, [await claim(made)], system=SYSTEM) == [Committed()]
    assert store.commits == 1


async def test_r_20_claim_whose_answer_was_lost_is_recognised() -> None:
    """It raised the epoch, so its repetition is answered LeaseLost: it is the own one."""
    store, made = await ready()
    store.lose_after = 1
    assert await commit_surely(store, [await claim(made)], system=SYSTEM) == [Committed()]
    assert (await store.header(TENANT, made.run)).epoch == 2


async def test_r_20_claim_that_never_arrived_is_made() -> None:
    """Three times nothing, then it lands, once."""
    store, made = await ready()
    store.lose_before = 3
    assert await commit_surely(store, [await claim(made)], system=SYSTEM) == [Committed()]
    assert (await store.header(TENANT, made.run)).epoch == 2
    assert store.commits == 4


async def test_r_20_others_win_while_in_doubt() -> None:
    """What stands at the place is not ours: the refusal is the truth."""
    store, made = await ready()
    mine, theirs = await claim(made), await claim(made)
    store.lose_before = 1
    await MemoryStore.commit(store, [theirs])
    assert await commit_surely(store, [mine], system=SYSTEM) == [LeaseLost(made.run)]


async def test_r_20_units_of_a_batch_have_their_own_fates() -> None:
    """One landed before the answer was lost, one had been overtaken."""
    store, first = await ready()
    second = await held(store)
    units = [await claim(first), await claim(second)]
    await write(second, steer(second.run))
    store.lose_after = 1
    answers = await commit_surely(store, units, system=SYSTEM)
    assert answers == [Committed(), SeqConflict(second.run)]


async def test_adm_1_admission_whose_answer_was_lost_is_recognised() -> None:
    """Its id is taken, by itself."""
    store = Losing()
    commit = SYSTEM.new_id("com")
    record = run_admitted(SYSTEM, version="0" * 64, scope=Scope(tenant=TENANT), input=None)
    unit = Unit(commit, TENANT, (admit(record, commit_id=commit, system=SYSTEM),))
    store.lose_after = 1
    assert await commit_surely(store, [unit], system=SYSTEM) == [Committed()]


async def test_r_20_who_gives_up_is_told_that_it_lost() -> None:
    """A worker whose id is dead asks no longer."""
    store, made = await ready()
    store.lose_before = 100
    unit = await claim(made)
    with pytest.raises(Lost):
        await commit_surely(store, [unit], system=SYSTEM, give_up=lambda: store.commits >= 2)
    assert store.commits == 2


async def test_r_20_patience_ends_with_the_stores_error() -> None:
    """A caller with a deadline is told that the fate is unknown."""
    store, made = await ready()
    store.lose_before = 100
    unit = await claim(made)
    with pytest.raises(StoreUnavailable):
        await commit_surely(store, [unit], system=SYSTEM, patience_seconds=0.0)


async def test_r_8_question_is_asked_until_it_is_answered() -> None:
    """Only the store's absence is waited for."""
    left = [StoreUnavailable(problem="gone"), StoreUnavailable(problem="gone")]

    async def ask() -> int:
        if left:
            raise left.pop()
        return 7

    async def broken() -> int:
        raise KeyError("a bug")

    assert await ask_surely(ask) == 7
    with pytest.raises(KeyError):
        await ask_surely(broken)
