"""Servers, workers and readers that go away: nobody misses or repeats a record (STR-1, STR-2)."""

import asyncio

import httpx2
import pytest

from psych_runtime._reads import status
from psych_runtime._system import System
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from tests.e2e.web.browser import Browser, Event, Reader, never
from tests.e2e.web.running import START_SECONDS, Site
from tests.e2e.web.test_story import ON_SQLITE, QUESTION, log_of
from tests.functional.engine.harness import ACME
from tests.servers.openai_server import (
    OpenAIServer,
    Stop,
    answer,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

BEGINNING = answer(sse(text_chunk("It is half a")), Stop.STALL)
WHOLE = answer(sse(text_chunk("It is whole."), finish_chunk(), usage_chunk(9, 3), "[DONE]"))


async def test_run_1_a_worker_killed_while_the_model_speaks(
    site: Site, browser: Browser, store: Store
) -> None:
    """The same connection goes on with the next worker's records."""
    async with OpenAIServer(BEGINNING, WHOLE) as model:
        first = site.work(PSYCH_BASE_URL=model.base_url)
        run = await browser.start(QUESTION)
        whole, cut = Reader(browser, run), Reader(browser, run)
        other = asyncio.create_task(whole.until(never))
        await cut.until_type("model.delta")
        assert (await browser.told("GET", f"/runs/{run}"))["lifecycle"] == "running"
        site.work(PSYCH_BASE_URL=model.base_url)
        first.kill()
        async with asyncio.timeout(START_SECONDS):
            await cut.until(never)
            await other
    log = await log_of(store, run)
    assert cut.seen == log
    assert whole.seen == log
    assert whole.connections == 1
    assert {event.data["epoch"] for event in log} == {0, 1, 2}
    assert log[-1].data["output"] == "It is whole."


async def test_str_1_a_web_server_is_killed_and_another_one_goes_on(
    site: Site, store: Store
) -> None:
    """Nothing was in its memory: ids, keys and Runs are good at any other."""
    site.work()
    server, address = await site.serve()
    browser = Browser(address)
    run = await browser.start(QUESTION, key="mail-17")
    reader = Reader(browser, run)

    def kill(event: Event) -> bool:
        if event.type == "model.delta":
            server.kill()
        return False

    with pytest.raises(httpx2.TransportError):
        await reader.until(kill)
    server.wait()
    _, browser.address = await site.serve()
    assert await browser.start(QUESTION, key="mail-17") == run
    await reader.until_type("run.suspended")
    await browser.told("DELETE", f"/runs/{run}")
    await reader.until(never)
    assert reader.seen == await log_of(store, run)
    await browser.close()


@ON_SQLITE
async def test_str_2_clients_that_go_away_or_never_read_cancel_nothing(
    site: Site, browser: Browser, store: Store
) -> None:
    """The Run ends as without them, for those, too, who come late."""
    run = await browser.start(QUESTION)
    gone = browser.lines(run)
    assert await anext(gone) == "retry: 1000"
    silent = browser.lines(run)
    assert await anext(silent) == "retry: 1000"
    await gone.aclose()
    site.work()
    reader = Reader(browser, run)
    await reader.until_type("run.suspended")
    ids = [f"id: {number}" for number in reader.ids]
    async for line in silent:
        if line.startswith("id: "):
            assert line == ids.pop(0)
        if not ids:
            break
    assert (await status(store, run, scope=ACME)).abort is None


async def test_c1_a_stop_reaches_the_model_of_a_run_that_is_read_again(
    site: Site, browser: Browser, store: Store
) -> None:
    """It is a command to the Run, not to the connection: the model's stream is closed."""
    async with OpenAIServer(BEGINNING) as model:
        site.work(PSYCH_BASE_URL=model.base_url)
        run = await browser.start(QUESTION)
        reader = Reader(browser, run)
        await reader.until_type("model.delta")
        assert model.left == 0
        following = asyncio.create_task(reader.until(never))
        await browser.told("DELETE", f"/runs/{run}")
        async with asyncio.timeout(START_SECONDS):
            await model.until_left(1)
            await following
    assert reader.seen == await log_of(store, run)
    assert reader.seen[-1].data["state"] == "aborted"
    [failed] = [event.data for event in reader.seen if event.type == "model.failed"]
    assert isinstance(failed["said"], dict)
    assert failed["said"]["parts"] == [{"kind": "text", "text": "It is half a"}]


@ON_SQLITE
async def test_web_a_log_that_cannot_be_read_is_told_as_an_event(
    browser: Browser, store: Store
) -> None:
    """What could be read came first; the status was on its way already."""
    run = await browser.start(QUESTION)
    lines = browser.lines(run)
    said = [await anext(lines) for _ in range(5)]
    assert said[2:4] == ["id: 1", "event: run.admitted"]
    marked = HeaderChange(state="corrupt", worker=None, wake_at=None, deadline_at=None)
    change = Change(run, 1, None, (), marked)
    await store.commit([Unit(System().new_id("com"), ACME.tenant, (change,))])
    rest = [line async for line in lines if line.startswith(("event: ", "data: {"))]
    assert rest[0] == "event: failure"
    assert '"code": "corrupt_log"' in rest[1]
