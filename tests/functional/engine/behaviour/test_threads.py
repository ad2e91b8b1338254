"""thread: the Runs of a thread, page by page, and what was said in them (R-18, RUN-5)."""

import pytest

from psych_runtime._erase import erase
from psych_runtime._messages import cancel, send
from psych_runtime._reads import thread
from psych_runtime._system import System
from psych_runtime.api import interrupt
from psych_runtime.errors import InvalidArgument, InvalidPayload, RunNotFound
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.common import Scope
from psych_schema.view import ThreadRun
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, agent, run_to_end, runtime


@tool
async def charge() -> str:
    """Charge the card."""
    return "charged"


def told(run: ThreadRun) -> list[tuple[str, str | None, str | None]]:
    """Return kind, author and words of what was said in a Run; of a call, what came of it."""
    found: list[tuple[str, str | None, str | None]] = []
    for one in run.said:
        match one.kind:
            case "user":
                found.append((one.kind, one.by, one.text))
            case "model":
                found.append((one.kind, None, one.text))
            case "call":
                found.append((one.kind, one.name, one.outcome))
            case "abort":
                found.append((one.kind, one.by, one.reason))
    return found


async def line(store: Store, crew: Crew, runs: int) -> list[str]:
    """Return the Runs of a thread that has ended, in order."""
    model = FakeModel()
    for number in range(runs):
        model.turn(text=f"A{number}")
    await crew.start(runtime(store, model))
    found = [await admit(store, agent(), "Q0")]
    await run_to_end(store, found[0])
    for number in range(1, runs):
        receipt = await send(
            store, found[0], scope=ACME, message=f"Q{number}", queue="next_run", by="ann"
        )
        found.append(receipt.run_id)
        await run_to_end(store, found[-1])
    return found


async def test_r_18_thread_shows_who_said_what_in_order(store: Store, crew: Crew) -> None:
    """Input, calls, messages where the model read them, answers; the next Run behind it."""
    run = await admit(store, agent("charge"), "Charge me.")
    await send(store, run, scope=ACME, message="And then?", queue="follow_up", by="bob")
    await send(store, run, scope=ACME, message="Be brief.", by="ann")
    wrong = await send(store, run, scope=ACME, message="Never mind.", by="ann")
    await cancel(store, run, str(wrong.entry_id), scope=ACME)
    await send(store, run, scope=ACME, message="Again.", queue="next_run", by="cay")
    model = FakeModel().turn("I do.", [("charge", {})]).turn("Done.").turn("Nothing.").turn("Well.")
    await crew.start(runtime(store, model, charge))
    header = await run_to_end(store, run)
    tail = await store.tail(ACME.tenant, run)
    assert tail is not None
    await run_to_end(store, tail.run_id)
    page = await thread(store, tail.run_id, scope=ACME)

    first, second = page.runs
    assert (page.thread, page.cursor) == (run, None)
    assert (first.run_id, first.position, first.version) == (run, 1, header.version)
    assert (first.lifecycle, second.lifecycle) == ("done", "done")
    assert first.ended is not None
    assert first.created_at == header.created_at
    assert told(first) == [
        ("user", None, "Charge me."),
        ("user", "ann", "Be brief."),
        ("model", None, "I do."),
        ("call", "charge", "ok"),
        ("model", None, "Done."),
        ("user", "bob", "And then?"),
        ("model", None, "Nothing."),
    ]
    assert first.unread == ()
    assert told(second) == [("user", "cay", "Again."), ("model", None, "Well.")]


async def test_r_18_messages_for_the_next_run_stand_by_themselves(store: Store, crew: Crew) -> None:
    """Three that waited begin one Run: each with its author, also alone on its page."""
    run = await admit(store, agent(), "Go.")
    for by, text in (("ann", "One."), ("bob", "Two."), ("cay", "Three.")):
        await send(store, run, scope=ACME, message=text, queue="next_run", by=by)
    await crew.start(runtime(store, FakeModel().turn("A.").turn("B.")))
    await run_to_end(store, run)
    tail = await store.tail(ACME.tenant, run)
    assert tail is not None
    await run_to_end(store, tail.run_id)

    for limit in (1, 2):
        page = await thread(store, run, scope=ACME, limit=limit)
        assert told(page.runs[-1]) == [
            ("user", "ann", "One."),
            ("user", "bob", "Two."),
            ("user", "cay", "Three."),
            ("model", None, "B."),
        ]
        assert page.runs[0].unread == ()


async def test_r_18_thread_of_a_run_that_nobody_has_begun(store: Store) -> None:
    """What waits in its queues, and that somebody asked it to stop."""
    run = await admit(store, agent(), "Go.")
    await send(store, run, scope=ACME, message="Be brief.", by="ann")
    await send(store, run, scope=ACME, message="Again.", queue="next_run")
    await interrupt(store, run, scope=ACME, by="bob", reason="enough", force=True)
    [only] = (await thread(store, run, scope=ACME)).runs

    assert (only.lifecycle, only.ended) == ("stopping", None)
    assert told(only) == [("user", None, "Go."), ("abort", "bob", "enough")]
    assert [(one.queue, one.state, one.text) for one in only.unread] == [
        ("steer", "queued", "Be brief."),
        ("next_run", "queued", "Again."),
    ]


async def test_r_18_pages_begin_with_the_newest_runs(store: Store, crew: Crew) -> None:
    """Each Run stands on one page, in order; the last page has no cursor."""
    runs = await line(store, crew, 5)
    pages: list[list[str]] = []
    cursor: str | None = None
    for _ in range(3):
        page = await thread(store, runs[2], scope=ACME, cursor=cursor, limit=2)
        pages.append([one.run_id for one in page.runs])
        cursor = page.cursor
    whole = await thread(store, runs[0], scope=ACME, limit=5)

    assert pages == [runs[3:], runs[1:3], runs[:1]]
    assert cursor is None
    assert whole.cursor is None
    assert [told(one)[-2:] for one in whole.runs] == [
        [("user", None if n == 0 else "ann", f"Q{n}"), ("model", None, f"A{n}")] for n in range(5)
    ]


async def test_r_18_a_page_reads_no_other_log(store: Store, flaky: Flaky, crew: Crew) -> None:
    """A long thread costs what the page holds: one log for each of its Runs."""
    runs = await line(store, crew, 5)
    flaky.faults.reset_counts()
    await thread(flaky, runs[0], scope=ACME, limit=2)

    assert flaky.faults.calls["read"] == 2
    assert flaky.faults.calls["header"] == 3  # of the Run named, and of those before the tail


async def test_r_11_erased_words_are_gone(store: Store, crew: Crew) -> None:
    """Of that Run only; who said them, and that something was said, is left."""
    runs = await line(store, crew, 3)
    await erase(store, runs[1], scope=ACME, by="ann")
    page = await thread(store, runs[0], scope=ACME)

    assert told(page.runs[1]) == [("user", "ann", None), ("model", None, None)]
    assert [one.gone for one in page.runs[1].said if one.kind == "user"] == [True]
    assert told(page.runs[2]) == [("user", "ann", "Q2"), ("model", None, "A2")]


async def test_ten_4_thread_of_another_tenant_is_none(store: Store) -> None:
    """Nor can its Runs be a cursor."""
    run = await admit(store, agent())
    theirs = Scope(tenant="globex")
    other = await admit(store, agent(), scope=theirs)
    with pytest.raises(RunNotFound):
        await thread(store, run, scope=theirs)
    with pytest.raises(InvalidPayload):
        await thread(store, run, scope=ACME, cursor=other)


async def test_st_5_cursor_and_limit_that_are_none(store: Store) -> None:
    """A Run of another thread, no Run, a number; no Runs at all."""
    run = await admit(store, agent())
    other = await admit(store, agent())
    for cursor in (other, System().new_id("run"), "", "x"):
        with pytest.raises(InvalidPayload) as caught:
            await thread(store, run, scope=ACME, cursor=cursor)
        assert caught.value.what == "cursor"
    with pytest.raises(InvalidArgument):
        await thread(store, run, scope=ACME, cursor=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        await thread(store, run, scope=ACME, limit=0)
