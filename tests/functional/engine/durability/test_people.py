"""What people do to a Run holds on every store (APP-1..4, SUS-1..6, RUN-4)."""

from psych_runtime.ports.store import Store
from psych_schema.record import ApprovalExpired, RunSuspended, WaitResolved
from psych_schema.spec import QuestionRules
from tests.functional.engine.behaviour.people import (
    Asks,
    Till,
    asker,
    asks,
    paying,
    question,
    sleeps,
)
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.behaviour.test_approvals import (
    test_app_1_a_call_that_may_change_something_waits,
    test_app_2_all_of_a_turn_wait_at_once_and_are_decided_one_by_one,
    test_app_2_the_same_decision_again_changes_nothing,
    test_app_2_two_people_at_once_one_decides,
    test_app_4_after_an_interrupt_nothing_is_decided,
    test_sec_4_another_tenant_decides_nothing,
)
from tests.functional.engine.behaviour.test_approvals_used import (
    test_app_3_an_edit_consents_to_other_arguments_in_one_step,
    test_run_1_an_approved_call_that_is_safe_runs_again_without_a_new_consent,
)
from tests.functional.engine.behaviour.test_memory import (
    test_what_is_remembered_is_recalled_by_the_same_principal_only,
)
from tests.functional.engine.behaviour.test_waits import (
    test_run_4_an_interrupt_voids_what_a_run_waits_for,
    test_sus_1_a_question_is_answered_by_whoever_knows,
    test_sus_2_an_event_that_comes_early_meets_its_wait,
    test_sus_2_an_event_that_is_waited_for_ends_the_wait,
    test_sus_5_several_waits_end_in_any_order_by_id,
    test_sus_5_ten_answers_at_once_are_one,
)
from tests.functional.engine.harness import Crew, admit, agent, only, runtime

__all__ = [
    "test_app_1_a_call_that_may_change_something_waits",
    "test_app_2_all_of_a_turn_wait_at_once_and_are_decided_one_by_one",
    "test_app_2_the_same_decision_again_changes_nothing",
    "test_app_2_two_people_at_once_one_decides",
    "test_app_3_an_edit_consents_to_other_arguments_in_one_step",
    "test_app_4_after_an_interrupt_nothing_is_decided",
    "test_run_1_an_approved_call_that_is_safe_runs_again_without_a_new_consent",
    "test_run_4_an_interrupt_voids_what_a_run_waits_for",
    "test_sec_4_another_tenant_decides_nothing",
    "test_sus_1_a_question_is_answered_by_whoever_knows",
    "test_sus_2_an_event_that_comes_early_meets_its_wait",
    "test_sus_2_an_event_that_is_waited_for_ends_the_wait",
    "test_sus_5_several_waits_end_in_any_order_by_id",
    "test_sus_5_ten_answers_at_once_are_one",
    "test_what_is_remembered_is_recalled_by_the_same_principal_only",
]


async def test_app_3_an_approval_that_nobody_decides_expires(store: Store, crew: Crew) -> None:
    """By the store's time; nobody calls, and no worker holds the Run meanwhile."""
    till = Till()
    await crew.start(runtime(store, paying(("bob", 3)), till.pay, policy=Asks(seconds=0.4)))
    found = await told(store, await admit(store, agent("pay")))
    assert len(found.every(RunSuspended)) == 1
    assert only(found.every(ApprovalExpired)).reason == "due"
    assert [code for code, _ in found.refusals] == ["denied"]
    assert (till.paid, found.end) == ([], ("completed", None))


async def test_sus_3_a_timer_ends_once(store: Store, crew: Crew) -> None:
    """By the store's time."""
    await crew.start(runtime(store, sleeps(0.4)))
    found = await told(store, await admit(store, asker("wait_for_time")))
    assert len(found.every(RunSuspended)) == 1
    assert only(found.every(WaitResolved)).how == "due"
    assert found.calls == [("ok", "", "The time is over.")]


async def test_sus_6_a_question_that_nobody_answers_expires(store: Store, crew: Crew) -> None:
    """And ends the Run, where its Spec says so."""
    rules = QuestionRules(expires_seconds=0.4, on_expiry="settle")
    await crew.start(runtime(store, asks(question("Which?"))))
    found = await told(store, await admit(store, asker("ask_question", questions=rules)))
    assert only(found.every(WaitResolved)).how == "expired"
    assert found.end == ("expired", "wait_expired")
