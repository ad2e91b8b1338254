"""Commits that are lost, late, doubled or torn: whole, once or never (R-20, ST-8)."""

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import (
    Answer,
    Committed,
    KeyTaken,
    LeaseLost,
    RunNotFound,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import HeaderChange, Store, Unit
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    admit,
    change,
    claim,
    claimed,
    key_row,
    named,
    new_id,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness
from psych_runtime.store.contract._faults import (
    COMMIT_FAULTS,
    Steered,
    behind,
    commit_ids,
    in_doubt,
    is_whole,
    keyed,
    landed,
    late_commits,
    same_struck,
)
from psych_runtime.store.faults import FaultKind, FaultyStore

__all__ = [
    "a_late_admission_is_admitted_once_or_never",
    "a_late_claim_of_an_old_epoch_is_lost",
    "a_late_commit_lands_at_its_head_or_never",
    "an_unanswered_commit_is_found_by_its_id",
    "linked_changes_are_both_or_neither",
    "of_a_torn_group_each_unit_is_whole",
    "what_is_delivered_twice_is_applied_once",
]


@check("R-20", "LOG-1", methods=("commit", "read", "header", "key"))
async def an_unanswered_commit_is_found_by_its_id(harness: Harness) -> None:
    """Sent again it is SeqConflict, and its own id stands at its place; a lost one is not there."""
    fates: tuple[tuple[FaultKind, bool], ...] = (("lost", False), ("unanswered", True))
    for kind, is_there in fates:
        async with harness.open() as store:
            lossy, faults = behind(store, kind)
            run_id = await admission(store)
            sent = named(unit(change(run_id, 1, count=2), keys=[key_row("k", run_id=run_id)]))
            await in_doubt(lossy.commit([sent]), f"a commit that is {kind}")
            same(await is_whole(store, sent), is_there, f"a commit that is {kind}, there")
            wanted: list[Answer] = [SeqConflict(run_id) if is_there else Committed()]
            same(await landed(store, [sent]), wanted, f"the answer after it was {kind}")
            same(await store.commit([sent]), [SeqConflict(run_id)], "the answer once more")
            same((await commit_ids(store, run_id))[1:], [sent.commit_id] * 2, "ids in the log")
            same((await store.header(TENANT, run_id)).head, 3, f"the head after it was {kind}")
            taken = named(claim(await store.header(TENANT, run_id), "wrk_1"))
            await in_doubt(lossy.commit([taken]), f"a claim that is {kind}")
            wanted = [LeaseLost(run_id) if is_there else Committed()]
            same(await landed(store, [taken]), wanted, f"the answer to a claim that was {kind}")
            same((await store.header(TENANT, run_id)).epoch, 1, "the epoch of one claim")
            same_struck(faults, **{kind: 2})


@check("R-20", "R-1", methods=("commit", "read", "header", "key"))
async def a_late_commit_lands_at_its_head_or_never(harness: Harness) -> None:
    """When the head has moved meanwhile, nothing of it lands: neither records nor its key."""
    async with harness.open() as store:
        late, faults = late_commits(store)
        alone, passed, again = [await admission(store) for _ in range(3)]
        units = [keyed(run_id, 1, "late") for run_id in (alone, passed, again)]
        for sent in units:
            await in_doubt(late.commit([sent]), "a commit that lands late")
            same(await is_whole(store, sent), False, "a commit before it lands")
        same_struck(faults, late=3)
        other = keyed(passed, 1, "other")
        await write(store, other, units[2])
        answers = [[Committed()], [SeqConflict(passed)], [SeqConflict(again)]]
        same(await faults.land(), answers, "answers to what landed late")
        for sent, is_there in zip(units, (True, False, True), strict=True):
            same(await is_whole(store, sent), is_there, "a commit after it landed late")
        found = (await commit_ids(store, passed))[1:]
        same(found, [other.commit_id], "the log that moved meanwhile")
        for run_id in (alone, passed, again):
            same((await store.header(TENANT, run_id)).head, 2, "a head after all of them")


@check("R-20", "ADM-1", "ADM-2", "R-18", methods=("commit", "read", "header", "key", "tail"))
async def a_late_admission_is_admitted_once_or_never(harness: Harness) -> None:
    """Not again over a Run that has moved, nor at a taken place, nor under a taken key."""
    async with harness.open() as store:
        late, faults = late_commits(store)
        alone, moved = named(unit(admit())), named(unit(admit()))
        place = {"thread": "line", "position": 2}
        passed = named(unit(admit(columns=place), keys=[key_row("passed")]))
        keyed = named(unit(admit(), keys=[key_row("k", digest="late")]))
        units = (alone, moved, passed, keyed)
        for sent in units:
            await in_doubt(late.commit([sent]), "an admission that lands late")
        same_struck(faults, late=4)
        taken = named(unit(admit(columns=place)))
        holder = key_row("k", digest="first", receipt='"first"')
        await write(store, moved, taken, unit(admit(), keys=[holder]))
        run_id = moved.changes[0].run_id
        await write(store, named(unit(change(run_id, 1))))
        before = await store.header(TENANT, run_id)
        wanted = [
            [Committed()],
            [SeqConflict(run_id)],
            [ThreadTaken("line", 2)],
            [KeyTaken("k", "first", '"first"')],
        ]
        same(await faults.land(), wanted, "answers to admissions that landed late")
        for sent, is_there in ((alone, True), (moved, True), (taken, True)):
            same(await is_whole(store, sent), is_there, "an admission after all of them")
        same(await store.header(TENANT, run_id), before, "a Run that was admitted again late")
        for sent in (passed, keyed):
            gone = sent.changes[0].run_id
            answers = await store.commit([unit(change(gone, 1))])
            same(answers, [RunNotFound(gone)], "a write to a Run that was never admitted")
        same(await store.key(TENANT, "", "passed"), None, "the key of a refused admission")
        tail = await store.tail(TENANT, "line")
        same(tail and tail.run_id, taken.changes[0].run_id, "the tail of the thread")


@check("R-4", "R-20", methods=("commit", "read", "header"))
async def a_late_claim_of_an_old_epoch_is_lost(harness: Harness) -> None:
    """LeaseLost, not SeqConflict; so is the attempt's own late write after it was taken."""
    async with harness.open() as store:
        late, faults = late_commits(store)
        run_id = await admission(store)
        first = named(claim(await store.header(TENANT, run_id), "wrk_1"))
        await in_doubt(late.commit([first]), "a claim that lands late")
        await write(store, claim(await store.header(TENANT, run_id), "wrk_2"))
        own = named(unit(change(run_id, 2, fence=1, edit=HeaderChange(state="settled"))))
        await in_doubt(late.commit([own]), "an attempt's write that lands late")
        await write(store, claim(await store.header(TENANT, run_id), "wrk_3"))
        same_struck(faults, late=2)
        before = await store.header(TENANT, run_id)
        same((before.worker, before.epoch, before.head), ("wrk_3", 2, 3), "who holds the Run")
        same(await faults.land(), [[LeaseLost(run_id)]] * 2, "answers to what landed late")
        same(await store.header(TENANT, run_id), before, "the header after both landed late")
        same(len(await commit_ids(store, run_id)), 3, "records after both landed late")


async def _units(store: Store) -> list[Unit]:
    """Return a unit of each kind that writers send, none of them for another's Run."""
    plain, waiting, keyed, parent = [await admission(store) for _ in range(4)]
    held = await claimed(store, "wrk_1")
    ended = HeaderChange(state="settled", worker=None, opened={"apr_1": 3})
    columns: dict[str, object] = {"thread": held, "position": 2, "previous": held}
    made = (
        unit(change(plain, 1, count=3)),
        claim(await store.header(TENANT, waiting), "wrk_1"),
        unit(change(keyed, 1), keys=[key_row("k", run_id=keyed)]),
        unit(admit(), keys=[key_row(new_id("key"))]),
        unit(change(held, 2, fence=1, edit=ended), admit(columns=columns)),
        unit(change(parent, 1), admit(columns={"parent": parent})),
    )
    return [named(each) for each in made]


@check("R-20", "R-1", "ADM-1", "ST-8", methods=("commit", "read", "header", "key"))
async def what_is_delivered_twice_is_applied_once(harness: Harness) -> None:
    """A change, a claim, an admission, with keys, of two Runs; one by one and all in one call."""
    async with harness.open() as store:
        twice, faults = behind(store, "doubled")
        for in_one_call in (False, True):
            units = await _units(store)
            groups = [units] if in_one_call else [[sent] for sent in units]
            for group in groups:
                same(await twice.commit(group), [Committed()] * len(group), "the first answers")
            for sent in units:
                same(await is_whole(store, sent), True, "a unit that was delivered twice")
                for part in sent.changes:
                    head = (await store.header(TENANT, part.run_id)).head
                    same(head, part.records[-1].row.seq, "a head after a second delivery")
        same_struck(faults, doubled=7)


@check("R-20", "R-22", "ST-8", methods=("commit", "read", "header", "key"))
async def of_a_torn_group_each_unit_is_whole(harness: Harness) -> None:
    """Linked units both or neither; sent again, everything is there once."""
    async with harness.open() as store:
        cuts: set[int] = set()
        for seed in range(1, 9):
            faults = Steered({"torn": 1.0}, seed=seed)
            units = await _units(store)
            await in_doubt(FaultyStore(store, faults).commit(units), "a torn group")
            same_struck(faults, torn=1)
            there = [await is_whole(store, sent) for sent in units]
            cut = there.count(True)
            same(there, [True] * cut + [False] * (len(units) - cut), "the units of a torn group")
            cuts.add(cut)
            answers = await landed(store, units)
            same(answers.count(Committed()), len(units) - cut, "units that landed when sent again")
        same(len(cuts) > 2, True, "groups that were torn at several places")


async def _linked(store: Store) -> list[tuple[Unit, Unit]]:
    """Return each kind of linked unit, and a foreign message to the Run that it ends in."""
    held, parent, other = [await claimed(store, "wrk_1") for _ in range(3)]
    child = await admission(store, columns={"parent": other})
    ended = HeaderChange(state="settled", worker=None, referenced=True)
    place: dict[str, object] = {"thread": held, "position": 2, "previous": held}
    made = (
        (
            unit(change(held, 2, fence=1, edit=ended), admit(columns=place)),
            admit(columns=place),
        ),
        (unit(admit(columns={"parent": parent}), change(parent, 2, fence=1)), change(parent, 2)),
        (unit(change(child, 1, edit=ended), change(other, 2)), change(other, 2)),
    )
    return [(named(linked), named(unit(foreign))) for linked, foreign in made]


@check("ST-8", "R-1", "R-20", methods=("commit", "read", "header"))
async def linked_changes_are_both_or_neither(harness: Harness) -> None:
    """A Run's end and the next one, a child and its parent: at every fault, and in every race."""
    async with harness.open() as store:
        for kind in COMMIT_FAULTS:
            faulty, faults = behind(store, kind)
            for linked, _ in await _linked(store):
                neighbour = named(unit(admit()))
                try:
                    await faulty.commit([linked, neighbour])
                except StoreUnavailable:
                    await faults.landed()  # between the reads of a check it would look torn
                    await is_whole(store, linked)
                await landed(store, [linked, neighbour])
            same_struck(faults, **{kind: 3})
        for linked, foreign in await _linked(store):
            late, faults = late_commits(store)
            await in_doubt(late.commit([linked]), "a linked unit, late")
            await write(store, foreign)
            same([[Committed()]] == await faults.land(), False, "a late linked unit that landed")
            same(await is_whole(store, linked), False, "a linked unit whose other Run had moved")
            same(await is_whole(store, foreign), True, "the message that came between")
