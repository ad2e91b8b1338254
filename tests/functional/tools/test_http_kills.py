"""A worker is killed while a service works on its request (RUN-1)."""

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

import psych_runtime
from psych_runtime import Scope
from psych_schema.record import RunSettled, ToolCompleted, ToolStarted
from tests.functional.engine.harness import eventually
from tests.functional.tools.http_service import Service, agent, json_answer, service
from tests.processes.tasks import started

ACME = Scope(tenant="acme")
WORKER = "tests.functional.tools.http_worker"


class Ran:
    """What came of one Run whose first worker died in the middle of its request."""

    def __init__(self) -> None:
        self.starts: list[ToolStarted] = []
        self.ended: list[ToolCompleted] = []


async def kill_in_the_middle(there: Service, folder: Path, **fields: JsonValue) -> Ran:
    """Let a worker send its request, kill it with -9, and let another finish the Run."""
    url = f"sqlite:///{folder / 'runs.db'}"
    ran = Ran()
    async with psych_runtime.open_store(url) as store:
        await store.migrate()
        version = await psych_runtime.publish(store, agent(there.url, **fields), scope=ACME)
        run = await psych_runtime.dispatch(store, version, scope=ACME, input={"message": "Go."})
        with started(WORKER, url) as first:
            await eventually(lambda: there.asked)
            first.kill()
            first.wait()
        with started(WORKER, url):
            async for record in psych_runtime.stream(store, run.run_id, scope=ACME):
                match record:
                    case ToolStarted():
                        ran.starts.append(record)
                    case ToolCompleted():
                        ran.ended.append(record)
                    case RunSettled():
                        assert record.state == "completed"
    return ran


@pytest.mark.parametrize(
    "fields", [{"method": "POST", "safe_to_retry": True}, {"method": "PUT", "safe_to_retry": True}]
)
async def test_run_1_after_kill_9_a_safe_call_is_sent_again_with_its_key(
    fields: dict[str, JsonValue], tmp_path: Path
) -> None:
    """The service can tell that it is the same call: the header is the call's id."""
    held = asyncio.Event()

    async def hold(_: asyncio.StreamWriter) -> None:
        await held.wait()

    async with service(hold, json_answer({"done": True})) as there:
        ran = await kill_in_the_middle(there, tmp_path, **fields)
        held.set()
    [first, again] = ran.starts
    assert [first.tries, again.tries] == [1, 2]
    keys = [asked.headers["idempotency-key"] for asked in there.asked]
    assert keys == [first.call_id, again.call_id] == [first.call_id] * 2
    assert [one.outcome for one in ran.ended] == ["ok"]


async def test_run_1_after_kill_9_an_unsafe_call_is_unknown_and_not_sent_again(
    tmp_path: Path,
) -> None:
    """Nobody knows whether it was done, and the model hears just that."""
    held = asyncio.Event()

    async def hold(_: asyncio.StreamWriter) -> None:
        await held.wait()

    async with service(hold, json_answer({"done": True})) as there:
        ran = await kill_in_the_middle(there, tmp_path, method="POST")
        held.set()
    assert len(there.asked) == 1
    assert [one.outcome for one in ran.ended] == ["unknown"]
