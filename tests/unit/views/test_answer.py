"""answer_view: the text so far, and the next step."""

import pytest

from psych_runtime.testing.log_builder import LogBuilder
from psych_runtime.views import answer_view
from psych_schema.base import format_instant
from psych_schema.model import ReasoningPart, TextPart
from psych_schema.record import Broken, ModelDelta, Said
from psych_schema.view import AnswerView
from tests.unit.views.erasing import erased


def claimed() -> LogBuilder:
    log = LogBuilder()
    log.admit("hi")
    log.claim()
    return log


def view(log: LogBuilder) -> AnswerView:
    return answer_view(log.header, log.entries)


def hint(log: LogBuilder) -> str:
    found = view(log).hint
    assert found is not None
    return found


def delta(log: LogBuilder, call: str, text: str, channel: str = "text") -> None:
    log.write(ModelDelta, call=call, channel=channel, text=text)


def test_answer_of_a_completed_run_is_its_last_text_and_output() -> None:
    """Earlier turns do not get into it, and there is nothing to do next."""
    log = claimed()
    [call] = log.turn(["look"], text="Let me look.")
    log.start(call)
    log.finish(call)
    log.turn(text="It is 42.")
    log.settle()

    found = view(log)

    assert found.text == "It is 42."
    assert found.output == "It is 42."
    assert found.finished
    assert found.status == "done"
    assert found.hint is None


def test_answer_joins_text_parts_and_leaves_reasoning_out() -> None:
    """What the model thought is not what it said."""
    log = claimed()
    log.begin_turn()
    parts = (TextPart(text="4"), ReasoningPart(text="hmm"), TextPart(text="2"))
    log.answer(log.ask(), said=Said(parts=parts))

    assert view(log).text == "42"


def test_answer_of_a_run_that_said_nothing_is_none() -> None:
    """None, not an empty text."""
    log = claimed()
    log.turn(text="")

    found = view(log)

    assert found.text is None
    assert found.output is None
    assert not found.finished


def test_answer_has_the_text_of_a_call_under_way_where_there_are_deltas() -> None:
    """Reasoning and arguments are other channels."""
    log = claimed()
    log.turn(["look"], text="Before")
    [call] = log.state.ids("call", "asked")
    log.refuse(call)
    log.begin_turn()
    model = log.ask()
    silent = view(log).text
    delta(log, model, "It ")
    delta(log, model, "thinking", "reasoning")
    delta(log, model, "is")

    assert silent == "Before"
    assert view(log).text == "It is"


def test_answer_of_a_broken_call_is_its_partial_text() -> None:
    """What came before the interruption is kept."""
    log = claimed()
    log.begin_turn()
    said = Broken(parts=(TextPart(text="It i"),))
    log.fail(log.ask(), code="interrupted", transient=False, said=said, next="give_up")
    log.settle("aborted")

    found = view(log)

    assert found.text == "It i"
    assert found.status == "stopped"
    assert found.ended is not None
    assert found.ended.code == "aborted"


def test_run_11_a_retried_call_takes_its_text_back() -> None:
    """The answer is of the last call, not of two."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    log.fail(first)
    second = log.ask(tries=2)
    delta(log, second, "It is")

    assert view(log).text == "It is"


def test_answer_does_not_show_a_compaction() -> None:
    """A summary is for the model."""
    log = claimed()
    log.turn(text="Before")
    summary = log.ask(purpose="compaction")
    delta(log, summary, "They talked")
    log.answer(summary, text="They talked.")

    assert view(log).text == "Before"


def test_answer_of_an_erased_run_has_no_words_and_its_end() -> None:
    """Facts are left."""
    log = claimed()
    log.turn(text="secret")
    log.settle()
    log.erase()

    found = answer_view(log.header, erased(log))

    assert found.text is None
    assert found.output is None
    assert found.finished
    assert found.status == "done"


def test_answer_of_a_queued_run_says_how_to_execute_it() -> None:
    """A Run without a worker stays where it is."""
    log = LogBuilder()
    log.admit("hi")

    assert "Worker(runtime).run()" in hint(log)


def test_answer_of_a_running_run_says_how_to_wait_for_it() -> None:
    """The next line is a wait."""
    assert "wait(store, run_id, scope=scope)" in hint(claimed())


def test_app_2_answer_of_a_run_that_waits_for_consent_names_the_decision() -> None:
    """The call that decides it, with its id, and how many more wait."""
    log = claimed()
    first, second = log.turn(["charge", "mail"])
    log.request(first)
    log.request(second)
    log.suspend()

    found = view(log)

    assert found.status == "waiting"
    assert [one.call_id for one in found.pending_approvals] == [first, second]
    assert f'decisions={{"{first}": "approve"}}' in hint(log)
    assert hint(log).startswith("code:charge waits for consent (1 more wait, too)")


def test_sus_1_answer_of_a_run_that_asks_names_the_delivery() -> None:
    """A question is answered by its wait id."""
    log = claimed()
    [call] = log.turn(["ask"])
    log.start(call)
    wait = log.wait("question", call=call, ask="which?")
    log.suspend()

    assert [one.ask for one in view(log).pending_waits] == ["which?"]
    assert f'deliver(store, run_id, scope=scope, wait="{wait}"' in hint(log)


def test_sus_3_answer_of_a_run_that_sleeps_asks_for_nothing() -> None:
    """A timer needs nobody."""
    log = claimed()
    [call] = log.turn(["nap"])
    log.start(call)
    log.wait("timer", call=call, due=log.header.head_at)
    log.suspend()

    assert "goes on by itself" in hint(log)
    assert "deliver" not in hint(log)


def test_run_14_answer_of_a_parked_run_asks_for_nothing() -> None:
    """The model is tried again without anybody; what went wrong is said."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), said=Broken(message="529: too busy"))
    wake_at = log.header.head_at
    log.suspend(wake_at=wake_at)

    assert view(log).status == "waiting"
    assert hint(log) == (
        "model call failed: overloaded: 529: too busy; the model is tried again at "
        f"{format_instant(wake_at)}, by itself, while a worker runs"
    )


def failed_with(message: str | None, *, code: str = "client_error") -> LogBuilder:
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), code=code, said=Broken(message=message), next="give_up")
    return log


def test_doc_2_answer_of_a_run_whose_model_failed_quotes_the_failure() -> None:
    """Then comes where more is to be read."""
    log = failed_with("the model client failed: AttributeError: no attribute 'stream'")
    log.settle("failed", code="client_error")

    assert view(log).text is None
    assert hint(log) == (
        "model call failed: client_error: the model client failed: AttributeError: no attribute "
        "'stream'; `await report(store, run_id, scope=scope)` says what happened"
    )


def test_doc_2_a_known_end_keeps_its_remedy_behind_the_failure() -> None:
    """What happened, and what to do about it."""
    log = failed_with("529: too busy", code="overloaded")
    log.settle("failed", code="retries_exhausted")

    assert hint(log) == (
        "model call failed: overloaded: 529: too busy; "
        "the provider kept failing: dispatch again when it is back"
    )


def test_doc_2_the_failure_before_an_interruption_is_the_one_to_quote() -> None:
    """A call that was closed because time was over says nothing of the provider."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), said=Broken(message="529: too busy"))
    log.fail(log.ask(tries=2), code="interrupted", said=Broken(), next="give_up")
    log.settle("timed_out")

    assert hint(log).startswith("model call failed: overloaded: 529: too busy; dispatch again")


def test_doc_2_a_failure_that_was_overcome_is_not_the_reason() -> None:
    """The model answered later; the Run failed of something else."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), said=Broken(message="529: too busy"))
    log.answer(log.ask(tries=2), text="")
    log.settle("failed", code="empty_answer")

    assert hint(log) == "`await report(store, run_id, scope=scope)` says what happened"


def test_doc_2_of_a_long_failure_the_first_500_characters_are_quoted() -> None:
    """The last of them says that there were more."""
    whole, long = failed_with("x" * 500), failed_with("x" * 501)
    for log in (whole, long):
        log.settle("failed", code="client_error")

    assert f": {'x' * 500};" in hint(whole)
    assert f": {'x' * 499}\N{HORIZONTAL ELLIPSIS};" in hint(long)


def test_doc_2_an_erased_failure_is_not_quoted() -> None:
    """Only its code is left, in the report."""
    log = failed_with("secret")
    log.settle("failed", code="client_error")
    log.erase()

    found = answer_view(log.header, erased(log))

    assert found.hint == "`await report(store, run_id, scope=scope)` says what happened"


def test_run_7_answer_of_a_run_whose_attempt_failed_says_when_it_goes_on() -> None:
    """It is queued, and nobody has to do anything."""
    log = claimed()
    log.end("error", code="internal_error")
    again_at = log.header.head_at
    header = log.header.model_copy(update={"wake_at": again_at})

    found = answer_view(header, log.entries)

    assert found.status == "queued"
    assert found.hint == (
        "the attempt failed: internal_error; the Run is tried again at "
        f"{format_instant(again_at)}, by itself, while a worker runs; "
        "the log of its worker says more"
    )


def test_answer_after_a_denial_names_the_policy_to_set() -> None:
    """Nobody could approve: the next line of code is the policy's, or the tool's."""
    log = claimed()
    first, second = log.turn(["charge", "charge"])
    log.refuse(first)
    log.refuse(second)
    log.turn(text="I could not.")
    log.settle()

    assert view(log).status == "done"
    assert hint(log).startswith("the policy denied charge: `policy=AllowAll()`")
    assert 'annotations={"read-only"}' in hint(log)


def test_answer_after_another_refusal_names_no_policy() -> None:
    """A call with bad arguments is the model's affair."""
    log = claimed()
    [call] = log.turn(["charge"])
    log.refuse(call, "malformed")
    log.turn(text="Sorry.")
    log.settle()

    assert view(log).hint is None


@pytest.mark.parametrize(
    ("state", "code", "remedy"),
    [
        ("timed_out", "timed_out", "deadline_seconds="),
        ("failed", "turn_limit", "limits.max_turns"),
        ("failed", "failure_streak", "a tool kept failing"),
        ("failed", "repeat_calls", "a call was repeated in vain"),
        ("failed", "retries_exhausted", "the provider kept failing"),
        ("failed", "attempts_exhausted", "its workers kept dying"),
        ("failed", "empty_answer", "report(store, run_id, scope=scope)"),
    ],
)
def test_answer_of_a_run_that_did_not_complete_says_what_to_do(
    state: str, code: str, remedy: str
) -> None:
    """By its reason; without a better one the report tells."""
    log = claimed()
    log.settle(state, code=code)

    assert remedy in hint(log)


def test_log_3_answer_of_a_corrupt_run_says_so() -> None:
    """What could be read is shown, and why there is no more."""
    log = claimed()
    log.turn(text="Before")
    header = log.header.model_copy(update={"state": "corrupt", "worker": None})

    found = answer_view(header, log.entries)

    assert found.text == "Before"
    assert found.status == "failed"
    assert not found.finished
    assert found.hint is not None
    assert found.hint.startswith("marked_corrupt at seq ")


def test_app_3_what_a_person_denied_needs_no_other_policy() -> None:
    """Nothing is wrong with a decision."""
    log = claimed()
    [charge] = log.turn(["charge"])
    approval = log.request(charge)
    log.decide(approval, "deny")
    log.refuse(charge)
    log.turn(text="I could not.")
    log.settle()

    assert view(log).hint is None
