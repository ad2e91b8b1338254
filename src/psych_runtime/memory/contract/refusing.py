"""What no memory keeps is refused alike, and changes nothing."""

from psych_runtime.errors import InvalidArgument, InvalidPayload, MemoryFull, PayloadTooLarge
from psych_runtime.memory.contract._check import ANNA, Harness, entries
from psych_runtime.ports.checks import check, refused, same
from psych_runtime.ports.memory import (
    MAX_MEMORY_BYTES,
    MAX_MEMORY_ENTRIES,
    MAX_MEMORY_ENTRY_BYTES,
    MAX_MEMORY_KEY_CHARACTERS,
    entry_bytes,
)
from psych_schema.common import Scope

__all__ = [
    "as_many_bytes_are_kept_as_the_bound_says",
    "as_many_entries_are_kept_as_the_bound_says",
    "what_is_no_entry_is_refused",
]

_BROKEN = ("a\0b", "\ud800")


@check("LOG-5", "R-30", methods=("remember", "forget", "recall"))
async def what_is_no_entry_is_refused(harness: Harness) -> None:
    """Before anything is written; what is just within the bounds is kept."""
    longest = "k" * MAX_MEMORY_KEY_CHARACTERS
    largest = "x" * (MAX_MEMORY_ENTRY_BYTES - entry_bytes("k", ""))
    async with harness.open() as memory:
        for key in ("", f"{longest}k", *_BROKEN):
            await refused("a key", InvalidPayload, memory.remember(ANNA, key, "x"))
            await refused("a key to forget", InvalidPayload, memory.forget(ANNA, key))
        for text in _BROKEN:
            await refused("a value", InvalidPayload, memory.remember(ANNA, "k", text))
        for scope in (Scope(tenant="a\0b"), Scope(tenant="acme", principal="a\0b")):
            await refused("an owner", InvalidPayload, memory.remember(scope, "k", "x"))
            await refused("an owner", InvalidPayload, memory.recall(scope))
            await refused("an owner", InvalidPayload, memory.forget(scope, "k"))
        for value in (f"{largest}x", f"{largest[1:]}\n", f"{largest[1:]}\u00e9"):
            told = "an entry above the bound"
            await refused(told, PayloadTooLarge, memory.remember(ANNA, "k", value))
        for limit in (0, -1):
            await refused("a limit", InvalidArgument, memory.recall(ANNA, limit=limit))
        same(await entries(memory), [], "what was refused")
        await memory.remember(ANNA, longest, "x")
        await memory.remember(ANNA, "k", largest)
        same(await entries(memory), [("k", largest), (longest, "x")], "what is within the bounds")


@check("R-30", methods=("remember", "forget", "recall"))
async def as_many_entries_are_kept_as_the_bound_says(harness: Harness) -> None:
    """One more is refused until one is forgotten; a key that is there may be said again."""
    last = f"{MAX_MEMORY_ENTRIES - 1}"
    async with harness.open() as memory:
        for number in range(MAX_MEMORY_ENTRIES):
            await memory.remember(ANNA, f"{number}", "x")
        await refused("one more", MemoryFull, memory.remember(ANNA, "more", "x"))
        found = await entries(memory)
        same((len(found), found[0]), (MAX_MEMORY_ENTRIES, (last, "x")), "entries, and the newest")
        await memory.remember(ANNA, "0", "y")
        same((await entries(memory))[0], ("0", "y"), "a key that was said again")
        await memory.remember(Scope(tenant="acme", principal="berta"), "k", "x")
        same(await memory.forget(ANNA, "1"), True, "forgetting one")
        await memory.remember(ANNA, "more", "x")
        same(len(await entries(memory)), MAX_MEMORY_ENTRIES, "entries when there was room")


@check("R-30", methods=("remember", "recall"))
async def as_many_bytes_are_kept_as_the_bound_says(harness: Harness) -> None:
    """Counted as JSON texts: what JSON writes with a backslash counts what it takes there."""
    value = "\n" * (MAX_MEMORY_ENTRY_BYTES // 2 - 100)
    size = entry_bytes("00", value)
    count = MAX_MEMORY_BYTES // size
    rest = MAX_MEMORY_BYTES - count * size - entry_bytes("rest", "")
    async with harness.open() as memory:
        for number in range(count):
            await memory.remember(ANNA, f"{number:02}", value)
        more = "x" * (rest + 1)
        await refused("a byte too many", MemoryFull, memory.remember(ANNA, "rest", more))
        same(len(await entries(memory)), count, "entries after it")
        await memory.remember(ANNA, "rest", "x" * rest)
        await refused("one more", MemoryFull, memory.remember(ANNA, "k", "x"))
        await memory.remember(ANNA, "00", "x")
        await memory.remember(ANNA, "k", "x")
        same(len(await entries(memory)), count + 2, "entries when one was said in fewer words")
