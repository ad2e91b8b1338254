"""Execute the Runs that the web server admits: start as many as you like, anywhere.

    python docs/examples/web/worker.py

PSYCH_STORE names the store, as for the web server. The model is scripted; with OPENAI_API_KEY or
PSYCH_BASE_URL set it is a real one. SIGTERM lets running calls end and hands the Runs over.
"""

import asyncio
import os
import signal

from order_tools import registry

import psych_runtime
from psych_runtime import ModelClient, OpenAIClient, Runtime, Worker
from psych_runtime.testing import FakeModel

LEASE_SECONDS = float(os.environ.get("LEASE_SECONDS", "6"))
"""How long a worker that died keeps its Runs."""


def make_model() -> ModelClient:
    """Return a real model when the environment names one, else a scripted one."""
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("PSYCH_BASE_URL")
    if key or url:
        return OpenAIClient(base_url=url or "https://api.openai.com/v1", api_key=key)
    orders = [{"number": 4711}, {"number": 4712}]
    script = FakeModel()
    script.turn(
        text="I will look both of them up first.",
        tool_calls=[("look_up_order", order) for order in orders],
        chunk_delay_seconds=0.05,
    )
    script.turn(
        text="Both arrived broken, so I ask for two refunds.",
        tool_calls=[("refund", order) for order in orders],
        chunk_delay_seconds=0.05,
    )
    return script.turn(
        text="What you agreed to is refunded, and nothing else.", chunk_delay_seconds=0.05
    )


async def main() -> None:
    """Be a worker until somebody stops this process."""
    url = os.environ.get("PSYCH_STORE", "sqlite:///runs.db")
    async with psych_runtime.open_store(url, prefix=os.environ.get("PSYCH_PREFIX", "")) as store:
        await store.migrate()
        async with Runtime(store=store, model=make_model(), registry=registry) as runtime:
            worker = Worker(runtime, lease_seconds=LEASE_SECONDS)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
            await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
