"""The story that the example is for, over real HTTP: no record is lost or doubled (STR-1)."""

import asyncio
from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from psych_runtime._reads import records
from psych_runtime.ports.store import Store
from tests.e2e.web.browser import ANN, Browser, Event, Reader, never
from tests.e2e.web.running import START_SECONDS, Site
from tests.functional.engine.harness import ACME

LOOKS = "I will look both of them up first."
ASKS = "Both arrived broken, so I ask for two refunds."
DONE = "What you agreed to is refunded, and nothing else."
QUESTION = "Orders 4711 and 4712 arrived broken."

ON_SQLITE = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
"""For what the store has no part in."""


async def log_of(store: Store, run: str) -> list[Event]:
    """Return a Run's log as a reader must see it."""
    found = await records(store, run, scope=ACME)
    return [Event(one.seq, one.type, one.model_dump(mode="json")) for one in found]


async def waiting(browser: Browser, run: str) -> dict[int, str]:
    """Return the calls that wait for consent: by the order's number, their ids."""
    view = await browser.told("GET", f"/runs/{run}")
    found: dict[int, str] = {}
    assert isinstance(view["pending_approvals"], list)
    for one in view["pending_approvals"]:
        assert isinstance(one, Mapping)
        assert isinstance(one["arguments"], Mapping)
        found[int(str(one["arguments"]["number"]))] = str(one["call_id"])
    return found


async def test_str_1_the_whole_story(site: Site, browser: Browser, store: Store) -> None:
    """Tokens, two calls that wait, one agreed to, a cut, a stop, and the next Run's answer."""
    for _ in range(2):
        site.work()
    run = await browser.start(QUESTION, key="mail-17")
    assert await browser.start(QUESTION, key="mail-17") == run
    whole, cut, pieces = (Reader(browser, run) for _ in range(3))
    others = [asyncio.create_task(whole.until(never)), asyncio.create_task(pieces.in_pieces())]

    await cut.until_type("model.delta")
    await cut.until_type("run.suspended")
    assert cut.answers() == [LOOKS, ASKS]
    calls = await waiting(browser, run)
    assert sorted(calls) == [4711, 4712]

    await browser.told("POST", f"/runs/{run}/decisions", {"decisions": {calls[4711]: "approve"}})
    refunded = await cut.until_type("tool.completed")
    assert refunded.data["call_id"] == calls[4711]
    assert refunded.data["outcome"] == "ok"
    await cut.until_type("run.suspended")
    assert await waiting(browser, run) == {4712: calls[4712]}

    await browser.told("DELETE", f"/runs/{run}")
    await cut.until(never)
    async with asyncio.timeout(START_SECONDS):
        await asyncio.gather(*others)
    log = await log_of(store, run)
    assert log[-1].type == "run.settled"
    assert log[-1].data["state"] == "aborted"
    assert whole.seen == log
    assert cut.seen == log
    assert pieces.seen == log
    assert pieces.connections == -(-len(log) // 2)

    said: JsonValue = {"message": "What did you do?", "queue": "next_run"}
    receipt = await browser.told("POST", f"/runs/{run}/messages", said, key="mail-18")
    following = str(receipt["run_id"])
    assert following != run
    assert await browser.told("POST", f"/runs/{run}/messages", said, key="mail-18") == receipt
    await settled_with_answer(browser, store, following)


async def test_run_5_a_message_before_the_stop_is_the_next_run(
    site: Site, browser: Browser, store: Store
) -> None:
    """It waits in the log of the first Run, whose end names the next one."""
    site.work()
    run = await browser.start(QUESTION)
    reader = Reader(browser, run)
    await reader.until_type("run.suspended")
    said: JsonValue = {"message": "What did you do?", "queue": "next_run"}
    assert (await browser.told("POST", f"/runs/{run}/messages", said))["run_id"] == run
    await browser.told("DELETE", f"/runs/{run}")
    await reader.until(never)
    assert reader.seen == await log_of(store, run)
    await settled_with_answer(browser, store, str(reader.seen[-1].data["next_run"]))


async def settled_with_answer(browser: Browser, store: Store, run: str) -> None:
    """Follow a Run to its answer, cut at its first words."""
    reader = Reader(browser, run)
    await reader.until_type("model.delta")
    await reader.until(never)
    assert reader.seen == await log_of(store, run)
    assert reader.answers() == [DONE]
    assert reader.seen[-1].data["state"] == "completed"


@ON_SQLITE
async def test_str_1_there_is_nothing_to_reconnect_for(site: Site, browser: Browser) -> None:
    """Behind the last record of a settled Run a browser is told so; before it, it gets the rest."""
    site.work()
    run = await browser.start(QUESTION)
    await browser.told("DELETE", f"/runs/{run}")
    reader = Reader(browser, run)
    await reader.until(never)
    last = reader.seen[-1]
    assert last.type == "run.settled"
    over = await browser.ask("GET", f"/runs/{run}/events?after={last.id}")
    assert (over.status_code, over.content) == (204, b"")
    rest = await browser.ask("GET", f"/runs/{run}/events?after={last.id - 1}")
    assert rest.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [line for line in rest.text.splitlines() if line.startswith("id:")] == [f"id: {last.id}"]


@ON_SQLITE
async def test_str_1_a_silent_stream_says_that_it_is_there(browser: Browser) -> None:
    """No worker, so nothing comes: comments do, which no client takes for an event."""
    run = await browser.start(QUESTION)
    comments = 0
    async for line in browser.lines(run, after=1):
        comments += line.startswith(":")
        assert not line.startswith("data")
        if comments == 2:
            break


REFUSED: list[tuple[str, str, JsonValue, int, str]] = [
    ("GET", "/runs/run_nope", None, 404, "run_not_found"),
    ("GET", "/runs/run_nope/events", None, 404, "run_not_found"),
    ("DELETE", "/runs/run_nope", None, 404, "run_not_found"),
    ("DELETE", "/runs/{over}", None, 409, "run_settled"),
    ("POST", "/runs/{over}/messages", {"message": "?"}, 409, "run_settled"),
    ("POST", "/runs/{live}/decisions", {"decisions": {"x": "deny"}}, 404, "approval_not_found"),
    ("POST", "/runs/{live}/decisions", {"decisions": {}}, 422, "invalid_argument"),
    ("POST", "/runs", {"message": "x" * 300_000}, 413, "payload_too_large"),
]


@ON_SQLITE
async def test_web_errors_are_statuses(site: Site, browser: Browser) -> None:
    """By the error's code, with the text that says what to do."""
    site.work()
    over, live = await browser.start(QUESTION), await browser.start(QUESTION)
    await browser.told("DELETE", f"/runs/{over}")
    await Reader(browser, over).until(never)
    await Reader(browser, live).until_type("run.suspended")
    for method, path, body, status, code in REFUSED:
        answer = await browser.ask(method, path.format(over=over, live=live), body)
        assert (path, answer.status_code, answer.json()["code"]) == (path, status, code)
        assert answer.json()["message"]


@ON_SQLITE
async def test_sec_4_a_tenant_sees_its_own_runs_only(browser: Browser) -> None:
    """Another tenant's Run is none, and nobody without a login sees any."""
    run = await browser.start(QUESTION)
    for headers, status in (({**ANN, "X-Tenant": "globex"}, 404), ({}, 401)):
        other = Browser(browser.address, headers)
        for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
            answer = await other.ask(method, f"/runs/{run}{path}")
            assert answer.status_code == status
        await other.close()
    assert (await browser.told("GET", f"/runs/{run}"))["head"] == 1
