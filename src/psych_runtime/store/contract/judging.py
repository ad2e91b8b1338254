"""How units are judged and applied: order, fences, all or none, gapless logs (R-1, R-4)."""

import asyncio
from typing import Final

from psych_runtime.ports.answers import (
    Committed,
    KeyTaken,
    LeaseLost,
    RunNotFound,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import HeaderChange, Store
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    admit,
    change,
    claimed,
    key_row,
    new_id,
    sealed,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness

__all__ = [
    "a_change_without_records_leaves_the_head",
    "a_fence_that_is_not_the_epoch_writes_nothing",
    "a_head_that_is_ahead_is_a_conflict",
    "a_key_belongs_to_its_tenant_and_run",
    "a_key_is_inserted_once",
    "a_place_in_a_thread_is_taken_once",
    "a_unit_is_applied_all_or_none",
    "a_unit_is_judged_in_the_stated_order",
    "a_unit_that_is_sent_twice_is_written_once",
    "an_admitted_id_is_admitted_once",
    "an_outside_writer_needs_no_fence",
    "of_racing_writers_exactly_one_commits_each_round",
    "the_header_follows_the_last_record",
    "units_of_one_call_are_independent",
]

_WRITERS: Final = 16
_ROUNDS: Final = 4


async def _seqs(store: Store, run_id: str) -> list[int]:
    return [row.seq for row in await store.read(TENANT, run_id)]


@check("R-1", "R-4", methods=("commit",))
async def a_unit_is_judged_in_the_stated_order(harness: Harness) -> None:
    """Of two faults the one that comes first in the port's list is answered."""
    async with harness.open() as store:
        run_id = await claimed(store, "wrk_1")
        taken = await store.header(TENANT, run_id)
        missing = new_id()
        await write(store, unit(admit(), keys=[key_row("k", digest="first", receipt="r")]))
        keys = [key_row("k", digest="second")]
        place = {"thread": taken.thread, "position": taken.position}
        answers = await store.commit(
            [
                unit(change(run_id, 1, fence=0), change(missing, 1)),
                unit(change(run_id, 1, fence=0), keys=keys),
                unit(change(run_id, 1, fence=1), keys=keys),
                unit(admit(run_id), keys=keys),
                unit(admit(columns=place), keys=keys),
                unit(admit(columns=place)),
            ]
        )
        wanted = [
            RunNotFound(missing),
            LeaseLost(run_id),
            SeqConflict(run_id),
            SeqConflict(run_id),
            KeyTaken("k", "first", "r"),
            ThreadTaken(taken.thread, taken.position),
        ]
        same(answers, wanted, "answers to units with two faults each")
        same(await store.header(TENANT, run_id), taken, "the header after refusals")
        same(await _seqs(store, run_id), [1, 2], "the log after refusals")


@check("R-1", "LOG-1", methods=("commit", "read", "header", "twin"))
async def of_racing_writers_exactly_one_commits_each_round(harness: Harness) -> None:
    """Sixteen writers at one head: one is committed, the log stays gapless."""
    async with harness.open() as store:
        run_id = await admission(store)
        twins = [store.twin() for _ in range(_WRITERS)]
        for head in range(1, _ROUNDS + 1):
            tries = [twin.commit([unit(change(run_id, head))]) for twin in twins]
            answers = [answer for (answer,) in await asyncio.gather(*tries)]
            same(answers.count(Committed()), 1, "units committed at one head")
            conflicts = answers.count(SeqConflict(run_id))
            same(conflicts, _WRITERS - 1, "units refused at one head")
        for twin in twins:
            await twin.close()
        same(await _seqs(store, run_id), list(range(1, _ROUNDS + 2)), "the log after the races")
        same((await store.header(TENANT, run_id)).head, _ROUNDS + 1, "the head after the races")


@check("R-4", methods=("commit", "header"))
async def a_fence_that_is_not_the_epoch_writes_nothing(harness: Harness) -> None:
    """Whoever was taken can write nothing more, whatever head he names; nor can the future."""
    async with harness.open() as store:
        run_id = await claimed(store, "wrk_1")
        retaken = HeaderChange(worker="wrk_2", epoch=2)
        await write(store, unit(change(run_id, 2, fence=1, edit=retaken)))
        for fence in (0, 1, 3):
            for head in (2, 3):
                answers = await store.commit([unit(change(run_id, head, fence=fence))])
                same(answers, [LeaseLost(run_id)], f"a write with fence {fence} under epoch 2")
        same(await _seqs(store, run_id), [1, 2, 3], "the log after fenced writes")
        await write(store, unit(change(run_id, 3, fence=2)))


@check("R-2", "R-4", methods=("commit",))
async def an_outside_writer_needs_no_fence(harness: Harness) -> None:
    """Without a fence the head alone decides, under every epoch."""
    async with harness.open() as store:
        run_id = await claimed(store, "wrk_1")
        answers = await store.commit([unit(change(run_id, 1)), unit(change(run_id, 2))])
        same(answers, [SeqConflict(run_id), Committed()], "answers to outside writers")


@check("R-1", methods=("commit", "read"))
async def a_head_that_is_ahead_is_a_conflict(harness: Harness) -> None:
    """No log gets a gap: a unit behind the end and one beyond it are both refused."""
    async with harness.open() as store:
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1, count=3)))
        for head in (0, 1, 3, 5, 100):
            answers = await store.commit([unit(change(run_id, head))])
            same(answers, [SeqConflict(run_id)], f"a write at head {head} of 4")
        same(await _seqs(store, run_id), [1, 2, 3, 4], "the log after refusals")


@check("R-1", methods=("commit", "header", "read", "key"))
async def a_unit_is_applied_all_or_none(harness: Harness) -> None:
    """When its second change is refused, nothing is left of the first, its key or admission."""
    async with harness.open() as store:
        one, two, child = await admission(store), await admission(store), new_id()
        refused = unit(
            change(one, 1, edit=HeaderChange(state="suspended", opened={"wait_1": 2})),
            admit(child),
            change(two, 7),
            keys=[key_row("k", run_id=one)],
        )
        before = await store.header(TENANT, one)
        same(await store.commit([refused]), [SeqConflict(two)], "the answer to a linked unit")
        same(await store.header(TENANT, one), before, "the first header after a refused unit")
        same(await _seqs(store, one), [1], "the first log after a refused unit")
        same(await store.key(TENANT, one, "k"), None, "the key of a refused unit")
        answers = await store.commit([unit(change(child, 1))])
        same(answers, [RunNotFound(child)], "a write to the Run of a refused admission")
        await write(store, unit(change(one, 1), admit(child), change(two, 1)))
        same(await _seqs(store, child), [1], "the log of a linked admission")
        same(await _seqs(store, two), [1, 2], "the log of a linked change")


@check("R-1", "R-22", methods=("commit",))
async def units_of_one_call_are_independent(harness: Harness) -> None:
    """Refused units leave their neighbours alone; answers come in the order of the units."""
    async with harness.open() as store:
        one, two, three = [await admission(store) for _ in range(3)]
        units = [
            unit(change(one, 1)),
            unit(change(two, 9)),
            unit(change(three, 1)),
            unit(change(one, 1)),
            unit(change(one, 2)),
        ]
        wanted = [Committed(), SeqConflict(two), Committed(), SeqConflict(one), Committed()]
        same(await store.commit(units), wanted, "answers of one call")
        same(await _seqs(store, one), [1, 2, 3], "the log written by two units of one call")
        same(await _seqs(store, two), [1], "the log of the refused unit")
        same(await store.commit([]), [], "answers to no units")


@check("ADM-2", "R-20", methods=("commit", "key"))
async def a_key_is_inserted_once(harness: Harness) -> None:
    """The second unit with a key learns digest and receipt of the first, also in one call."""
    async with harness.open() as store:
        first = key_row("k", digest="one", receipt='{"run_id":"é\\u0000"}')
        other = key_row("k", digest="two")
        answers = await store.commit([unit(admit(), keys=[first]), unit(admit(), keys=[other])])
        wanted = [Committed(), KeyTaken("k", first.digest, first.receipt)]
        same(answers, wanted, "answers to one key twice in a call")
        answers = await store.commit([unit(admit(), keys=[key_row("new"), other])])
        same(answers, wanted[1:], "the answer to a key of an earlier call")
        same(await store.key(TENANT, "", "k"), first, "the row of the key")
        same(await store.key(TENANT, "", "new"), None, "the other key of a refused unit")


@check("ADM-2", methods=("commit", "key"))
async def a_key_belongs_to_its_tenant_and_run(harness: Harness) -> None:
    """The same key elsewhere is another key; so is one that differs by a space or a case."""
    async with harness.open() as store:
        run_id = await admission(store)
        await write(
            store,
            unit(admit(), keys=[key_row("k")]),
            unit(change(run_id, 1), keys=[key_row("k", run_id=run_id)]),
            unit(admit(), keys=[key_row("K")]),
            unit(admit(), keys=[key_row("k ")]),
            unit(admit(tenant="globex"), tenant="globex", keys=[key_row("k", tenant="globex")]),
        )
        same(await store.key("globex", run_id, "k"), None, "a Run's key in another tenant")


@check("R-18", methods=("commit", "tail"))
async def a_place_in_a_thread_is_taken_once(harness: Harness) -> None:
    """Two successors of one tail: one is admitted, the other is told, also within a unit."""
    async with harness.open() as store:
        thread = {"thread": "line", "position": 2}
        await write(store, unit(admit(columns={"thread": "line", "position": 1})))
        second = admit(columns=thread)
        answers = await store.commit([unit(second), unit(admit(columns=thread))])
        same(answers, [Committed(), ThreadTaken("line", 2)], "two Runs at one position")
        third = {"thread": "line", "position": 3}
        answers = await store.commit([unit(admit(columns=third), admit(columns=third))])
        same(answers, [ThreadTaken("line", 3)], "two Runs of one unit at one position")
        await write(store, unit(admit(tenant="globex", columns=thread), tenant="globex"))
        tail = await store.tail(TENANT, "line")
        same(tail and tail.run_id, second.run_id, "the tail of the thread")
        same(await store.tail(TENANT, "other"), None, "the tail of no thread")


@check("ADM-1", "R-20", methods=("commit", "header"))
async def an_admitted_id_is_admitted_once(harness: Harness) -> None:
    """Also when another tenant admits it, which learns no more than that."""
    async with harness.open() as store:
        run_id = await admission(store)
        before = await store.header(TENANT, run_id)
        answers = await store.commit(
            [unit(admit(run_id)), unit(admit(run_id, tenant="globex"), tenant="globex")]
        )
        same(answers, [SeqConflict(run_id)] * 2, "answers to an id admitted before")
        same(await store.header(TENANT, run_id), before, "the header after the second admission")


@check("R-20", methods=("commit", "read", "twin"))
async def a_unit_that_is_sent_twice_is_written_once(harness: Harness) -> None:
    """After a lost acknowledgement the writer finds its own commit id at the position."""
    async with harness.open() as store:
        run_id = await admission(store)
        commit_id = new_id("com")
        sent = unit(change(run_id, 1, count=2, commit_id=commit_id))._replace(commit_id=commit_id)
        late = store.twin()
        await write(store, sent)
        same(await late.commit([sent]), [SeqConflict(run_id)], "the answer to the same unit again")
        await late.close()
        rows = await store.read(TENANT, run_id, after=1)
        same([row.seq for row in rows], [2, 3], "the log after the unit was sent twice")
        for row, record in zip(rows, sent.changes[0].records, strict=True):
            same(row, record.row, "what stands at the position")
        same(commit_id in rows[0].body, True, "the commit id in the body that is read back")


@check("LOG-1", "R-16", methods=("commit", "header"))
async def the_header_follows_the_last_record(harness: Harness) -> None:
    """Head, hash and instant are the last record's; the schema version only rises."""
    async with harness.open() as store:
        run_id = await admission(store)
        newer = (sealed(run_id, 2, v=3), sealed(run_id, 3, v=2))
        await write(store, unit(change(run_id, 1)._replace(records=newer)))
        row = await store.header(TENANT, run_id)
        found = (row.head, row.head_hash, row.head_at, row.schema_version)
        last = newer[-1]
        same(found, (3, last.hash, last.record.at, 3), "head, hash, instant and schema version")
        await write(store, unit(change(run_id, 3)))
        same((await store.header(TENANT, run_id)).schema_version, 3, "a schema version later")


@check("R-16", "R-17", methods=("commit", "header", "read"))
async def a_change_without_records_leaves_the_head(harness: Harness) -> None:
    """State corrupt and referenced are written at a head, and move none."""
    async with harness.open() as store:
        run_id = await admission(store)
        before = await store.header(TENANT, run_id)
        edit = HeaderChange(state="corrupt", referenced=True)
        await write(store, unit(change(run_id, 1, edit=edit, count=0)))
        wanted = before.model_copy(update={"state": "corrupt", "referenced": True})
        same(await store.header(TENANT, run_id), wanted, "the header without a record")
        answers = await store.commit([unit(change(run_id, 2, edit=edit, count=0))])
        same(answers, [SeqConflict(run_id)], "a change without records at another head")
        same(await _seqs(store, run_id), [1], "the log without a record")
