"""What a Run waits for besides consent: answers, events, time (R-13, SUS-1..6)."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import JsonValue

from psych_runtime._deliveries import deliver
from psych_runtime._reads import answer
from psych_runtime.api import interrupt, publish
from psych_runtime.errors import (
    IdempotencyConflict,
    InvalidArgument,
    InvalidPayload,
    InvalidSpec,
    QueueFull,
    RunNotFound,
    RunSettled,
    RunStopping,
    WaitNotFound,
    WaitOver,
)
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.base import format_instant
from psych_schema.common import Scope
from psych_schema.record import (
    EventReceived,
    RunSuspended,
    TasksUpdated,
    ToolCompleted,
    WaitOpened,
    WaitResolved,
)
from psych_schema.spec import QuestionRules, Skill
from tests.functional.engine.behaviour.people import (
    PAID,
    SHIPPED,
    Json,
    asker,
    asks,
    question,
    sleeps,
    waiting,
    waits_for,
)
from tests.functional.engine.behaviour.talk import answers, asked_ids, said, told
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    kinds_of,
    of_type,
    only,
    runtime,
)


async def test_sus_1_a_question_is_answered_by_whoever_knows(store: Store, crew: Crew) -> None:
    """In another process, with no worker meanwhile; nothing is held (SUS-4)."""
    model = asks(question("Which?", "red", "blue"))
    worker = await crew.start(runtime(store, model))
    run_id = await admit(store, asker("ask_question"))
    one = only(await waiting(store, run_id))
    assert one.kind == "question"
    assert one.ask == {
        "questions": [{"question": "Which?", "options": ["red", "blue"], "several": False}]
    }
    await eventually(lambda: not worker.holdings())
    await crew.stop(worker)
    assert (await answer(store, run_id, scope=ACME)).status == "waiting"
    receipt = await deliver(
        store, run_id, scope=ACME, payload={"answers": ["blue"]}, by="ann", key="k"
    )
    await crew.start(runtime(store, model))
    found = await told(store, run_id)
    assert found.end == ("completed", None)
    assert '"answers": ["blue"]' in only(found.calls)[2]
    resolved = only(found.every(WaitResolved))
    assert (resolved.by, resolved.how, resolved.seq) == ("ann", "delivered", receipt.seq)
    again = await deliver(
        store, run_id, scope=ACME, payload={"answers": ["blue"]}, by="ann", key="k"
    )
    assert again == receipt
    assert await kinds_of(store, run_id) == [
        *("run.admitted", "attempt.started", "turn.started", "tools.offered", "model.started"),
        *("model.completed", "wait.opened", "run.suspended", "wait.resolved", "attempt.started"),
        *("tool.started", "tool.completed", "turn.started", "model.started", "model.completed"),
        "run.settled",
    ]


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "blue",
        {},
        {"answers": []},
        {"answers": ["green", ["a"]]},
        {"answers": ["blue"]},
        {"answers": ["blue", "a"]},
        {"answers": ["blue", ["a", "c"]]},
        {"answers": ["blue", ["a", "a"]]},
        {"answers": ["blue", ["a"], "more"]},
        {"answers": ["blue", ["a"]], "more": 1},
    ],
)
async def test_sus_2_what_does_not_fit_is_not_taken(
    store: Store, crew: Crew, payload: JsonValue
) -> None:
    """It says where; the Run waits on."""
    model = asks(question("Which?", "red", "blue"), question("And?", "a", "b", several=True))
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker("ask_question"))
    await waiting(store, run_id)
    with pytest.raises(InvalidPayload) as caught:
        await deliver(store, run_id, scope=ACME, payload=payload)
    assert caught.value.what == "payload"
    await deliver(store, run_id, scope=ACME, payload={"answers": ["red", ["a", "b"]]})
    assert (await told(store, run_id)).end == ("completed", None)


async def test_sus_5_several_waits_end_in_any_order_by_id(store: Store, crew: Crew) -> None:
    """One of them must be named."""
    model = waits_for("paid", "shipped")
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker("wait_for_event", events=(PAID, SHIPPED)))
    paid, shipped = await waiting(store, run_id, 2)
    with pytest.raises(WaitNotFound) as caught:
        await deliver(store, run_id, scope=ACME, payload={"amount": 3})
    assert caught.value.open == (paid.wait_id, shipped.wait_id)
    await deliver(store, run_id, scope=ACME, payload="parcel 7", wait=shipped.wait_id)
    await waiting(store, run_id, 1)
    await deliver(store, run_id, scope=ACME, payload={"amount": 3}, wait=paid.wait_id)
    found = await told(store, run_id)
    by_call = {one.call_id: said(one) for one in found.every(ToolCompleted)}
    asked = asked_ids(model.requests[1].messages)
    assert [by_call[one] for one in asked] == ['{"amount": 3}', "parcel 7"]
    assert found.end == ("completed", None)


async def test_sus_2_an_event_that_comes_early_meets_its_wait(store: Store, crew: Crew) -> None:
    """It is kept; the first that came is the first that is met."""
    go = asyncio.Event()

    async def prepare() -> str:
        """Prepare."""
        await go.wait()
        return "ready"

    model = FakeModel().turn(tool_calls=[("prepare", {})])
    model.turn(tool_calls=[("wait_for_event", {"event": "paid"})]).turn(text="Done.")
    spec = asker("wait_for_event", events=(PAID,))
    spec = spec.model_copy(update={"tools": (*agent("prepare").tools, *spec.tools)})
    await crew.start(runtime(store, model, prepare))
    run_id = await admit(store, spec)
    for amount in (1, 2):
        await deliver(store, run_id, scope=ACME, payload={"amount": amount}, event="paid")
    go.set()
    found = await told(store, run_id)
    assert [one.payload for one in found.every(EventReceived)] == [{"amount": 1}, {"amount": 2}]
    resolved = only(found.every(WaitResolved))
    assert resolved.event_id == found.every(EventReceived)[0].event_id
    assert found.every(RunSuspended) == []
    assert '"amount": 1' in found.calls[-1][2]


async def test_sus_2_an_event_that_is_waited_for_ends_the_wait(store: Store, crew: Crew) -> None:
    """By its name; what comes after is kept, and nobody is hurt."""
    await crew.start(runtime(store, waits_for("paid")))
    run_id = await admit(store, asker("wait_for_event", events=(PAID,)))
    await waiting(store, run_id)
    await deliver(store, run_id, scope=ACME, payload={"amount": 1}, event="paid", key="once")
    await deliver(store, run_id, scope=ACME, payload={"amount": 1}, event="paid", key="once")
    found = await told(store, run_id)
    assert only(found.every(WaitResolved)).payload == {"amount": 1}
    assert found.every(EventReceived) == []
    with pytest.raises(RunSettled):
        await deliver(store, run_id, scope=ACME, payload={"amount": 2}, event="paid")


@pytest.mark.parametrize("payload", [None, {}, {"amount": "much"}, [1]])
async def test_sus_2_an_events_payload_is_checked_before_it_is_kept(
    store: Store, payload: JsonValue
) -> None:
    """Nobody waits for it yet, and no worker has begun."""
    run_id = await admit(store, asker("wait_for_event", events=(PAID,)))
    with pytest.raises(InvalidPayload):
        await deliver(store, run_id, scope=ACME, payload=payload, event="paid")
    with pytest.raises(InvalidArgument, match="there are: paid"):
        await deliver(store, run_id, scope=ACME, payload=payload, event="payed")
    assert await kinds_of(store, run_id) == ["run.admitted"]


async def test_sus_2_a_run_keeps_a_bounded_number_of_events(store: Store) -> None:
    """What nobody waits for does not grow for ever; its queues are bounded likewise (R-18)."""
    run_id = await admit(store, asker("wait_for_event", events=(SHIPPED,)))
    for number in range(16):
        await deliver(store, run_id, scope=ACME, payload=number, event="shipped")
    with pytest.raises(QueueFull, match="16 events kept") as caught:
        await deliver(store, run_id, scope=ACME, payload=16, event="shipped")

    assert (caught.value.reason, caught.value.bound) == ("events", 16)
    assert len(await of_type(store, run_id, EventReceived)) == 16


async def test_sus_5_more_calls_than_can_wait_are_told_so(store: Store, crew: Crew) -> None:
    """A header names a bounded number of what is open; the model may ask again."""
    calls = [("wait_for_time", {"seconds": 3600 + number}) for number in range(50)]
    model = FakeModel().turn(tool_calls=calls).turn(text="Done.")
    await crew.start(runtime(store, model))
    spec = asker("wait_for_time")
    many = spec.limits.model_copy(update={"max_tool_calls_per_turn": 60})
    run_id = await admit(store, spec.model_copy(update={"limits": many}))
    await waiting(store, run_id, 48)
    ended = await of_type(store, run_id, ToolCompleted)
    assert [(one.outcome, one.failure and one.failure.code) for one in ended] == [
        ("error", "limit")
    ] * 2


async def test_sus_2_an_event_that_is_waited_for_needs_no_room(store: Store, crew: Crew) -> None:
    """However many of another name are kept."""
    worker = await crew.start(runtime(store, waits_for("paid")))
    run_id = await admit(store, asker("wait_for_event", events=(PAID, SHIPPED)))
    await waiting(store, run_id)
    await crew.stop(worker)
    for number in range(16):
        await deliver(store, run_id, scope=ACME, payload=number, event="shipped")
    await deliver(store, run_id, scope=ACME, payload={"amount": 1}, event="paid")
    assert len(await of_type(store, run_id, WaitResolved)) == 1


@pytest.mark.parametrize("named", [True, False])
async def test_sus_3_nobody_delivers_to_a_timer(store: Store, crew: Crew, named: bool) -> None:
    """The error says that it ends by itself, and when."""
    model = sleeps(3600)
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker("wait_for_time"))
    one = only(await waiting(store, run_id))
    assert one.due is not None
    name = one.wait_id if named else None
    with pytest.raises(WaitNotFound) as caught:
        await deliver(store, run_id, scope=ACME, payload=None, wait=name)

    words = f"{one.wait_id} is a timer: nobody delivers to it, it ends by itself at "
    assert words + format_instant(one.due) in str(caught.value)
    assert caught.value.open == ()


async def test_sus_1_a_call_is_no_wait(store: Store, crew: Crew) -> None:
    """The error names the wait that the call has."""
    await crew.start(runtime(store, asks(question("Which?"))))
    run_id = await admit(store, asker("ask_question"))
    one = only(await waiting(store, run_id))
    [opened] = await of_type(store, run_id, WaitOpened)
    with pytest.raises(WaitNotFound, match=f"is a call: name its wait, {one.wait_id}"):
        await deliver(store, run_id, scope=ACME, payload={}, wait=opened.call)


async def test_sus_3_a_timer_ends_once_by_the_stores_time(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """With no process in between."""
    model = sleeps(3600)
    worker = await crew.start(runtime(store, model))
    run_id = await admit(store, asker("wait_for_time"))
    one = only(await waiting(store, run_id))
    assert one.due is not None
    assert timedelta(seconds=3590) < one.due - one.opened_at < timedelta(seconds=3610)
    await eventually(lambda: not worker.holdings())
    await crew.stop(worker)
    with pytest.raises(WaitNotFound):
        await deliver(store, run_id, scope=ACME, payload=None)
    clock.shift_seconds = 3700.0
    await crew.start(runtime(store, model))
    found = await told(store, run_id)
    assert only(found.every(WaitResolved)).how == "due"
    assert found.calls == [("ok", "", "The time is over.")]


@pytest.mark.parametrize(
    ("on_expiry", "end", "call"),
    [
        ("continue", ("completed", None), ("ok", "")),
        ("fail", ("completed", None), ("error", "wait_expired")),
        ("settle", ("expired", "wait_expired"), None),
    ],
)
async def test_sus_6_what_expires_does_what_the_spec_says(
    store: Store,
    crew: Crew,
    clock: ShiftedSystem,
    on_expiry: str,
    end: tuple[str, str | None],
    call: tuple[str, str] | None,
) -> None:
    """Nobody needs to call; what happens then is recorded."""
    rules = QuestionRules.model_validate({"expires_seconds": 60.0, "on_expiry": on_expiry})
    await crew.start(runtime(store, asks(question("Which?"))))
    run_id = await admit(store, asker("ask_question", questions=rules))
    one = only(await waiting(store, run_id))
    assert (await store.header(ACME.tenant, run_id)).wake_at == one.expires_at
    clock.shift_seconds = 120.0
    found = await told(store, run_id)
    assert only(found.every(WaitResolved)).how == "expired"
    assert found.end == end
    assert [told[:2] for told in found.calls] == ([] if call is None else [call])
    with pytest.raises((WaitOver, RunSettled)):
        await deliver(store, run_id, scope=ACME, payload={"answers": ["x"]}, wait=one.wait_id)


async def test_sus_5_a_wait_that_is_over_is_over(store: Store, crew: Crew) -> None:
    """A second answer is told so; one without a name, that nothing is waited for."""
    model = waits_for("paid", "shipped")
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker("wait_for_event", events=(PAID, SHIPPED)))
    paid, _ = await waiting(store, run_id, 2)
    await deliver(store, run_id, scope=ACME, payload={"amount": 3}, wait=paid.wait_id, key="k")
    with pytest.raises(WaitOver) as caught:
        await deliver(store, run_id, scope=ACME, payload={"amount": 4}, wait=paid.wait_id)
    assert caught.value.how == "delivered"
    with pytest.raises(IdempotencyConflict):
        await deliver(store, run_id, scope=ACME, payload={"amount": 4}, wait=paid.wait_id, key="k")
    with pytest.raises(WaitNotFound):
        await deliver(store, run_id, scope=ACME, payload=1, wait="wait_none")
    with pytest.raises(RunNotFound):
        await deliver(
            store, run_id, scope=Scope(tenant="globex"), payload={"amount": 4}, event="paid"
        )


async def test_run_4_an_interrupt_voids_what_a_run_waits_for(store: Store, crew: Crew) -> None:
    """At once, without its worker; nothing is delivered any more."""
    run_id = await admit(store, asker("ask_question"))
    worker = await crew.start(runtime(store, asks(question("Which?"))))
    one = only(await waiting(store, run_id))
    await crew.stop(worker)
    await interrupt(store, run_id, scope=ACME)
    with pytest.raises(RunStopping):
        await deliver(store, run_id, scope=ACME, payload={"answers": ["x"]}, wait=one.wait_id)
    await crew.start(runtime(store, FakeModel()))
    found = await told(store, run_id)
    assert found.end == ("aborted", "aborted")
    assert found.every(WaitResolved) == []


async def test_sus_5_ten_answers_at_once_are_one(store: Store, crew: Crew) -> None:
    """The others learn that it is over."""
    await crew.start(runtime(store, asks(question("Which?"))))
    run_id = await admit(store, asker("ask_question"))
    one = only(await waiting(store, run_id))
    results = await asyncio.gather(
        *[
            deliver(store, run_id, scope=ACME, payload={"answers": [str(n)]}, wait=one.wait_id)
            for n in range(10)
        ],
        return_exceptions=True,
    )
    assert len([r for r in results if not isinstance(r, BaseException)]) == 1
    assert {type(r) for r in results if isinstance(r, BaseException)} <= {WaitOver, RunSettled}
    found = await told(store, run_id)
    assert len(found.every(WaitResolved)) == 1
    assert len(found.every(WaitOpened)) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("ask_question", {"questions": []}, "1 to 16 questions"),
        ("wait_for_event", {"event": "gone"}, "- paid: The customer has paid."),
        ("wait_for_time", {"seconds": 0}, "more than 0"),
        ("wait_for_time", {"seconds": 1e12}, "at most 366 days (31622400 seconds)"),
        ("ask_question", {"questions": [{"question": " \n"}]}, "Question 1: it is empty"),
        ("ask_question", {"questions": [question("Which?", "red")]}, "no choice"),
        ("ask_question", {"questions": [question("Which?", "red", " ")]}, "an option is empty"),
        ("ask_question", {"questions": [question("Which?", "a", "a ")]}, 'option "a" stands'),
        ("ask_question", {"questions": [question("Why?"), question("Which?", "a")]}, "Question 2"),
    ],
)
async def test_sus_1_what_cannot_be_waited_for_is_said(
    store: Store, crew: Crew, name: str, arguments: Json, words: str
) -> None:
    """The model goes on; nothing waits."""
    model = FakeModel().turn(tool_calls=[(name, arguments)]).turn(text="Done.")
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker(name, events=(PAID,)))
    found = await told(store, run_id)
    [(outcome, code, text)] = found.calls
    assert (outcome, code) == ("error", "no_such_thing")
    assert words in text
    assert found.every(WaitOpened) == []


async def test_mod_8_a_skill_is_not_in_the_prompt_until_it_is_loaded(
    store: Store, crew: Crew
) -> None:
    """Its name and what it is for are; its text comes as a result, and stays."""
    spec = asker("load_skill").model_copy(
        update={
            "skills": (
                Skill(name="refunds", description="Paying money back.", text="SECRET STEPS"),
            )
        }
    )
    model = FakeModel().turn(tool_calls=[("load_skill", {"name": "refunds"})])
    model.turn(tool_calls=[("load_skill", {"name": "refund"})]).turn(text="Done.")
    await crew.start(runtime(store, model))
    found = await told(store, await admit(store, spec))
    first = model.requests[0].model_dump_json()
    assert "Paying money back." in first
    assert "SECRET STEPS" not in first
    assert answers(model.requests[1].messages)[0][1] == "SECRET STEPS"
    assert "- refunds: Paying money back." in answers(model.requests[2].messages)[1][1]
    assert found.end == ("completed", None)


async def test_log_2_a_list_of_tasks_is_kept_in_the_log(store: Store, crew: Crew) -> None:
    """The whole list each time; people see it."""
    tasks: JsonValue = [{"title": "Look", "state": "doing"}, {"title": "Pay", "state": "open"}]
    model = FakeModel().turn(tool_calls=[("update_tasks", {"tasks": tasks})])
    wrong: Json = {"tasks": [{"title": "Look", "state": "gone"}]}
    model.turn(tool_calls=[("update_tasks", wrong)])
    model.turn(text="Done.")
    await crew.start(runtime(store, model))
    run_id = await admit(store, asker("update_tasks"))
    found = await told(store, run_id)
    assert only(found.every(TasksUpdated)).tasks == tasks
    assert [code for code, _ in found.refusals] == ["malformed"]
    assert only(await of_type(store, run_id, TasksUpdated)).content_digest is not None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tools": [{"kind": "builtin", "name": "load_skill"}]}, "nothing_to_work_on"),
        ({"tools": [{"kind": "builtin", "name": "wait_for_event"}]}, "nothing_to_work_on"),
        ({"ask_before": {"tools": ["pay"]}}, "unknown_selector"),
        (
            {"events": [{"name": "paid", "description": "x", "payload_schema": {"type": 3}}]},
            "invalid_json_schema",
        ),
        ({"skills": [{"name": "s", "description": "d", "text": "a\0b"}]}, "nul_character"),
    ],
)
async def test_pub_1_what_cannot_work_is_not_published(
    store: Store, change: Json, code: str
) -> None:
    """All at once, each with its place."""
    spec: Json = {
        "kind": "agent",
        "name": "a",
        "instructions": "x",
        "model": {"model": "fake"},
        **change,
    }
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME)
    assert [issue.code for issue in caught.value.issues] == [code]


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [{"kind": "builtin", "name": "ask_questions"}]},
        {"ask_before": {"risks": ["everything"]}},
        {"questions": {"on_expiry": "explode"}},
        {"questions": {"expires_seconds": 0}},
        {"events": [{"name": "a", "description": "x"}, {"name": "a", "description": "y"}]},
    ],
)
async def test_app_1_a_typo_is_refused(store: Store, change: Json) -> None:
    """The vocabulary is closed."""
    spec: Json = {
        "kind": "agent",
        "name": "a",
        "instructions": "x",
        "model": {"model": "fake"},
        **change,
    }
    with pytest.raises(InvalidSpec):
        await publish(store, spec, scope=ACME)
