"""Readers who ask the same in the same moment share one answer; nothing is kept of them."""

import asyncio
import gc
from random import Random
from weakref import ref

from psych_runtime import _follow
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.simulation.loop import SimulatedLoop
from psych_schema.common import Scope


async def _begin_to_read(store: MemoryStore) -> None:
    """Have a reader ask, and end, at times before its question goes out."""
    records = _follow.stream(store, "run_1", scope=Scope(tenant="acme"))
    _ = asyncio.ensure_future(anext(records))  # it is left as it stands
    for _ in range(4):
        await asyncio.sleep(0)


def _left(seed: int) -> ref[MemoryStore]:
    """Return a store whose reader's loop was thrown away."""
    store = MemoryStore()
    loop = SimulatedLoop(Random(seed), max_steps=1000)
    loop.run_until_complete(_begin_to_read(store))
    loop.discard()
    return ref(store)


def test_str_2_a_store_is_not_kept_by_readers_whose_loop_was_thrown_away() -> None:
    """Their question never went out, and nobody is left to take it back."""
    stores = [_left(seed) for seed in range(50)]  # in some the question's turn never comes
    gc.collect()
    assert [one() for one in stores] == [None] * 50
    assert not _follow._rows._gathering
