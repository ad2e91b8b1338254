"""What no caller may ask is refused before anything is written; nothing is a list, too (R-1)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from psych_runtime.errors import RunNotFound
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import UNCAPPED, Admit, Exclude, HeaderChange, Store
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    admit,
    change,
    enlisted,
    key_row,
    new_id,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness

__all__ = [
    "a_cap_that_bounds_nothing_is_refused",
    "a_page_may_be_larger_than_any_list",
    "a_page_that_nothing_fits_into_is_refused",
    "a_unit_that_no_writer_may_send_is_refused",
    "empty_lists_are_answered",
    "what_no_caller_may_delete_is_refused",
]

_OTHER: Final = "globex"
_LARGEST: Final = 2**63 - 1

type _Page = Callable[[int], Awaitable[object]]


async def _refused(what: str, ask: Callable[[], Awaitable[object]]) -> None:
    """Ask what must be ValueError itself: it is no error of a driver or a model."""
    try:
        found: object = await ask()
    except Exception as error:  # whatever a driver raises is data here
        found = type(error)
    same(found, ValueError, what)


def _without_records(made: Admit) -> Admit:
    return made._replace(header=made.header.model_copy(update={"head": 0}), records=())


@check("R-1", "ADM-1", methods=("commit", "header", "key", "list_runs"))
async def a_unit_that_no_writer_may_send_is_refused(harness: Harness) -> None:
    """ValueError, and its neighbours of the same call are not written either."""
    async with harness.open() as store:
        run_id = await admission(store)
        before = await store.header(TENANT, run_id)
        keys = [key_row("k")]
        foreign = admit(tenant=_OTHER)
        for what, odd in (
            ("a unit of nothing", unit()),
            ("a unit of a key alone", unit(keys=keys)),
            ("an admission without a record", unit(_without_records(admit()), keys=keys)),
            ("an admission of another tenant", unit(foreign, keys=keys)),
            ("a key of another tenant", unit(admit(), keys=[key_row("k", tenant=_OTHER)])),
            ("the same Run twice", unit(change(run_id, 1), change(run_id, 2), keys=keys)),
            ("the same key twice", unit(change(run_id, 1), keys=keys * 2)),
            ("a gap", unit(change(run_id, 2)._replace(expect_head=1), keys=keys)),
            ("another Run's record", unit(change(new_id(), 1)._replace(run_id=run_id))),
        ):
            await _refused(what, partial(store.commit, [unit(change(run_id, 1)), odd]))
            same(await store.header(TENANT, run_id), before, f"the header after {what}")
            same(await store.key(TENANT, "", "k"), None, f"the key after {what}")
        same((await store.list_runs(_OTHER)).headers, (), "another tenant's Runs")
        page = await store.list_runs(TENANT)
        same([row.run_id for row in page.headers], [run_id], "Runs after all of them")
        answers = await store.commit([unit(change(run_id, 1), keys=keys)])
        same(answers, [Committed()], "the answer to a unit that may be sent")


@check("ST-5", methods=("read", "ready", "overdue", "list_runs", "list_values", "blank"))
async def a_page_that_nothing_fits_into_is_refused(harness: Harness) -> None:
    """A limit is at least 1: less is ValueError, no empty page that says there is no more."""
    async with harness.open() as store:
        pages = await _pages(store)
        for limit in (0, -1):
            for what, ask in pages.items():
                await _refused(f"{limit} of {what}", partial(ask, limit))
        for what, ask in pages.items():
            same(bool(await ask(1)), True, f"one of {what}")


@check("ST-5", methods=("read", "ready", "overdue", "list_runs", "list_values", "blank"))
async def a_page_may_be_larger_than_any_list(harness: Harness) -> None:
    """Up to the largest number that databases count with, by which nothing overflows."""
    async with harness.open() as store:
        for what, ask in (await _pages(store)).items():
            same(await ask(_LARGEST), await ask(90), f"everything of {what}")


async def _pages(store: Store) -> dict[str, _Page]:
    """Return what gives pages, each of which has something to give."""
    aborted = HeaderChange(abort="requested")
    run_id = await admission(store)
    await write(store, unit(change(run_id, 1, edit=aborted)))
    await store.put_value(TENANT, "word", "a", "1", expect=None)

    async def ready(limit: int) -> object:
        return (await store.ready(limit)).headers

    return {
        "a log": lambda limit: store.read(TENANT, run_id, limit=limit),
        "claimable Runs": ready,
        "overdue Runs": store.overdue,
        "a list": lambda limit: store.list_runs(TENANT, limit=limit),
        "values": lambda limit: store.list_values(TENANT, "word", limit=limit),
        "records to blank": lambda limit: store.blank(TENANT, run_id, limit=limit),
    }


@check("R-15", methods=("set_cap", "cap"))
async def a_cap_that_bounds_nothing_is_refused(harness: Harness) -> None:
    """A bound below 0, or the mark of one that was lifted: the cap stays what it was."""
    async with harness.open() as store:
        for limit in (-1, UNCAPPED):
            await _refused(f"a cap of {limit}", partial(store.set_cap, TENANT, limit))
            same(await store.cap(TENANT), None, f"the cap after {limit}")
        await store.set_cap(TENANT, 3)
        await _refused("another cap", partial(store.set_cap, TENANT, -1))
        cap = await store.cap(TENANT)
        same(None if cap is None else cap.limit, 3, "the cap after that")


@check("ST-6", methods=("delete_runs", "header", "list_runs"))
async def what_no_caller_may_delete_is_refused(harness: Harness) -> None:
    """More than 90 Runs, or one twice: nothing is deleted."""
    async with harness.open() as store:
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1, edit=HeaderChange(state="settled"))))
        row = await store.header(TENANT, run_id)
        crowd = [row.model_copy(update={"run_id": new_id()}) for _ in range(90)]
        for what, headers in (("a Run twice", [row, row]), ("91 Runs", [row, *crowd])):
            await _refused(what, partial(store.delete_runs, TENANT, headers))
            same(await store.header(TENANT, run_id), row, f"the header after {what}")
        gone = await store.delete_runs(TENANT, [row, *crowd[:-1]])
        same(gone, False, "the answer to 90 Runs, most of which are gone")
        same(len((await store.list_runs(TENANT)).headers), 1, "Runs after that")


@check("R-1", methods=("commit", "renew", "wait", "ready", "enlist", "workers", "delete_runs"))
async def empty_lists_are_answered(harness: Harness) -> None:
    """Nobody needs to look whether a list has something; what a list names twice counts once."""
    async with harness.open() as store:
        run_id = await admission(store)
        worker = await enlisted(store)
        same(await store.commit([]), [], "answers to no units")
        same(await store.wait(TENANT, {}, 0, over=True), frozenset(), "a wait for no Runs")
        for run_ids in ((), (new_id(),), (run_id, run_id)):
            renewed = await store.renew(worker, lease_seconds=100.0, run_ids=run_ids)
            seen = None if renewed is None else list(renewed.seen)
            same(seen, sorted({run_id}.intersection(run_ids)), f"{len(run_ids)} renewed Runs")
        for exclude in (Exclude((), ()), Exclude((), ("e" * 64, "e" * 64))):
            found = await store.ready(5, exclude=exclude)
            same([row.run_id for row in found.headers], [run_id], "Runs when nothing is excluded")
        same([row.tools for row in await store.workers()], [()], "the tools of who has none")
        await write(store, unit(admit(), keys=[key_row("k"), key_row("kept")]))
        same(await store.delete_runs(TENANT, ()), True, "the answer to no Runs")
        same(await store.delete_runs(TENANT, (), ["k", "k", "none"]), True, "the answer to keys")
        same(await store.key(TENANT, "", "k"), None, "a key that was forgotten")
        same(await store.key(TENANT, "", "kept"), key_row("kept"), "another key")
        try:
            gone: object = await store.header(TENANT, "")
        except RunNotFound as error:
            gone = error.run_id
        same(gone, "", "a Run without an id")
