"""A tenant with a thousand Runs does not keep another one waiting (RUN-10, R-15)."""

import asyncio

from psych_runtime.api import publish
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Scope
from tests.functional.engine.harness import Crew, admit, agent, eventually, runtime

MANY = 1000
AT_ONCE = 50
GLOBEX = Scope(tenant="globex")


async def test_run_10_a_tenants_first_run_does_not_wait_for_another_tenants_thousand(
    store: Store, crew: Crew
) -> None:
    """It is among the first that are claimed, though a thousand older ones are ready."""
    version = await publish(store, agent(), scope=Scope(tenant="acme"))
    for _ in range(MANY // AT_ONCE):
        await asyncio.gather(*(admit(store, version) for _ in range(AT_ONCE)))
    first = await admit(store, agent(), scope=GLOBEX)
    await crew.start(runtime(store, FakeModel().turn(text="Done.")), concurrency=2)

    async def is_settled() -> bool:
        return (await store.header(GLOBEX.tenant, first)).state == "settled"

    await eventually(is_settled)
    ready = await store.ready(MANY + 1)
    assert len(ready.headers) >= MANY - 8  # turns are taken, with a few under way at once
