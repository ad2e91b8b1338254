"""Consent: asked for, and decided once by a named person (R-12, APP-1, APP-2, APP-4)."""

import asyncio

import pytest

from psych_runtime._decisions import Choice, Edit, decide
from psych_runtime._reads import answer, status, wait
from psych_runtime.api import interrupt
from psych_runtime.errors import (
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalOver,
    IdempotencyConflict,
    InvalidArgument,
    RunNotFound,
    RunSettled,
)
from psych_runtime.ports.policy import Ask
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_schema.common import Scope
from psych_schema.record import ApprovalDecided, RunSuspended, ToolRefused
from tests.functional.engine.behaviour.people import (
    BY,
    Asks,
    Decides,
    Till,
    asking,
    choose,
    paying,
    payment,
    pending,
)
from tests.functional.engine.behaviour.talk import answers, told
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


async def test_app_1_a_call_that_may_change_something_waits(store: Store, crew: Crew) -> None:
    """It is asked for with its arguments, and nothing is held while it waits (SUS-4)."""
    till, model = Till(), paying(("bob", 3))
    run = await asking(store, crew, till.pay, model=model, policy=AskUnlessReadOnly())
    assert (run.one.identity, run.one.risk, run.one.arguments) == (
        "code:pay",
        "write",
        {"to": "bob", "amount": 3},
    )
    await eventually(lambda: not run.worker.holdings())
    assert till.paid == []
    header = await store.header(ACME.tenant, run.run_id)
    assert (header.worker, header.deadline_at) == (None, None)
    assert header.remaining_seconds is not None
    assert (await answer(store, run.run_id, scope=ACME)).status == "waiting"
    await run.decide("approve")
    found = await run.told()
    assert till.paid == [("bob", 3)]
    assert found.end == ("completed", None)
    assert await kinds_of(store, run.run_id) == [
        *("run.admitted", "attempt.started", "turn.started", "tools.offered", "model.started"),
        *("model.completed", "approval.requested", "run.suspended", "approval.decided"),
        *("attempt.started", "tool.started", "tool.completed", "turn.started", "model.started"),
        *("model.completed", "run.settled"),
    ]


async def test_app_2_all_of_a_turn_wait_at_once_and_are_decided_one_by_one(
    store: Store, crew: Crew
) -> None:
    """In any order; each that is consented to runs, whatever becomes of the others."""
    till, model = Till(), paying(("ann", 1), ("bob", 2), ("cid", 3))
    await crew.start(runtime(store, model, till.pay, policy=Asks()))
    run_id = await admit(store, agent("pay"))
    await pending(store, run_id, 3)
    await choose(store, run_id, bob="approve")
    await eventually(lambda: till.paid == [("bob", 2)])
    await pending(store, run_id, 2)
    await choose(store, run_id, cid="deny", ann="approve")
    found = await told(store, run_id)
    assert till.paid == [("bob", 2), ("ann", 1)]
    assert [code for code, _ in found.refusals] == ["denied"]
    texts = [text for _, text in answers(model.requests[1].messages)]
    assert texts[:2] == ["paid 1 to ann", "paid 2 to bob"]
    assert "A person denied this call" in texts[2]


async def test_app_2_a_call_runs_while_others_of_its_turn_still_do(
    store: Store, crew: Crew
) -> None:
    """Consent is heard of at once, not when the turn is over."""
    till, go = Till(), asyncio.Event()

    @tool(annotations={"read-only"})
    async def look() -> str:
        """Look for a while."""
        await go.wait()
        return "seen"

    model = FakeModel().turn(tool_calls=[("look", {}), payment("bob", 1)])
    model.turn(text="Done.")
    await crew.start(runtime(store, model, look, till.pay, policy=AskUnlessReadOnly()))
    run_id = await admit(store, agent("look", "pay"))

    async def asked() -> bool:
        return bool((await status(store, run_id, scope=ACME)).pending_approvals)

    await eventually(asked)
    await choose(store, run_id, bob="approve")
    await eventually(lambda: till.paid == [("bob", 1)])
    assert not await of_type(store, run_id, RunSuspended)
    go.set()
    assert (await told(store, run_id)).end == ("completed", None)


async def test_app_2_the_same_decision_again_changes_nothing(store: Store, crew: Crew) -> None:
    """With a key or without, before and after the Run has settled; another one is refused."""
    till = Till()
    run = await asking(store, crew, till.pay)
    await crew.stop(run.worker)
    first = await run.decide("approve", key="k")
    assert first == await run.decide("approve", key="k")
    by_approval: dict[str, Choice] = {run.one.approval_id: "approve"}
    assert first == await decide(store, run.run_id, scope=ACME, decisions=by_approval, by="cid")
    with pytest.raises(ApprovalConflict) as caught:
        await run.decide("deny", by="cid")
    assert (caught.value.by, caught.value.decision) == (BY, "approve")
    with pytest.raises(IdempotencyConflict):
        await run.decide("approve", key="k", reason="!")
    await crew.start(runtime(store, paying(("bob", 3)), till.pay, policy=Asks()))
    await run.told()
    assert first == await run.decide("approve", key="k")
    assert first == await run.decide("approve")
    assert till.paid == [("bob", 3)]
    assert len(await of_type(store, run.run_id, ApprovalDecided)) == 1


async def test_app_2_two_people_at_once_one_decides(store: Store, crew: Crew) -> None:
    """The other one is told who did."""
    till = Till()
    run = await asking(store, crew, till.pay)
    choices: list[Choice] = ["approve", "deny"] * 4
    results = await asyncio.gather(
        *[run.decide(choice, by=f"p{place % 2}") for place, choice in enumerate(choices)],
        return_exceptions=True,
    )
    won = only({type(result).__name__ for result in results} - {"ApprovalConflict"})
    assert won == "Receipt"
    decided = only(await of_type(store, run.run_id, ApprovalDecided))
    refused = [result for result in results if isinstance(result, ApprovalConflict)]
    assert len(refused) == 4
    assert {(one.by, one.decision) for one in refused} == {(decided.by, decided.decision)}
    await run.told()
    assert till.paid == ([("bob", 3)] if decided.decision == "approve" else [])


async def test_app_4_after_an_interrupt_nothing_is_decided(store: Store, crew: Crew) -> None:
    """The approval is void, the Run stops at once, and nothing runs."""
    till = Till()
    run = await asking(store, crew, till.pay)
    await crew.stop(run.worker)
    await interrupt(store, run.run_id, scope=ACME)
    with pytest.raises(ApprovalOver) as caught:
        await run.decide("approve")
    assert caught.value.reason == "voided"
    await crew.start(runtime(store, FakeModel(), till.pay, policy=Asks()))
    found = await run.told()
    assert found.end == ("aborted", "aborted")
    assert [code for code, _ in found.refusals] == ["aborted"]
    assert till.paid == []
    with pytest.raises(RunSettled):
        await run.decide("approve")


@pytest.mark.parametrize("name", ["call_00000000000000000000000000", "apr_1", "", "pay"])
async def test_app_4_unknown_calls_are_refused(store: Store, crew: Crew, name: str) -> None:
    """And nothing of the same request is written."""
    till = Till()
    run = await asking(store, crew, till.pay)
    with pytest.raises(ApprovalNotFound):
        await decide(
            store,
            run.run_id,
            scope=ACME,
            decisions={run.one.call_id: "approve", name: "deny"},
            by=BY,
        )
    assert only((await status(store, run.run_id, scope=ACME)).pending_approvals) == run.one


async def test_sec_4_another_tenant_decides_nothing(store: Store, crew: Crew) -> None:
    """The Run is not there for it."""
    till = Till()
    run = await asking(store, crew, till.pay)
    with pytest.raises(RunNotFound):
        await decide(
            store,
            run.run_id,
            scope=Scope(tenant="globex"),
            decisions={run.one.call_id: "approve"},
            by=BY,
        )


async def test_app_2_who_decides_reads_why_and_why_again(store: Store, crew: Crew) -> None:
    """What the policy says, and that an edit does not fit the tool."""
    till = Till()
    policy = Decides(lambda arguments: Ask(reason=f"Above {arguments['amount']} EUR."))
    run = await asking(store, crew, till.pay, policy=policy)
    before = run.one
    assert before.reason == "Above 3 EUR."
    await run.decide(Edit({"to": "bob", "amount": "much"}))
    after = await run.anew()
    assert after.arguments == before.arguments
    assert after.reason == ("Asked again: the edited arguments do not fit the tool. Above 3 EUR.")
    await run.decide("deny")
    await run.told()
    assert till.paid == []


@pytest.mark.parametrize("reason", ["\ud800", "é" * 400])
async def test_app_2_any_reason_can_be_kept(store: Store, crew: Crew, reason: str) -> None:
    """Half a character and too many of them are no reason to forget the call."""
    run = await asking(store, crew, Till().pay, policy=Decides(lambda _: Ask(reason)))
    assert run.one.reason is not None
    assert len(run.one.reason.encode()) <= 512


@pytest.mark.parametrize(
    "decisions",
    [
        {},
        [],
        None,
        {"call_1": "yes"},
        {"call_1": True},
        {"call_1": Edit("amount")},  # type: ignore[arg-type]
        {1: "approve"},
        {f"call_{number}": "approve" for number in range(65)},
    ],
)
async def test_app_2_what_is_no_decision_is_refused(store: Store, decisions: object) -> None:
    """Before the store is asked."""
    with pytest.raises(InvalidArgument):
        await decide(
            store,
            "run_1",
            scope=ACME,
            decisions=decisions,  # type: ignore[arg-type]
            by=BY,
        )


async def test_app_2_a_decision_has_a_name(store: Store) -> None:
    """It stands in the log."""
    for by in (None, "", "x" * 300):
        with pytest.raises(InvalidArgument):
            await decide(
                store,
                "run_1",
                scope=ACME,
                decisions={"call_1": "approve"},
                by=by,  # type: ignore[arg-type]
            )


async def test_app_1_refused_calls_never_wait(store: Store, crew: Crew) -> None:
    """Malformed and unknown ones are answered at once; only the others are asked about."""
    till = Till()
    model = FakeModel()
    model.turn(
        tool_calls=[
            payment("bob", "x"),
            payment("bob", 1),
            ("gone", {}),
        ]
    ).turn(text="Done.")
    run = await asking(store, crew, till.pay, model=model)
    refused = await of_type(store, run.run_id, ToolRefused)
    assert sorted(one.code for one in refused) == ["malformed", "unknown"]
    await run.decide("approve")
    await wait(store, run.run_id, scope=ACME, timeout_seconds=20)
    assert till.paid == [("bob", 1)]


async def test_run_7_time_spent_waiting_for_people_does_not_count(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """A Run with a hundred seconds may wait for a day."""
    till = Till()
    await crew.start(runtime(store, paying(("bob", 3)), till.pay, policy=Asks()))
    run_id = await admit(store, agent("pay"), deadline_seconds=100.0)
    await pending(store, run_id, 1)
    clock.shift_seconds = 86_400.0
    await choose(store, run_id, bob="approve")
    found = await told(store, run_id)
    assert found.end == ("completed", None)
    assert till.paid == [("bob", 3)]


async def test_app_2_more_calls_than_can_wait_are_refused(store: Store, crew: Crew) -> None:
    """A header names a bounded number of what is open; the model is told to ask again."""
    till = Till()
    calls = [(f"p{number}", number) for number in range(60)]
    await crew.start(runtime(store, paying(*calls), till.pay, policy=Asks()))
    run_id = await admit(store, agent("pay", max_tool_calls_per_turn=60))
    found = await pending(store, run_id, 48)
    refused = await of_type(store, run_id, ToolRefused)
    assert {one.code for one in refused} == {"limit"}
    assert len(refused) == 12
    await decide(
        store,
        run_id,
        scope=ACME,
        decisions={one.approval_id: "deny" for one in found},
        by=BY,
    )
    assert (await told(store, run_id)).end == ("completed", None)
