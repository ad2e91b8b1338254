"""What a fair look for Runs costs when very many wait, of very many tenants."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter

import asyncpg

from psych_runtime import Scope, Store, dispatch, publish
from tests.bench.elsewhere import published
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn_async
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.workload import agent, registry

__all__ = ["measure"]

_SLOTS = 64
_ROWS = """
INSERT INTO run (
    tenant, run_id, version, state, head, head_hash, head_at, epoch, crashes, priority,
    schema_version, thread, position, root, referenced, created_at, open, capped)
SELECT 't' || lpad((n % $2)::text, 6, '0'), id, $3, 'ready', 1, repeat('0', 64), at, 0, 0, 0,
    1, id, 1, id, false, at, '{}', false
FROM (
    SELECT n, 'run_' || lpad(n::text, 26, '0') AS id,
        now() - ($1 - n) * interval '1 millisecond' AS at
    FROM generate_series(1, $1::bigint) AS n
) AS made
"""
_BY_ID = "SELECT * FROM run WHERE run_id = ANY($1)"


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the line of the look; a new tenant must be seen at once."""
    runs, tenants = sizes.waiting
    async with postgresql_database() as url, published(url) as (store, version):
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(_ROWS, runs, tenants, version.hash)
            await connection.execute("ANALYZE run")
            await _check_fair(store, tenants)
            cursor, ids = "", [f"run_{number:026}" for number in range(1, _SLOTS + 1)]

            async def look() -> None:
                nonlocal cursor
                found = await store.ready(_SLOTS, after_tenant=cursor)
                cursor = found.headers[-1].tenant

            acts = (lambda: connection.fetch(_BY_ID, ids), look)
            rounds = [partial(_milliseconds, act, sizes.looks) for act in acts]
            alone, ours = await in_turn_async(guard, sizes.look_rounds, *rounds)
        finally:
            await connection.close()
    return [
        Line(
            id="claim",
            title=f"64 of {runs:,} ready Runs of {tenants:,} tenants",
            unit="ms",
            beside="64 headers read by id",
            ours=ours,
            yardstick=alone,
            limit=5.0,
        )
    ]


async def _milliseconds(act: Callable[[], Awaitable[object]], times: int) -> float:
    found = []
    for _ in range(times):
        begun = perf_counter()
        await act()
        found.append((perf_counter() - begun) * 1e3)
    return median(found)


async def _check_fair(store: Store, tenants: int) -> None:
    """Dispatch a Run of a new tenant; raise unless it is among the next Runs to be claimed.

    The cursor stands half a window before it, and all its neighbours have older Runs.
    """
    middle = tenants // 2
    scope = Scope(tenant=f"t{middle:06}-new")
    version = await publish(store, agent(), scope=scope, check=registry())
    run = await dispatch(store, version, scope=scope, input={"message": "?"})
    before = f"t{max(0, middle - _SLOTS // 2):06}"
    found = await store.ready(_SLOTS, after_tenant=before)
    if run.run_id not in [header.run_id for header in found.headers]:
        raise RuntimeError(f"a new tenant's first Run is not among the next {_SLOTS}")
