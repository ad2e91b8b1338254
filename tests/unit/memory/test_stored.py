"""Memory over a store's small values: what is written, and what is said when it cannot be."""

import pytest

from psych_runtime._system import System
from psych_runtime.errors import CorruptRow, StoreUnavailable
from psych_runtime.memory.stored import StoredMemory
from psych_runtime.ports.memory import MAX_MEMORY_BYTES, MAX_MEMORY_ENTRIES, entry_bytes
from psych_runtime.ports.store import MAX_VALUE_BYTES
from psych_runtime.store.faults import Faults, FaultyStore
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.counting import CountingSystem
from psych_schema.common import Scope
from psych_schema.store import KvRow

ANNA = Scope(tenant="acme", principal="anna")


class Crowded(MemoryStore):
    """Has somebody else write before each put."""

    puts = 0

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        self.puts += 1
        await super().put_value(tenant, kind, key, "[]", expect=expect)
        return await super().put_value(tenant, kind, key, value, expect=expect)


async def test_r_1_an_owner_is_one_value_in_the_order_of_what_was_said() -> None:
    """The newest stands last; the tenant's own are of another kind."""
    store = MemoryStore()
    memory = StoredMemory(store, CountingSystem())
    for key, value in (("a", "1"), ("b", "\u00e9"), ("a", "2")):
        await memory.remember(ANNA, key, value)
    await memory.remember(Scope(tenant="acme"), "c", "3")
    row = await store.value("acme", "memory", "anna")
    assert row is not None
    assert row.value == (
        '[["b","\u00e9","2026-11-29T20:00:00.002000Z"],["a","2","2026-11-29T20:00:00.003000Z"]]'
    )
    own = await store.value("acme", "memory.tenant", "-")
    assert own is not None
    assert own.value == '[["c","3","2026-11-29T20:00:00.004000Z"]]'


async def test_r_30_the_largest_memory_fits_a_value() -> None:
    """As many entries as may be, and as many bytes: what stands around them counts, too."""
    store = MemoryStore()
    memory = StoredMemory(store)
    each = MAX_MEMORY_BYTES // MAX_MEMORY_ENTRIES
    value = "\x01" * ((each - entry_bytes("000", "")) // len("\\u0001"))
    for number in range(MAX_MEMORY_ENTRIES):
        await memory.remember(ANNA, f"{number:03}", value)
    row = await store.value("acme", "memory", "anna")
    assert row is not None
    assert MAX_MEMORY_BYTES * 0.99 < len(row.value.encode()) < MAX_VALUE_BYTES * 0.9


async def test_r_1_forgetting_nothing_writes_nothing() -> None:
    """No row is made for it, and none gets another revision."""
    store = MemoryStore()
    memory = StoredMemory(store)
    assert not await memory.forget(ANNA, "a")
    assert await store.value("acme", "memory", "anna") is None
    await memory.remember(ANNA, "a", "1")
    before = await store.value("acme", "memory", "anna")
    assert not await memory.forget(ANNA, "b")
    assert await store.value("acme", "memory", "anna") == before


async def test_r_1_an_empty_memory_keeps_its_row() -> None:
    """So that whoever read it before cannot write over what is remembered next."""
    store = MemoryStore()
    memory = StoredMemory(store)
    await memory.remember(ANNA, "a", "1")
    assert await memory.forget(ANNA, "a")
    row = await store.value("acme", "memory", "anna")
    assert row is not None
    assert row.value == "[]"
    assert await memory.recall(ANNA) == []


async def test_r_20_a_call_whose_answer_was_lost_is_repeated() -> None:
    """It is done, or it was not: once it is repeated, it is done once."""
    store = MemoryStore()
    memory = StoredMemory(store)
    for kind in ("lost", "unanswered"):
        lossy = StoredMemory(FaultyStore(store, Faults(System(), {kind: 1.0})))
        for call in (lossy.remember(ANNA, "a", "1"), lossy.forget(ANNA, "a"), lossy.recall(ANNA)):
            with pytest.raises(StoreUnavailable):
                await call
        for _ in range(2):
            await memory.remember(ANNA, "a", "1")
        assert [entry.key for entry in await memory.recall(ANNA)] == ["a"]


async def test_r_20_where_others_are_always_first_it_is_unavailable() -> None:
    """After a hundred tries, with nothing half-written."""
    store = Crowded()
    with pytest.raises(StoreUnavailable, match="first 100 times"):
        await StoredMemory(store, _Hasty()).remember(ANNA, "a", "1")
    assert store.puts == 100
    row = await store.value("acme", "memory", "anna")
    assert row is not None
    assert row.value == "[]"


class _Hasty(System):
    def random(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    "text", ["", "null", "{}", "[1]", '[["a"]]', '[["a","b","yesterday"]]', '[["a",1,null]]']
)
async def test_log_5_entries_that_somebody_has_changed_are_corrupt(text: str) -> None:
    """The row is named; nothing is written over it."""
    store = MemoryStore()
    row = await store.put_value("acme", "memory", "anna", text, expect=None)
    memory = StoredMemory(store)
    for call in (memory.recall(ANNA), memory.forget(ANNA, "a"), memory.remember(ANNA, "a", "1")):
        with pytest.raises(CorruptRow, match="memory anna of table kv"):
            await call
    assert await store.value("acme", "memory", "anna") == row
