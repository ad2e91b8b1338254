"""Owners see their own entries only; whoever writes for the same owner loses nothing."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from psych_runtime.errors import StoreUnavailable
from psych_runtime.memory.contract._check import ANNA, Harness, entries
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.memory import MemoryStore
from psych_schema.common import Scope

__all__ = ["no_owner_sees_what_another_remembers", "racing_writers_lose_no_entry"]

_OWNERS: Final = (
    ANNA,
    Scope(tenant="acme"),
    Scope(tenant="globex", principal="anna"),
    Scope(tenant="globex"),
    Scope(tenant="acme", principal="Anna"),
    Scope(tenant="acme", principal="anna "),
    Scope(tenant="acme", principal="acme"),
    Scope(tenant="acme", principal="-"),
    Scope(tenant="acme", principal="*"),
    Scope(tenant="acme", principal="None"),
    Scope(tenant="acme", principal="a#b/c'\"\\"),
    Scope(tenant="acme#a", principal="b/c'\"\\"),
    Scope(tenant="acme", principal="\U0010ffff" * 256),
    Scope(tenant="\U0010ffff" * 128, principal="p"),
)
_WRITERS: Final = 16
_TRIES: Final = 100


@check("SEC-3", methods=("remember", "forget", "recall"))
async def no_owner_sees_what_another_remembers(harness: Harness) -> None:
    """Tenants and principals are apart, and so are a tenant's own; attributes are not."""
    async with harness.open() as memory:
        for number, scope in enumerate(_OWNERS):
            await memory.remember(scope, "k", f"of {number}")
        for number, scope in enumerate(_OWNERS):
            told = f"what {scope.tenant[:9]!r}, {str(scope.principal)[:9]!r} remembers"
            same(await entries(memory, scope), [("k", f"of {number}")], told)
            attributed = scope.model_copy(update={"attributes": {"team": "x"}})
            same(await entries(memory, attributed), [("k", f"of {number}")], f"{told}, attributed")
        same(await memory.forget(ANNA, "k"), True, "forgetting one's own")
        left = [len(await entries(memory, scope)) for scope in _OWNERS]
        same(left, [0] + [1] * (len(_OWNERS) - 1), "what the owners have then")


async def _say(memory: MemoryStore, key: str) -> None:
    """Remember, forget something and remember once more; again where nobody answers."""
    for _ in range(_TRIES):
        try:
            await memory.remember(ANNA, f"{key} old", key)
            await memory.remember(ANNA, f"{key} new", key)
            await memory.forget(ANNA, f"{key} old")
        except StoreUnavailable:
            continue
        return
    raise AssertionError(f"{key} was not remembered in {_TRIES} tries")


@check("R-20", "R-1", methods=("remember", "forget", "recall"))
async def racing_writers_lose_no_entry(harness: Harness) -> None:
    """Sixteen, each with a handle of its own, for one owner."""
    async with AsyncExitStack() as stack:
        handles = [await stack.enter_async_context(harness.open()) for _ in range(_WRITERS)]
        keys = [f"writer {place:02}" for place in range(_WRITERS)]
        pairs = zip(handles, keys, strict=True)
        await asyncio.gather(*[_say(handle, key) for handle, key in pairs])
        found = sorted(await entries(handles[0]))
        same(found, [(f"{key} new", key) for key in keys], "what sixteen writers have said")
