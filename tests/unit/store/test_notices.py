"""Who is woken by which commit (STR-1)."""

import asyncio

from psych_runtime.store._notices import Notices


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
    notices.tell({("acme", "three"): 9, ("acme", "one"): 3, ("globex", "two"): 9})
    await _asleep(ours, theirs)
    notices.tell({("acme", "one"): 4, ("acme", "two"): 3})
    assert await ours == frozenset({"one"})
    await _asleep(theirs)
    notices.tell({("globex", "one"): 4})
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
    notices.tell({("acme", "two"): 6})
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
    notices.tell({("acme", "one"): 2})
    assert await waiting == frozenset({"one"})
