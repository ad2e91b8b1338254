"""A worker of HTTP tools that is killed; its arguments are the URL of a store, and a prefix."""

import asyncio
import sys

from psych_runtime import AllowAll, MappingSecrets, Runtime, Worker, open_store
from psych_runtime.egress import EgressRules, Permit
from psych_runtime.testing import FakeModel

LEASE_SECONDS = 1.0
SECRET = "s3cr3t-1"


async def main(store_url: str, prefix: str = "") -> None:
    """Be a worker whose model calls the tool once."""
    model = FakeModel().turn(tool_calls=[("ask", {"n": 1})]).turn(text="Done.")
    async with (
        open_store(store_url, prefix=prefix) as store,
        Runtime(
            store=store,
            model=model,
            policy=AllowAll(),
            secrets=MappingSecrets({"bank": SECRET}),
            egress=EgressRules(Permit(hosts=["127.0.0.1"])),
        ) as runtime,
    ):
        await Worker(runtime, lease_seconds=LEASE_SECONDS, poll_seconds=0.02).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
