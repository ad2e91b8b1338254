"""Who is woken by which commit (STR-1)."""

import asyncio
from collections.abc import Callable

from psych_runtime.store._notices import Hint, News, Notices, mark_of


async def _asleep(*tasks: asyncio.Task[frozenset[str]]) -> None:
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def _wait(notices: Notices, tenant: str, **heads: int) -> frozenset[str]:
    with notices.waiting(tenant, heads) as waiter:
        await waiter.sleep(30)
        return frozenset(waiter.woken)


async def test_str_1_a_waiter_is_woken_by_its_own_runs_only() -> None:
    """By tenant, by Run, and by a head that it has not seen."""
    notices = Notices()
    ours = asyncio.create_task(_wait(notices, "acme", one=3, two=3))
    theirs = asyncio.create_task(_wait(notices, "globex", one=3))
    await _asleep(ours, theirs)
    notices.announce(News({("acme", "three"): 9, ("acme", "one"): 3, ("globex", "two"): 9}))
    await _asleep(ours, theirs)
    notices.announce(News({("acme", "one"): 4, ("acme", "two"): 3}))
    assert await ours == frozenset({"one"})
    await _asleep(theirs)
    notices.announce(News({("globex", "one"): 4}))
    assert await theirs == frozenset({"one"})


async def test_str_1_nothing_is_left_of_a_waiter() -> None:
    """Woken, cancelled or out of time."""
    notices = Notices()
    waiting = asyncio.create_task(_wait(notices, "acme", one=3, two=5))
    other = asyncio.create_task(_wait(notices, "acme", one=1))
    await _asleep(waiting, other)
    assert notices.heads() == {("acme", "one"): 1, ("acme", "two"): 5}
    other.cancel()
    await asyncio.wait((other,))
    assert notices.heads() == {("acme", "one"): 3, ("acme", "two"): 5}
    notices.announce(News({("acme", "two"): 6}))
    await waiting
    assert notices.heads() == {}
    with notices.waiting("acme", {"one": 1}) as waiter:
        await waiter.sleep(0)
    assert notices.heads() == {}


async def test_str_1_a_waiter_of_a_loop_that_is_gone_harms_nobody() -> None:
    """Its loop was closed while it waited; the others are woken."""
    notices = Notices()

    async def abandon() -> None:
        notices.waiting("acme", {"one": 1}).__enter__()

    await asyncio.to_thread(lambda: asyncio.run(abandon()))
    waiting = asyncio.create_task(_wait(notices, "acme", one=1))
    await _asleep(waiting)
    notices.announce(News({("acme", "one"): 2}))
    assert await waiting == frozenset({"one"})


def _hint(tenant: str, head: int, *, over: bool = False, touched: bool = False) -> Hint:
    return Hint(mark_of(tenant), "one", head, over, touched)


async def _wait_over(notices: Notices, tenant: str, **heads: int) -> frozenset[str]:
    with notices.waiting(tenant, heads, over=True) as waiter:
        await waiter.sleep(30)
        return frozenset(waiter.woken)


async def test_str_1_who_waits_for_the_end_is_woken_by_it_alone() -> None:
    """Not by commits before; a head of which the state is not known may be the end."""
    notices = Notices()
    name = ("acme", "one")
    ends: tuple[Callable[[], None], ...] = (
        lambda: notices.announce(News({name: 5}, over=frozenset({name}))),
        lambda: notices.announce(News({}, {name: 3}, over=frozenset({name}))),
        lambda: notices.announce(News({name: 4})),
        lambda: notices.hear([_hint("acme", 4, over=True)]),
    )
    for last in ends:
        waiting = asyncio.create_task(_wait_over(notices, "acme", one=3))
        await _asleep(waiting)
        notices.announce(News({name: 4}, over=frozenset()))
        notices.announce(News({name: 3}, over=frozenset({name})))
        notices.announce(News({}, {name: 3}, over=frozenset()))
        notices.hear([_hint("acme", 9), _hint("globex", 9, over=True)])
        await _asleep(waiting)
        last()
        assert await waiting == frozenset({"one"})


async def test_str_1_a_hint_wakes_the_tenant_that_it_is_of() -> None:
    """A tenant that waits for the Run of another is told nothing."""
    notices = Notices()
    ours = asyncio.create_task(_wait(notices, "acme", one=3))
    theirs = asyncio.create_task(_wait(notices, "globex", one=3))
    await _asleep(ours, theirs)
    notices.hear([_hint("acme", 3), _hint("initech", 9)])
    await _asleep(ours, theirs)
    notices.hear([_hint("acme", 3, touched=True)])
    assert await ours == frozenset({"one"})
    await _asleep(theirs)
    theirs.cancel()


async def _at_once(notices: Notices, tenant: str, head: int, *, over: bool = False) -> bool:
    with notices.waiting(tenant, {"one": head}, over=over) as waiter:
        return waiter.woken == {"one"}


async def test_str_1_what_was_told_before_the_wait_ends_it() -> None:
    """By head, end and tenant; a change without records is nothing that could be missed twice."""
    notices = Notices(remembers=2)
    notices.hear([_hint("acme", 4)])
    assert await _at_once(notices, "acme", 3)
    assert not await _at_once(notices, "acme", 4)
    assert not await _at_once(notices, "globex", 3)
    assert not await _at_once(notices, "acme", 3, over=True)
    notices.hear([_hint("acme", 4, touched=True)])
    assert not await _at_once(notices, "acme", 4)
    notices.hear([_hint("acme", 5, over=True)])
    notices.announce(News({("acme", "one"): 6}, over=frozenset()))
    notices.hear([_hint("acme", 2)])
    assert await _at_once(notices, "acme", 5, over=True)


async def test_str_1_what_was_told_longest_ago_is_forgotten() -> None:
    """Of more Runs than are remembered; of none where the rows are looked at anyway."""
    notices, forgetful = Notices(remembers=2), Notices()
    for each in (notices, forgetful):
        for run_id in ("one", "two", "one"):
            each.announce(News({("acme", run_id): 4}, over=frozenset()))
    assert await _at_once(notices, "acme", 3)
    assert not await _at_once(forgetful, "acme", 3)
    for run_id in ("two", "three"):
        notices.announce(News({("acme", run_id): 4}, over=frozenset()))
    assert not await _at_once(notices, "acme", 3)
