"""A reader in a process of its own: it says `ready`, and so many records for each `after count`.

A new stream for each, in JSON, a record a line; fewer only where the Run settles.
"""

import asyncio
import sys
from contextlib import aclosing

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6

from psych_runtime._reads import stream
from psych_runtime.store.open import open_store
from psych_schema.record import RunSettled
from tests.functional.engine.harness import ACME


async def main(url: str, prefix: str) -> None:
    """Read until the input ends; its first line is the Run."""
    async with open_store(url, prefix=prefix) as store:
        print("ready", flush=True)
        run = (await asyncio.to_thread(sys.stdin.readline)).strip()
        while line := await asyncio.to_thread(sys.stdin.readline):
            after, count = map(int, line.split())
            async with aclosing(stream(store, run, scope=ACME, after=after)) as records:
                async for record in records:
                    print(record.model_dump_json(), flush=True)
                    count -= 1
                    if not count or isinstance(record, RunSettled):
                        break


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
