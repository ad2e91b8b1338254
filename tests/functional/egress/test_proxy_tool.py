"""An HTTP tool behind the operator's proxy, from the Spec to the log (SEC-1, SEC-2)."""

from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

import psych_runtime
from psych_runtime import AllowAll, EgressRules, MappingSecrets, Permit, Proxy, Runtime
from psych_runtime.errors import InvalidArgument
from psych_runtime.store.open import open_store
from psych_runtime.testing import FakeModel
from psych_schema.model import JsonPart
from psych_schema.record import Record, ToolCompleted
from tests.canary import CANARY, Logs, in_logs, in_sqlite, in_texts
from tests.functional.tools.http_service import Service, agent, json_answer, service
from tests.servers.forward_proxy import ForwardProxy

_PAIR = f"Basic {b64encode(f'ann:{CANARY}'.encode()).decode()}"


@asynccontextmanager
async def _behind(authorization: str | None = None) -> AsyncIterator[tuple[Service, ForwardProxy]]:
    """Give a service, and a proxy that leads to it."""
    async with service(json_answer({"state": "sent"})) as there:
        target = there.url.removeprefix("http://")
        port = int(target.rpartition(":")[2])
        async with ForwardProxy({target: port}, authorization=authorization) as proxy:
            yield there, proxy


async def _call(there: Service, way: Proxy, store: str, *permits: Permit) -> Sequence[Record]:
    """Call the tool once in a Run of its own; return the log."""
    model = FakeModel().turn(tool_calls=[("ask", {})]).turn(text="Done.")
    async with psych_runtime.session(
        model,
        store=store,
        policy=AllowAll(),
        secrets=MappingSecrets({"key": "of the service"}),
        egress=EgressRules(*permits),
        proxy=way,
    ) as session:
        credential: JsonValue = {"kind": "bearer", "secret": "key"}
        version = await session.publish(agent(there.url, retries=0, credential=credential))
        run = await session.start(version, "Go.")
        return [record async for record in session.stream(run.run_id)]


def _ended(records: Sequence[Record]) -> ToolCompleted:
    (ended,) = (record for record in records if isinstance(record, ToolCompleted))
    return ended


_LOOPBACK = Permit(hosts=["127.0.0.1"])


async def test_sec_1_a_tool_goes_through_the_proxy_of_a_session(tmp_path: Path) -> None:
    """The service has the request and its own credential, the proxy its own; no place has both."""
    file = tmp_path / "runs.db"
    async with _behind(_PAIR) as (there, proxy):
        way = Proxy(proxy.url, username="ann", password=CANARY)
        with Logs() as logs:
            records = await _call(there, way, f"sqlite:///{file}", _LOOPBACK)
        await proxy.until_closed()
    result = _ended(records).result
    assert result is not None
    (part,) = result.parts
    assert isinstance(part, JsonPart)
    assert part.value == {"state": "sent"}
    assert proxy.targets == [there.url.removeprefix("http://")]
    (connect,), (asked,) = proxy.asked, there.asked
    assert connect.headers["proxy-authorization"] == _PAIR
    assert "authorization" not in connect.headers
    assert asked.headers["authorization"] == "Bearer of the service"
    assert in_texts({"asked": asked._asdict(), "sent": bytes(proxy.sent)}, CANARY) == []
    assert in_sqlite(file, CANARY) == []
    assert in_logs(logs.records, CANARY) == []


async def test_sec_2_a_proxy_that_refuses_tells_the_model_nothing_of_its_own(
    tmp_path: Path,
) -> None:
    """The model hears what is wrong; nothing was sent."""
    file = tmp_path / "runs.db"
    async with _behind("Basic other") as (there, proxy):
        way = Proxy(proxy.url, username="ann", password=CANARY)
        with Logs() as logs:
            ended = _ended(await _call(there, way, f"sqlite:///{file}", _LOOPBACK))
    assert ended.failure is not None
    assert ended.result is not None
    assert ended.failure.code == "egress_failed"
    message = ended.result.message or ""
    assert "the proxy does not take these credentials, or not as Basic (407)" in message
    assert "Nothing was sent" in message
    assert (len(proxy.asked), there.asked) == (1, [])
    assert in_sqlite(file, CANARY) == []
    assert in_logs(logs.records, CANARY) == []


async def test_sec_1_a_proxy_allows_a_tool_nothing() -> None:
    """A private address is denied before anybody is asked for it."""
    async with _behind() as (there, proxy):
        ended = _ended(await _call(there, Proxy(proxy.url), "memory://"))
    assert ended.failure is not None
    assert ended.failure.code == "egress_denied"
    assert (proxy.connections, there.asked) == (0, [])


@pytest.mark.parametrize("proxy", ["http://proxy.test:3128", Proxy, 3128, object()])
async def test_sec_1_a_proxy_that_is_none_is_refused_at_once(proxy: Any) -> None:
    """Not when the first tool is called."""
    async with open_store("memory://") as store:
        with pytest.raises(InvalidArgument, match=r"proxy: .*pass Proxy\("):
            Runtime(store=store, model=FakeModel(), proxy=proxy)
