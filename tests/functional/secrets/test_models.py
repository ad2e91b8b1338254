"""A model client's key is nowhere but on the wire, whatever its provider says of it (SEC-2).

Of an error, that is: what a model says is its own, also where a provider puts the key into it.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest

from psych_runtime import Store, records, wait
from psych_schema.record import ModelFailed, RunSettled
from tests.canary import HEADER_CANARY, Logs, in_logs, in_texts
from tests.functional.engine.harness import Crew, admit, agent, runtime
from tests.functional.secrets.hostile import WRITTEN
from tests.functional.secrets.places import place
from tests.functional.secrets.traces import ACME, Lived, in_commands, leaks, left_of
from tests.servers.formats import Client, Format, each_format
from tests.servers.openai_server import Reply, answer

_KEY: Final = HEADER_CANARY
_SENT: Final = f"{_KEY} and Bearer {_KEY} and Authorization: Bearer {_KEY}"
_SAID: Final = [write(_SENT) for write in WRITTEN.values()]
_FIELDS: Final = {"X-Echo": f"Bearer {_KEY}", "Set-Cookie": f"key={_KEY}", "retry-after-ms": "1"}


def refused(status: int, body: str, kind: str = "text/plain", **fields: str) -> Reply:
    """Refuse, in words of any kind."""
    return answer(body.encode(), status=status, headers=_FIELDS | fields, content_type=kind)


def runs_of(form: Format) -> list[list[Reply]]:
    """Return what the provider answers to each Run."""
    errors = [json.dumps({"error": {"message": text}}) for text in _SAID]
    whole = answer(form.whole("Done."), headers=_FIELDS)
    return [
        [
            *(refused(503, text) for text in _SAID),
            *(refused(503, text, "application/json") for text in errors),
            whole,
        ],
        [refused(401, errors[0], "application/json")],
        [refused(302, _SENT, Location=f"http://127.0.0.1/{_KEY}")],
        [answer(form.hel + form.write(form.fault(_SENT)), headers=_FIELDS), whole],
        [answer(_SENT.encode(), content_type=f"text/html; x={_KEY}"), whole],
        [answer(headers={f"Bad\x01{_KEY}": _KEY}), whole],
    ]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@each_format
async def test_sec_2_a_model_s_key_is_nowhere(
    form: Format, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Through refusals in every writing, redirects, broken streams and what is no HTTP."""
    runs = runs_of(form)
    replies = [reply for run in runs for reply in run]
    with Logs() as logs:
        async with place(kind, tmp_path) as there, form.server(*replies) as server:
            client = form.client(server.base_url, api_key=_KEY)
            async with aclosing(client):
                lived = [one async for one in live(there.store, client, len(runs))]
            found = await in_commands(there, lived[0])
            for one in lived:
                left = await left_of(there, one)
                found |= {f"{where} of {one.run_id}": these for where, these in left.items()}
            await met_everything(there.store, lived, len(replies))
        assert all(_KEY in "".join(seen.headers.values()) for seen in server.seen)
    found["logs"] = in_logs(logs.records, _KEY)
    found["output"] = in_texts({"output": capfd.readouterr()}, _KEY)
    assert leaks(found) == {}


async def live(store: Store, client: Client, count: int) -> AsyncIterator[Lived]:
    """Let Runs end, one after the other."""
    crew = Crew()
    await crew.start(runtime(store, client))
    try:
        for _ in range(count):
            run_id = await admit(store, agent(transient_retry_budget=100))
            await wait(store, run_id, scope=ACME, timeout_seconds=30.0)
            version = (await store.header(ACME.tenant, run_id)).version
            yield Lived(run_id, version, shown=[repr(client), str(client)])
    finally:
        await crew.close()


async def met_everything(store: Store, lived: Sequence[Lived], calls: int) -> None:
    """Check that each reply was heard, and became what it should."""
    logs = [await records(store, one.run_id, scope=ACME) for one in lived]
    ends = [log[-1].state for log in logs if isinstance(log[-1], RunSettled)]
    assert ends == ["completed", "failed", "failed", "completed", "completed", "completed"]
    failures = sum(isinstance(record, ModelFailed) for log in logs for record in log)
    assert failures == calls - ends.count("completed")
