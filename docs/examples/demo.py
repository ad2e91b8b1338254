"""Kill a worker with -9 in the middle of a tool call and watch another one finish the Run.

    python docs/examples/demo.py

The model is scripted; with OPENAI_API_KEY or PSYCH_BASE_URL set it is a real one (PSYCH_MODEL
names it). Everything that happens is in one SQLite file.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psych_runtime
from psych_runtime import (
    Cost,
    ModelClient,
    OpenAIClient,
    Runtime,
    Scope,
    Store,
    ToolContext,
    Usage,
    Worker,
)
from psych_runtime.testing import FakeModel

SCOPE = Scope(tenant="demo")
LEASE_SECONDS = 2.0
QUESTION = "Where is order 4711?"
REAL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("PSYCH_BASE_URL"))

registry = psych_runtime.ToolRegistry()


@registry.register(annotations={"read-only"}, safe_to_retry=True)
async def look_up_order(number: int, context: ToolContext) -> dict[str, str]:
    """Look an order up in a warehouse that is slow today.

    Args:
        number: The number of the order.
    """
    if context.epoch == 1:  # the first worker never gets an answer: it is killed meanwhile
        await asyncio.sleep(60)
    return {"order": str(number), "state": "shipped", "carrier": "pigeon post"}


def make_model() -> ModelClient:
    """Return a real model when the environment names one, else a scripted one."""
    if REAL:
        return OpenAIClient(
            base_url=os.environ.get("PSYCH_BASE_URL", "https://api.openai.com/v1"),
            api_key=os.environ.get("OPENAI_API_KEY"),
        )
    script = FakeModel()
    script.turn(
        text="I will look.",
        tool_calls=[("look_up_order", {"number": 4711})],
        usage=Usage(input_tokens=212, cache_read_tokens=0, cache_write_tokens=0, output_tokens=31),
        cost=Cost(amount="0.00123", currency="USD", source="provider"),
    )
    script.turn(
        text="Order 4711 has shipped; it travels by pigeon post.",
        usage=Usage(input_tokens=71, cache_read_tokens=212, cache_write_tokens=0, output_tokens=14),
        cost=Cost(amount="0.00058", currency="USD", source="provider"),
    )
    return script


async def work(url: str) -> None:
    """Be a worker until somebody stops this process."""
    async with psych_runtime.open_store(url) as store:
        runtime = Runtime(store=store, model=make_model(), registry=registry)
        worker = Worker(runtime, lease_seconds=LEASE_SECONDS)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


def start_worker(url: str) -> "subprocess.Popen[bytes]":
    """Start a worker in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, url])


async def admit(store: Store) -> str:
    """Publish the agent and dispatch a Run; from here on it cannot be lost."""
    spec = psych_runtime.load_spec(Path(__file__).with_name("agent.yaml"))
    if REAL:
        model = os.environ.get("PSYCH_MODEL", "gpt-4o-mini")
        spec = spec.model_copy(update={"model": psych_runtime.ModelRef(model=model)})
    version = await psych_runtime.publish(store, spec, scope=SCOPE, check=registry)
    run = await psych_runtime.dispatch(
        store, version, scope=SCOPE, input={"message": QUESTION}, idempotency_key="demo"
    )
    print(f"> {QUESTION}\n\n{run.run_id} is admitted as version {version.hash[:12]}")
    return run.run_id


async def main() -> int:
    """Run the demonstration; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/runs.db"
        async with psych_runtime.open_store(url) as store:
            await store.migrate()
            run_id = await admit(store)
            first = start_worker(url)
            second = None
            try:
                async for record in psych_runtime.stream(store, run_id, scope=SCOPE):
                    print(f"  {record.seq:3d}  epoch {record.epoch}  {record.type}")
                    if record.type == "tool.started" and second is None:
                        os.kill(first.pid, signal.SIGKILL)
                        first.wait()
                        print("       kill -9: the worker is gone in the middle of the call")
                        second = start_worker(url)
            finally:
                for process in (first, second):
                    if process is not None and process.poll() is None:
                        process.terminate()
                        process.wait()
            answer = await psych_runtime.answer(store, run_id, scope=SCOPE)
        print(f"\n< {answer.text}\n", flush=True)
        report = [sys.executable, "-m", "psych_runtime.cli", "report", run_id]
        command = [*report, "--store", url, "--tenant", SCOPE.tenant]
        await (await asyncio.create_subprocess_exec(*command)).wait()
    return 0 if answer.ended is not None and answer.ended.state == "completed" else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(sys.argv[1]))
    else:
        sys.exit(asyncio.run(main()))
