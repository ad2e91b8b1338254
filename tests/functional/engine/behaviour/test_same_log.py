"""One Spec and script give one log on every store, but for ids, times and hashes (ST-1, LOG-5)."""

import asyncio
import json
import re
from typing import Final

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    run_to_end,
    runtime,
)

_ID: Final = re.compile(r"[a-z]{2,4}_[0-9a-z]{26}")
_HASH: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}")
_TIMES: Final = re.compile(r"(at|.*_at|.*_seconds|timings)")
_ODD: Final = {
    "texts": ["a\x00b", "\U0001f600 é", "", " pad ", "'quoted' \"twice\" \\ back"],
    "numbers": [2**53, -0.5, 1e300],
    "empty": {},
}

type Json = dict[str, "Json"] | list["Json"] | str | float | bool | None


@pytest.fixture(
    params=["sqlite", "postgresql", "postgresql_new", "pooled", "mysql", "mariadb", "dynamodb"]
)
def kind(request: pytest.FixtureRequest) -> str:
    """Each store but the one that all are compared with."""
    name: str = request.param
    return name


class _Names:
    """Calls ids and hashes by the order in which they appear."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Json, key: str = "") -> Json:
        """Return `value` without what differs from one Run to the next."""
        if _TIMES.fullmatch(key):
            return "time" if value is not None else None
        if isinstance(value, dict):
            # which records share a commit is a matter of speed
            return {name: self.plain(one, name) for name, one in value.items() if name != "commit"}
        if isinstance(value, list):
            return [self.plain(one, key) for one in value]
        if isinstance(value, str) and (_ID.fullmatch(value) or _HASH.fullmatch(value)):
            return self._known.setdefault(value, f"name {len(self._known)}")
        return value


async def log_of(store: Store, crew: Crew) -> list[tuple[str, Json, Json]]:
    """Live through the script on a store; return type, body and content of each record."""
    first, second = asyncio.Event(), asyncio.Event()

    @tool(annotations={"read-only"})
    async def look(what: str) -> dict[str, object]:
        """Look; the second one asked ends first.

        Args:
            what: for what.
        """
        if what == "one":
            await second.wait()
            await asyncio.sleep(0.05)  # its record is on its way
        else:
            await first.wait()
            second.set()
        return {"what": what, **_ODD}

    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError('it\'s "broken" \\ \x00 é')

    model = (
        FakeModel()
        .turn(
            text="I look.",
            tool_calls=[("look", {"what": "one"}), ("look", {"what": "two"})],
            reasoning="Hm.",
        )
        .turn(tool_calls=[("fail", {}), ("nobody", {"a": 1})])
        .raises_transient(503)
        .turn(text="Done.")
    )
    first.set()
    await crew.start(runtime(store, model, look, fail))
    run = await admit(store, agent("look", "fail"))
    await run_to_end(store, run)
    names = _Names()
    return [
        (
            row.type,
            names.plain(json.loads(row.body)),
            None if row.content is None else names.plain(json.loads(row.content)),
        )
        for row in await store.read(ACME.tenant, run)
    ]


async def test_st_1_every_store_tells_the_same_story(store: Store, crew: Crew) -> None:
    """Types, bodies and contents are those of the in-memory store."""
    other = Crew()
    try:
        wanted = await log_of(MemoryStore(), other)
    finally:
        await other.close()
    assert await log_of(store, crew) == wanted
    assert [kind for kind, _, _ in wanted].count("tool.completed") == 3
