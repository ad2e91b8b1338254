"""What is taken away: contents of a Run (R-11), and whole Runs (ST-6)."""

from typing import Final

from psych_runtime.errors import RunNotFound
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import Change, HeaderChange, Store
from psych_runtime.store.contract._build import (
    TENANT,
    Text,
    admission,
    admit,
    change,
    claimed,
    key_row,
    sealed,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness
from psych_schema.store import KeyRow, RecordRow, RunRow

__all__ = [
    "a_run_that_has_changed_is_not_deleted",
    "a_tail_that_is_deleted_leaves_the_one_before",
    "blanking_stops_at_its_limit_and_goes_on",
    "blanking_takes_contents_and_nothing_else",
    "runs_are_deleted_with_all_that_is_theirs",
]

_OTHER: Final = "globex"
_SETTLED: Final = HeaderChange(state="settled")


async def _said(store: Store, count: int) -> str:
    """Admit a Run; write a record without a content, then `count` with one."""
    run_id = await admission(store)
    texts = [Text(), *[Text(content=f'"{place}"', salt="0" * 32) for place in range(count)]]
    records = tuple(sealed(run_id, seq, text=text) for seq, text in enumerate(texts, 2))
    await write(store, unit(Change(run_id, 1, None, records, _SETTLED)))
    return run_id


def _bare(rows: list[RecordRow]) -> list[RecordRow]:
    return [row.model_copy(update={"content": None, "salt": None}) for row in rows]


@check("R-11", "ST-6", methods=("blank", "read", "header"))
async def blanking_takes_contents_and_nothing_else(harness: Harness) -> None:
    """Bodies, header and other Runs stay as they were; a salt goes with its content, or alone."""
    async with harness.open() as store:
        run_id, other = await _said(store, 3), await _said(store, 3)
        salt = sealed(run_id, 6, text=Text(salt="1" * 32))
        await write(store, unit(Change(run_id, 5, None, (salt,), HeaderChange())))
        rows, header = await store.read(TENANT, run_id), await store.header(TENANT, run_id)
        kept = await store.read(TENANT, other)
        try:
            found: object = await store.blank(_OTHER, run_id)
        except RunNotFound as error:
            found = error.run_id
        same(found, run_id, "blanking another tenant's Run")
        same(await store.read(TENANT, run_id), rows, "the log after that")
        same(await store.blank(TENANT, run_id), True, "nothing left")
        same(await store.read(TENANT, run_id), _bare(rows), "the log that was blanked")
        same(await store.header(TENANT, run_id), header, "its header")
        same(await store.read(TENANT, other), kept, "the log of another Run")
        same(await store.blank(TENANT, run_id), True, "nothing left the second time")
        same(await store.read(TENANT, run_id), _bare(rows), "the log that was blanked twice")


@check("R-11", methods=("blank", "read"))
async def blanking_stops_at_its_limit_and_goes_on(harness: Harness) -> None:
    """No more at once than was said; True with the last one."""
    async with harness.open() as store:
        run_id = await _said(store, 5)

        async def left() -> int:
            rows = await store.read(TENANT, run_id)
            return sum((row.content, row.salt) != (None, None) for row in rows)

        for limit, over, wanted in ((2, False, 3), (1, False, 2), (2, True, 0)):
            same(await store.blank(TENANT, run_id, limit=limit), over, f"the end at {wanted} left")
            same(await left(), wanted, f"contents left after {limit}")


async def _thread(store: Store, count: int, *, tenant: str = TENANT) -> list[RunRow]:
    """Admit a thread of settled Runs, each with a key of its admission and one of its own."""
    rows: list[RunRow] = []
    for position in range(1, count + 1):
        columns: dict[str, object] = {"thread": "line", "position": position}
        admitted = admit(tenant=tenant, columns=columns)
        ends = change(admitted.run_id, 1, edit=_SETTLED, tenant=tenant)
        first = key_row(f"k{position}", tenant=tenant)
        own = key_row("k", run_id=admitted.run_id, tenant=tenant)
        await write(
            store,
            unit(admitted, tenant=tenant, keys=[first]),
            unit(ends, tenant=tenant, keys=[own]),
        )
        rows.append(await store.header(tenant, admitted.run_id))
    return rows


async def _is_gone(store: Store, row: RunRow) -> None:
    """Raise AssertionError unless nothing of a Run is left."""
    found: list[object] = []
    for ask in (store.header, store.read):
        try:
            found.append(await ask(row.tenant, row.run_id))
        except RunNotFound:
            continue
    same(found, [], f"what is left of {row.run_id}")
    same(await store.key(row.tenant, row.run_id, "k"), None, f"a key of {row.run_id}")


async def _is_there(store: Store, row: RunRow) -> None:
    """Raise AssertionError unless all of a Run of `_thread` is left."""
    try:
        header = await store.header(row.tenant, row.run_id)
        records = await store.read(row.tenant, row.run_id)
    except RunNotFound as error:
        raise AssertionError(f"{row.run_id} is gone") from error
    same(header, row, f"the header of {row.run_id}")
    same(len(records), row.head, f"records of {row.run_id}")
    own: KeyRow | None = await store.key(row.tenant, row.run_id, "k")
    same(own is not None, True, f"a key of {row.run_id}")


@check("ST-6", "SEC-3", methods=("delete_runs", "header", "read", "key", "tail", "list_runs"))
async def runs_are_deleted_with_all_that_is_theirs(harness: Harness) -> None:
    """Records, keys, places in threads and the keys that are named; nothing of anybody else."""
    async with harness.open() as store:
        ours, theirs = await _thread(store, 2), await _thread(store, 2, tenant=_OTHER)
        bystander = await claimed(store, "wrk_1")
        await write(store, unit(admit(), keys=[key_row("kept")]))
        same(await store.delete_runs(TENANT, ours, ["k1", "k2", "none"]), True, "the deletion")
        for row in ours:
            await _is_gone(store, row)
        same(await store.tail(TENANT, "line"), None, "the thread")
        listed = {row.run_id for row in (await store.list_runs(TENANT)).headers}
        same(listed & {row.run_id for row in ours}, set(), "what is listed of them")
        same(bystander in listed, True, "what is listed of others")
        for key, wanted in (("k1", None), ("k2", None), ("kept", key_row("kept"))):
            same(await store.key(TENANT, "", key), wanted, f"the key {key} of an admission")
        for row in theirs:
            await _is_there(store, row)
        same(await store.tail(_OTHER, "line"), theirs[1], "another tenant's thread")
        same(await store.key(_OTHER, "", "k1"), key_row("k1", tenant=_OTHER), "and its key")
        again = admit(columns={"thread": "line", "position": 1})
        answers = await store.commit([unit(again, keys=[key_row("k1")])])
        same(answers, [Committed()], "an admission at the same place with the same key")
        same(await store.delete_runs(TENANT, ours), False, "the deletion of what is gone")
        same(await store.delete_runs(TENANT, [], ["k1"]), True, "the deletion of a key alone")
        same(await store.key(TENANT, "", "k1"), None, "the key that was deleted alone")


@check("ST-6", "R-18", methods=("delete_runs", "header", "read", "key"))
async def a_run_that_has_changed_is_not_deleted(harness: Harness) -> None:
    """Nor is any other of the call: another head, a reference, another state, or gone."""
    async with harness.open() as store:
        rows = await _thread(store, 2)
        first, last = rows
        for what, stale in (
            ("head", last.model_copy(update={"head": last.head - 1})),
            ("state", last.model_copy(update={"state": "running"})),
            ("reference", last.model_copy(update={"referenced": True})),
        ):
            deleted = await store.delete_runs(TENANT, [first, stale], ["k1"])
            same(deleted, False, f"the deletion of a Run with another {what}")
        same(await store.delete_runs(_OTHER, rows, ["k1"]), False, "as another tenant")
        edits = HeaderChange(referenced=True)
        await write(store, unit(change(last.run_id, last.head, edit=edits, count=0)))
        same(await store.delete_runs(TENANT, rows), False, "the deletion of what is referenced")
        await _is_there(store, first)
        referenced = last.model_copy(update={"referenced": True})
        await _is_there(store, referenced)
        same(await store.key(TENANT, "", "k1"), key_row("k1"), "the key of an admission")
        same(await store.delete_runs(TENANT, [first, referenced]), True, "as they are now")
        await _is_gone(store, first)
        await _is_gone(store, referenced)


@check("ST-6", "R-18", methods=("delete_runs", "tail"))
async def a_tail_that_is_deleted_leaves_the_one_before(harness: Harness) -> None:
    """A part of a thread goes from either end."""
    async with harness.open() as store:
        one, two, three, four = await _thread(store, 4)
        same(await store.delete_runs(TENANT, [four]), True, "the deletion of the last one")
        same(await store.tail(TENANT, "line"), three, "the tail after that")
        same(await store.delete_runs(TENANT, [one]), True, "the deletion of the first one")
        same(await store.tail(TENANT, "line"), three, "the tail after that, too")
        same(await store.delete_runs(TENANT, [three, two]), True, "the deletion of the rest")
        same(await store.tail(TENANT, "line"), None, "the tail of nothing")
