"""A worker of HTTP tools that is killed; its argument is the URL of a store."""

import asyncio
import sys

from psych_runtime import AllowAll, Runtime, Worker, open_store
from psych_runtime.egress import EgressRules, Permit
from psych_runtime.testing import FakeModel

LEASE_SECONDS = 1.0


async def main(store_url: str) -> None:
    """Be a worker whose model calls the tool once."""
    model = FakeModel().turn(tool_calls=[("ask", {"n": 1})]).turn(text="Done.")
    async with (
        open_store(store_url) as store,
        Runtime(
            store=store,
            model=model,
            policy=AllowAll(),
            egress=EgressRules(Permit(hosts=["127.0.0.1"])),
        ) as runtime,
    ):
        await Worker(runtime, lease_seconds=LEASE_SECONDS, poll_seconds=0.02).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
