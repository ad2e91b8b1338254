"""Handles: waiting, twins, other threads, migrating and closing."""

import asyncio
from typing import Final

from psych_runtime.errors import StoreClosed
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import HeaderChange, Store
from psych_runtime.store.contract._build import TENANT, admission, change, new_id, unit, write
from psych_runtime.store.contract._check import Harness

__all__ = [
    "a_commit_of_another_handle_ends_a_wait",
    "a_head_that_has_moved_ends_a_wait_at_once",
    "a_twin_works_in_another_thread",
    "a_wait_ends_with_nothing_after_its_seconds",
    "a_wait_for_the_end_ends_with_the_run",
    "closing_ends_a_wait_for_work",
    "closing_ends_one_handle_only",
    "migrating_again_changes_nothing",
    "what_was_answered_is_there_for_another_handle",
    "whatever_becomes_ready_is_an_arrival",
]

_LONG: Final = 10.0
_SHORT: Final = 0.02


async def _registered[T](waiting: asyncio.Task[T]) -> None:
    """Give a task that waits time to begin; it must not have ended."""
    for _ in range(20):
        await asyncio.sleep(0.001)
    same(waiting.done(), False, "a wait that ended before anything moved")


@check("STR-1", methods=("wait", "commit"))
async def a_head_that_has_moved_ends_a_wait_at_once(harness: Harness) -> None:
    """Only the Runs that are past the given head are named."""
    async with harness.open() as store:
        one, two = await admission(store), await admission(store)
        await write(store, unit(change(one, 1)))
        found = await store.wait(TENANT, {one: 1, two: 1}, _LONG)
        same(found, frozenset({one}), "Runs that have moved")
        same(await store.wait(TENANT, {one: 0, two: 0}, _LONG), frozenset({one, two}), "both")


@check("STR-1", methods=("wait", "commit", "twin"))
async def a_commit_of_another_handle_ends_a_wait(harness: Harness) -> None:
    """A twin's, or one of a handle that was opened apart."""
    async with harness.open() as store, harness.open() as apart:
        run_id = await admission(store)
        twin = store.twin()
        for head, writer in ((1, twin), (2, apart), (3, store)):
            waiting = asyncio.create_task(store.wait(TENANT, {run_id: head}, _LONG))
            await _registered(waiting)
            await write(writer, unit(change(run_id, head)))
            same(await waiting, frozenset({run_id}), f"Runs that moved past {head}")
        await twin.close()


@check("STR-1", "SEC-3", methods=("wait", "commit"))
async def a_wait_ends_with_nothing_after_its_seconds(harness: Harness) -> None:
    """When nothing has moved, or only other Runs, or those of another tenant."""
    async with harness.open() as store:
        run_id, other = await admission(store), await admission(store)
        foreign = await admission(store, tenant="globex")
        same(await store.wait(TENANT, {run_id: 1}, 0), frozenset(), "a wait of no time")
        same(await store.wait(TENANT, {run_id: 1}, _SHORT), frozenset(), "a wait")
        same(await store.wait(TENANT, {new_id(): 0}, _SHORT), frozenset(), "a wait for no Run")
        same(await store.wait(TENANT, {}, _SHORT), frozenset(), "a wait for nothing")
        heads = {run_id: 1, foreign: 0}
        waiting = asyncio.create_task(store.wait(TENANT, heads, _LONG))
        await _registered(waiting)
        await write(store, unit(change(other, 1)))
        await write(store, unit(change(foreign, 1, tenant="globex"), tenant="globex"))
        await _registered(waiting)
        await write(store, unit(change(run_id, 1)))
        same(await waiting, frozenset({run_id}), "a wait among other Runs' commits")


@check("STR-1", methods=("wait", "commit"))
async def a_wait_for_the_end_ends_with_the_run(harness: Harness) -> None:
    """Commits before that wake nobody who waits for it; an end that was there is told at once."""
    async with harness.open() as store, harness.open() as apart:
        for state in ("settled", "corrupt"):
            run_id, other = await admission(store), await admission(store)
            heads = {run_id: 1, other: 1}
            await write(store, unit(change(run_id, 1)))
            found = await store.wait(TENANT, heads, _SHORT, over=True)
            same(found, frozenset(), "the ends of Runs that go on")
            waiting = asyncio.create_task(store.wait(TENANT, heads, _LONG, over=True))
            await _registered(waiting)
            await write(store, unit(change(run_id, 2)))
            await _registered(waiting)
            await write(apart, unit(change(run_id, 3, edit=HeaderChange(state=state))))
            same(await waiting, frozenset({run_id}), f"Runs that are {state}")
            found = await store.wait(TENANT, heads, _LONG, over=True)
            same(found, frozenset({run_id}), f"Runs that were {state} before")


@check("R-15", methods=("arrival", "commit", "twin"))
async def whatever_becomes_ready_is_an_arrival(harness: Harness) -> None:
    """An admission, a Run that is ready again, of any handle; also one before the wait."""
    async with harness.open() as store:
        twin = store.twin()
        before = (await store.arrival(-1, 0)).seen
        run_id = await admission(store)
        seen = (await store.arrival(before, _LONG)).seen
        same((await store.arrival(seen, _SHORT)).seen, seen, "the count when nothing came")
        ready = HeaderChange(state="ready")
        for head, edit, arrives in (
            (1, HeaderChange(state="suspended"), False),
            (2, ready, True),
            (3, HeaderChange(), False),
            (4, ready, True),
        ):
            await write(twin, unit(change(run_id, head, edit=edit)))
            found = (await store.arrival(seen, _LONG if arrives else _SHORT)).seen
            same(found != seen, arrives, f"an arrival by {edit.state}")
            seen = found
        waiting = asyncio.create_task(store.arrival(seen, _LONG))
        await _registered(waiting)
        await admission(twin)
        same((await waiting).seen != seen, True, "a count that an admission has changed")
        same((await store.arrival(seen, _LONG)).seen != seen, True, "a count that was not seen yet")
        await twin.close()


@check("R-21", methods=("arrival", "close", "twin"))
async def closing_ends_a_wait_for_work(harness: Harness) -> None:
    """With StoreClosed, as does asking a closed handle; the others wait on."""
    async with harness.open() as store:
        twin = store.twin()
        seen = (await store.arrival(-1, 0)).seen
        waiting = asyncio.create_task(twin.arrival(seen, _LONG))
        other = asyncio.create_task(store.arrival(seen, _LONG))
        await _registered(waiting)
        await twin.close()
        for asked in (waiting, twin.arrival(seen, 0)):
            try:
                found: object = await asked
            except StoreClosed as error:
                found = error
            same(type(found), StoreClosed, "what a closed handle says of work")
        same(other.done(), False, "a wait of another handle that ended")
        await admission(store)
        same((await other).seen != seen, True, "a count for another handle")


@check("R-21", methods=("twin", "commit", "wait", "close"))
async def a_twin_works_in_another_thread(harness: Harness) -> None:
    """The supervisor's loop is in a thread of its own; commits there are seen and wake here."""
    async with harness.open() as store:
        run_id = await admission(store)
        twin = store.twin()
        waiting = asyncio.create_task(store.wait(TENANT, {run_id: 1}, _LONG))
        await _registered(waiting)
        answers = await asyncio.to_thread(lambda: asyncio.run(_supervise(twin, run_id)))
        same(answers, [Committed()], "the answer in the thread")
        same(await waiting, frozenset({run_id}), "a wait that a thread's commit ends")
        same((await store.header(TENANT, run_id)).head, 2, "the head after the thread")


async def _supervise(twin: Store, run_id: str) -> list[Answer]:
    answers = await twin.commit([unit(change(run_id, 1))])
    await twin.close()
    return answers


@check("ST-4", methods=("migrate",))
async def migrating_again_changes_nothing(harness: Harness) -> None:
    """Also when several handles do it at once, and with Runs in the tables."""
    async with harness.open() as store, harness.open() as apart:
        run_id = await admission(store)
        before = await store.header(TENANT, run_id)
        await asyncio.gather(*[each.migrate() for each in (store, apart, store, apart)])
        same(await apart.header(TENANT, run_id), before, "a header after migrating again")


@check("R-21", methods=("close", "twin", "__aenter__", "__aexit__"))
async def closing_ends_one_handle_only(harness: Harness) -> None:
    """It may be repeated; the other handles go on, and what was written stays."""
    async with harness.open() as first:
        run_id = await admission(first)
        async with harness.open() as store:
            twin = store.twin()
            await store.close()
            await store.close()
            same(await _is_closed(store), True, "a handle that was closed")
            same((await twin.header(TENANT, run_id)).head, 1, "a twin of a closed handle")
            async with twin as entered:
                same(entered is twin, True, "what entering a handle gives")
            same(await _is_closed(twin), True, "a handle that was left")
        same((await first.header(TENANT, run_id)).head, 1, "the first handle")


async def _is_closed(store: Store) -> bool:
    try:
        await store.list_runs(TENANT)
    except StoreClosed:
        return True
    return False


@check("R-1", methods=("commit", "read"))
async def what_was_answered_is_there_for_another_handle(harness: Harness) -> None:
    """A handle that is opened after the answer reads the whole unit."""
    async with harness.open() as keeper:
        async with harness.open() as store:
            run_id = await admission(store)
            await write(store, unit(change(run_id, 1, count=5)))
        async with harness.open() as later:
            rows = await later.read(TENANT, run_id)
            same([row.seq for row in rows], [1, 2, 3, 4, 5, 6], "the log for a later handle")
        same((await keeper.header(TENANT, run_id)).head, 6, "the head for an earlier handle")
