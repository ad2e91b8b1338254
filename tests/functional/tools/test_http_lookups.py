"""A worker is killed in a request, and the service is asked what became of it (R-9, RUN-1)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import JsonValue

import psych_runtime
from psych_runtime import Scope
from psych_runtime.ports.store import Store
from psych_schema.model import JsonPart
from psych_schema.record import RunSettled, ToolCompleted, ToolStarted
from tests.functional.engine.harness import eventually
from tests.functional.tools.http_service import (
    Answer,
    Asked,
    Service,
    agent,
    answer,
    json_answer,
    serving,
)
from tests.functional.tools.http_worker import SECRET
from tests.processes.tasks import started
from tests.stores.kinds import tables_of

ACME = Scope(tenant="acme")
WORKER = "tests.functional.tools.http_worker"
TIMEOUT_SECONDS = 3.0
FIND = "Find out before you repeat it."


class Place(NamedTuple):
    """A store by its name."""

    url: str
    prefix: str


class Ended(NamedTuple):
    """What a Run's log says of its one call, and what the service was asked about it."""

    call_id: str
    end: ToolCompleted
    posts: list[Asked]
    lookups: list[Asked]

    @property
    def message(self) -> str:
        """What the model is told."""
        return (self.end.result and self.end.result.message) or ""


@dataclass
class Bank(Service):
    """Never answers a payment; says of each what the first step of its path stands for."""

    known: Mapping[str, Answer] = field(default_factory=dict)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def answer_to(self, asked: Asked) -> Answer:
        """Return what is known of a payment."""
        return self.hold if asked.method == "POST" else self.known[asked.target.split("/")[1]]

    async def hold(self, _: asyncio.StreamWriter) -> None:
        """Say nothing."""
        await self.closed.wait()

    def asked_of(self, case: str, method: str) -> list[Asked]:
        """Return the requests of a case."""
        return [one for one in self.asked if one.method == method and case == _case_of(one)]


def _case_of(asked: Asked) -> str:
    return asked.target.split("/")[1]


@pytest.fixture(params=["sqlite", "postgresql"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the Runs are."""
    if request.param == "sqlite":
        return Place(f"sqlite:///{tmp_path}/runs.db", "")
    tables = tables_of(request.param)
    await tables.empty()
    return Place(tables.url, tables.prefix)


@pytest.fixture
async def bank() -> AsyncIterator[Bank]:
    """A bank on loopback."""
    async with serving(Bank()) as made:
        yield made
        made.closed.set()


def pays(bank: Bank, case: str, **fields: JsonValue) -> dict[str, object]:
    """Return a Spec whose tool pays, and can be looked up by its key."""
    lookup: dict[str, JsonValue] = {
        "url": f"{bank.url}/{case}/payments/{{idempotency_key}}",
        "query": {"number": "{n}"},
        "headers": {"X-Payment": "{idempotency_key}"},
    }
    more = fields.pop("reconcile", {})
    assert isinstance(more, dict)
    wanted: dict[str, JsonValue] = {
        "method": "POST",
        "url": f"{bank.url}/{case}/payments",
        "timeout_seconds": TIMEOUT_SECONDS,
        "credential": {"kind": "bearer", "secret": "bank"},
        "input_schema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "note": {"default": "private"}},
            "required": ["n"],
        },
        "reconcile": lookup | more,
    }
    return agent(bank.url, **(wanted | fields))


async def killed_in_each(
    place: Place, bank: Bank, specs: Mapping[str, dict[str, object]]
) -> dict[str, Ended]:
    """Kill a worker that has sent the request of every case; let another finish the Runs."""
    async with psych_runtime.open_store(place.url, prefix=place.prefix) as store:
        await store.migrate()
        runs: dict[str, str] = {}
        for case, spec in specs.items():
            version = await psych_runtime.publish(store, spec, scope=ACME)
            made = await psych_runtime.dispatch(store, version, scope=ACME, input={"message": case})
            runs[case] = made.run_id
        with started(WORKER, *place) as first:
            await eventually(lambda: len(bank.asked) == len(specs))
            first.kill()
            first.wait()
        with started(WORKER, *place):
            return {case: await _ended(store, bank, case, run) for case, run in runs.items()}


async def _ended(store: Store, bank: Bank, case: str, run: str) -> Ended:
    begun, ends = list[ToolStarted](), list[ToolCompleted]()
    async for record in psych_runtime.stream(store, run, scope=ACME):
        match record:
            case ToolStarted():
                begun.append(record)
            case ToolCompleted():
                ends.append(record)
            case RunSettled():
                assert record.state == "completed"
    [began], [end] = begun, ends
    return Ended(began.call_id, end, bank.asked_of(case, "POST"), bank.asked_of(case, "GET"))


async def test_r_9_after_kill_9_the_service_says_what_became_of_the_call(
    place: Place, bank: Bank
) -> None:
    """2xx: it happened, and this is its answer; 404: it did not; anything else: nobody knows."""

    async def garbage(writer: asyncio.StreamWriter) -> None:
        writer.write(b"no HTTP at all\r\n\r\n")

    bank.known = {
        "paid": json_answer({"cents": 5, "by": f"Bearer {SECRET}"}),
        "empty": answer(204),
        "absent": answer(404, SECRET.encode(), content_type="text/plain"),
        "broken": answer(500, SECRET.encode(), content_type="text/plain"),
        "refused": answer(401),
        "moved": answer(302, location=f"{bank.url}/absent/elsewhere"),
        "garbage": garbage,
        "silent": bank.hold,
        "misfit": json_answer({"cents": "five"}),
        "unreadable": answer(200, b'{"cents":', content_type="application/json"),
        "denied": json_answer({"cents": 5}),
    }
    cents: JsonValue = {"type": "object", "properties": {"cents": {"type": "integer"}}}
    specs = {case: pays(bank, case) for case in bank.known}
    specs |= {case: pays(bank, case, output_schema=cents) for case in ("paid", "misfit")}
    elsewhere = bank.url.replace("127.0.0.1", "127.0.0.2")
    specs["denied"] = pays(
        bank, "denied", reconcile={"url": f"{elsewhere}/denied/{{idempotency_key}}"}
    )
    found = await killed_in_each(place, bank, specs)

    for case, (call_id, end, posts, lookups) in found.items():
        assert end.source == "reconciled", case
        assert SECRET not in repr(end), case
        [post] = posts
        assert post.headers["idempotency-key"] == call_id
        assert post.headers["authorization"] == f"Bearer {SECRET}"
        for one in lookups:
            assert one.target == f"/{case}/payments/{call_id}?number=1"
            assert one.body == b""
            assert "idempotency-key" not in one.headers
            assert one.headers["x-payment"] == call_id
            assert one.headers["authorization"] == f"Bearer {SECRET}"
    assert {
        case: (one.end.outcome, one.end.failure and one.end.failure.code, len(one.lookups))
        for case, one in found.items()
    } == {
        "paid": ("ok", None, 1),
        "empty": ("ok", None, 1),
        "absent": ("error", "not_happened", 1),
        "broken": ("unknown", None, 1),
        "refused": ("unknown", None, 1),
        "moved": ("unknown", None, 1),  # another URL answers for itself
        "garbage": ("unknown", None, 3),
        "silent": ("unknown", None, 1),
        "misfit": ("error", "result_invalid", 1),
        "unreadable": ("error", "answer_unreadable", 1),
        "denied": ("unknown", None, 0),
    }
    assert found["paid"].end.result is not None
    [part] = found["paid"].end.result.parts
    assert part == JsonPart(value={"cents": 5, "by": "Bearer [secret bank]"})
    assert "HTTP 204" in found["empty"].message
    assert found["absent"].message.endswith("it did not happen. You may call it again.")
    for case in ("misfit", "unreadable"):
        assert found[case].message.endswith("It was executed.")
    for case, why in {
        "broken": "HTTP 500",
        "refused": "HTTP 401",
        "moved": "HTTP 302",
        "garbage": "egress_failed",
        "silent": "tool_timeout",
        "denied": "egress_denied",
    }.items():
        assert f"could not be looked up ({why})" in found[case].message
        assert found[case].message.endswith(FIND)
