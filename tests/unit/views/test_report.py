"""report_view: attempts, calls, totals and notes, all of them from the log."""

import pytest

from psych_runtime.testing.counting import CountingSystem
from psych_runtime.testing.log_builder import LogBuilder
from psych_runtime.views import report_view
from psych_schema.common import Cost, Scope, Usage
from psych_schema.record import Broken, Failure
from psych_schema.view import ReportView
from tests.unit.views.erasing import erased

USAGE = Usage(
    input_tokens=10,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=3,
)


def claimed(system: CountingSystem | None = None) -> LogBuilder:
    log = LogBuilder(system=system)
    log.admit("hi")
    log.claim()
    return log


def view(log: LogBuilder) -> ReportView:
    return report_view(log.header, log.entries)


def usd(amount: str, currency: str = "USD") -> Cost:
    return Cost(amount=amount, currency=currency, source="computed")


def test_report_of_a_fresh_run_has_nothing_to_sum() -> None:
    """No calls cost nothing, in no currency."""
    log = LogBuilder()
    log.admit("hi")

    found = view(log)

    assert found.lifecycle == "queued"
    assert found.scope == Scope(tenant="acme")
    assert (found.attempts, found.model_calls, found.tool_calls) == ((), (), ())
    assert found.totals.usage == Usage(
        input_tokens=0,
        cache_read_tokens=0,
        cache_write_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
    )
    assert found.totals.cost == Cost(source="missing", reason="no_model_calls")
    assert found.notes == ()


def test_tok_1_totals_are_the_sums_of_the_calls() -> None:
    """Counter by counter; one that nobody reported stays unknown."""
    log = claimed()
    [call] = log.turn(["look"])
    log.start(call)
    log.finish(call, duration_seconds=0.25)
    log.turn(text="done")
    log.settle()

    totals = view(log).totals

    assert totals.model_calls == 2
    assert totals.tool_calls == 1
    assert totals.usage == Usage(
        input_tokens=20, cache_read_tokens=0, cache_write_tokens=0, output_tokens=6
    )
    assert totals.calls_without_usage == 0
    assert totals.model_seconds == 1.0
    assert totals.tool_seconds == 0.25


def test_tok_2_a_call_without_usage_makes_the_totals_unknown() -> None:
    """None, not the sum of the others; the note has that sum."""
    log = claimed()
    log.turn()
    log.turn(usage=Usage())

    found = view(log)

    assert found.model_calls[0].usage == USAGE
    assert found.model_calls[1].usage is None
    assert found.totals.usage == Usage()
    assert found.totals.calls_without_usage == 1
    assert (
        "The token totals are unknown: 1 of 2 model calls reported no usage (1 completed). "
        "The others used 10 input and 3 output tokens."
    ) in found.notes


def test_tok_2_a_counter_that_one_call_did_not_report_is_unknown_alone() -> None:
    """The other counters keep their sums."""
    log = claimed()
    log.turn(usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=4))
    log.turn(usage=Usage(input_tokens=1, output_tokens=2))

    found = view(log)

    assert found.totals.usage == Usage(input_tokens=2, output_tokens=4)
    assert found.totals.calls_without_usage == 0
    assert [note for note in found.notes if "tokens" in note] == [
        "cache_read_tokens is unknown: 1 of 2 reports of usage did not have it."
    ]


def test_tok_2_costs_are_exact_decimals() -> None:
    """0.1 + 0.2 is 0.3, and many digits survive."""
    log = claimed()
    log.turn(cost=usd("0.1"))
    log.turn(cost=usd("0.2"))
    log.turn(cost=usd("12345678901234567890123456789.000000000000000000000000000001"))

    found = view(log)

    assert found.totals.cost == usd("12345678901234567890123456789.300000000000000000000000000001")
    assert found.totals.calls_without_cost == 0


@pytest.mark.parametrize(("source", "total"), [("provider", "provider"), ("computed", "computed")])
def test_tok_3_the_total_is_the_providers_only_when_every_part_is(source: str, total: str) -> None:
    """One computed part makes it computed."""
    log = claimed()
    log.turn(cost=Cost(amount="1", currency="USD", source="provider"))
    log.turn(cost=Cost.model_validate({"amount": "2", "currency": "USD", "source": source}))

    assert view(log).totals.cost == Cost.model_validate(
        {"amount": "3", "currency": "USD", "source": total}
    )


def test_tok_2_a_call_without_a_price_makes_the_cost_unknown_with_its_reason() -> None:
    """The total has the reason, the note what the others cost."""
    log = claimed()
    log.turn(cost=usd("0.25"))
    log.turn()

    found = view(log)

    assert found.totals.cost == Cost(source="missing", reason="no_price")
    assert found.totals.calls_without_cost == 1
    assert (
        "The cost is unknown: 1 of 2 model calls had none (1 no_price). The others cost 0.25 USD."
    ) in found.notes


def test_tok_2_parts_that_are_unknown_for_different_reasons_say_so() -> None:
    """Each reason is counted in the note."""
    log = claimed()
    log.turn()
    log.turn(cost=Cost(source="missing", reason="unknown_cache_rate"))

    found = view(log)

    assert found.totals.cost == Cost(source="missing", reason="several_reasons")
    assert (
        "The cost is unknown: 2 of 2 model calls had none (1 no_price, 1 unknown_cache_rate)."
        in (found.notes)
    )


def test_tok_2_mixed_currencies_are_not_summed() -> None:
    """One Run, two providers, two currencies: no amount."""
    log = claimed()
    log.turn(cost=usd("1"))
    log.turn(cost=usd("1", "EUR"))

    found = view(log)

    assert found.totals.cost == Cost(source="missing", reason="mixed_currencies")
    assert found.totals.calls_without_cost == 0
    assert "Costs in EUR, USD are not summed." in found.notes


def test_tok_3_a_failed_call_counts_with_the_usage_it_reported() -> None:
    """The retry is a line of its own."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    log.fail(first, usage=USAGE, failure=Failure(code="overloaded", transient=True, status=503))
    log.answer(log.ask(tries=2))

    found = view(log)

    assert [(one.outcome, one.code, one.tries) for one in found.model_calls] == [
        ("failed", "overloaded", 1),
        ("completed", None, 2),
    ]
    assert found.model_calls[0].cost == Cost(source="missing", reason="no_price")
    assert found.totals.usage.input_tokens == 20
    assert "1 model call failed: 1 overloaded." in found.notes
    assert not any("The last failure" in note for note in found.notes)


def test_doc_2_a_report_quotes_the_last_failure_that_said_why() -> None:
    """Of several the last one, the first 500 characters; the code alone once it is erased."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), said=Broken(message="529: too busy"))
    log.fail(log.ask(tries=2), code="client_error", said=Broken(message="x" * 501))
    log.fail(log.ask(tries=3), code="interrupted", said=Broken())
    log.answer(log.ask(tries=4))
    log.settle()
    told = view(log).notes
    log.erase()
    left = report_view(log.header, erased(log)).notes

    beginning = "x" * 499 + "\N{HORIZONTAL ELLIPSIS}"
    assert f"The last failure: model call failed: client_error: {beginning}" in told
    assert not any("xx" in note for note in left)
    assert "3 model calls failed: 1 client_error, 1 interrupted, 1 overloaded." in left


def test_tok_3_a_compaction_counts() -> None:
    """It belongs to no turn, and its tokens are paid for."""
    log = claimed()
    log.turn()
    log.answer(log.ask(purpose="compaction"))

    found = view(log)

    assert (found.model_calls[1].purpose, found.model_calls[1].turn) == ("compaction", None)
    assert found.totals.usage.input_tokens == 20
    assert found.turns == 1


def test_tok_5_a_model_call_cut_off_by_a_crash_used_what_nobody_reported() -> None:
    """Its usage is None, not 0, and the totals say so."""
    log = claimed()
    log.begin_turn()
    log.ask()
    log.claim()
    log.answer(log.ask(tries=2))
    log.settle()

    found = view(log)

    cut, again = found.model_calls
    assert (cut.outcome, cut.usage, cut.seconds) == ("interrupted", None, None)
    assert cut.cost == Cost(source="missing", reason="interrupted")
    assert again.outcome == "completed"
    assert found.totals.usage.input_tokens is None
    assert found.totals.calls_without_usage == 1
    assert "Cut off when a worker died: 1 model call; nobody reported what was used." in found.notes


def test_report_of_a_running_run_shows_open_calls() -> None:
    """What is under way has no seconds and no usage yet."""
    log = claimed()
    look, _ = log.turn(["look", "charge"])
    log.start(look)

    found = view(log)

    assert [(one.name, one.outcome, one.tries) for one in found.tool_calls] == [
        ("look", "open", 1),
        ("charge", "open", 0),
    ]
    assert [one.ended for one in found.attempts] == ["open"]
    assert found.tool_calls[0].seconds is None
    assert found.tool_calls[1].started_at is None


def test_run_1_a_call_that_was_open_in_a_crash_is_recovered_and_unknown() -> None:
    """Its finished sibling is not; nobody claims a duration."""
    log = claimed()
    look, charge = log.turn(["look", "charge"])
    log.start(look)
    log.start(charge)
    log.finish(look)
    log.claim()
    log.finish(charge, outcome="unknown", duration_seconds=0.0)

    found = view(log)

    assert [(one.name, one.outcome, one.recovered) for one in found.tool_calls] == [
        ("look", "ok", False),
        ("charge", "unknown", True),
    ]
    assert found.tool_calls[1].seconds is None
    assert (
        "Nobody knows whether 1 tool call took effect: charge. "
        "Not repeated: the worker stopped, or gave up, in the middle."
    ) in found.notes


def test_run_1_a_safe_call_that_ran_again_is_recovered_with_its_tries() -> None:
    """One line for both tries, from the first start."""
    log = claimed()
    [look] = log.turn(["look"])
    started = log.start(look, safe_to_retry=True)
    log.claim()
    log.start(look, safe_to_retry=True)
    log.finish(look)

    found = view(log)

    [line] = found.tool_calls
    assert (line.outcome, line.tries, line.recovered) == ("ok", 2, True)
    assert line.started_at == started.at
    assert (
        "1 tool call ran again under the same id after a worker died, being safe to retry: look."
    ) in found.notes


def test_run_9_a_call_left_open_by_a_drain_is_not_recovered() -> None:
    """Its worker did not die: it handed the Run over."""
    log = claimed()
    [look] = log.turn(["look"])
    log.start(look, safe_to_retry=True)
    log.end("drained")
    log.claim()
    log.start(look, safe_to_retry=True)
    log.finish(look)

    found = view(log)

    assert found.tool_calls[0].recovered is False
    assert [one.ended for one in found.attempts] == ["drained", "open"]


def test_report_says_how_each_attempt_ended() -> None:
    """Every orderly end, and the one without a word."""
    log = claimed()
    log.end("drained")
    log.claim()
    log.end("blocked", missing=("code:charge",))
    log.claim()
    log.end("error", code="internal_error")
    log.claim()
    log.begin_turn()
    log.fail(log.ask())
    log.suspend(wake_at=log.header.head_at)
    log.claim()
    log.claim()
    log.answer(log.ask(tries=2))
    log.settle()

    found = view(log)

    assert [(one.epoch, one.reason, one.ended) for one in found.attempts] == [
        (1, "fresh", "drained"),
        (2, "handed_over", "blocked"),
        (3, "handed_over", "error"),
        (4, "handed_over", "suspended"),
        (5, "woken", "taken"),
        (6, "reclaimed", "settled"),
    ]
    assert "1 attempt ended with an error: 1 internal_error." in found.notes
    assert (
        "1 attempt ended without a word (5): the worker stopped, and another one took the Run over."
    ) in found.notes


def test_report_shows_why_calls_were_refused() -> None:
    """A refused call was never tried; a failed one has its code."""
    log = claimed()
    denied, malformed, broken = log.turn(["charge", "look", "look"])
    log.refuse(denied)
    log.refuse(malformed, "malformed")
    log.start(broken)
    log.finish(broken, outcome="error", failure=Failure(code="tool_raised", transient=False))

    found = view(log)

    assert [(one.outcome, one.code, one.tries, one.identity) for one in found.tool_calls] == [
        ("refused", "denied", 0, None),
        ("refused", "malformed", 0, None),
        ("error", "tool_raised", 1, "code:look"),
    ]
    assert "1 tool call denied: charge." in found.notes


def test_run_4_an_aborted_call_lasted_from_its_start_to_its_record() -> None:
    """Its own clock was cut off with it."""
    system = CountingSystem()
    log = claimed(system)
    [look] = log.turn(["look"])
    started = log.start(look)
    system.pass_time(2)
    ended = log.finish(look, outcome="aborted", duration_seconds=0.0)

    assert view(log).tool_calls[0].seconds == (ended.at - started.at).total_seconds()


def test_tok_4_the_wall_clock_runs_from_admission_to_the_end() -> None:
    """An erasure much later does not make the Run longer."""
    system = CountingSystem()
    log = claimed(system)
    system.pass_time(30)
    log.turn()
    settled = log.settle()
    system.pass_time(86_400)
    log.erase()

    found = view(log)

    assert found.wall_seconds == (settled.at - log.entries[0].record.at).total_seconds()


def test_run_6_messages_that_nobody_read_are_noted() -> None:
    """Those for the next Run went there."""
    log = claimed()
    log.turn()
    log.send("and?", "steer")
    log.send("then", "next_run")
    settled = log.settle("failed")

    notes = view(log).notes

    assert "Not read before the end: 1 message." in notes
    assert f"Messages for the next Run are answered by {settled.next_run}." in notes


def test_report_of_an_erased_run_keeps_every_figure() -> None:
    """Only names and words are gone."""
    log = claimed()
    [look] = log.turn(["look"])
    log.start(look)
    log.finish(look)
    log.turn(text="secret", cost=usd("1"))
    log.settle()
    log.erase()

    before = view(log)
    after = report_view(log.header, erased(log))

    assert [one.name for one in before.tool_calls] == ["look"]
    assert [one.name for one in after.tool_calls] == [None]
    assert after.tool_calls[0].identity == "code:look"
    assert after.totals == before.totals
    assert after.attempts == before.attempts
    assert "What was said has been erased; facts and totals are left." in after.notes


def test_log_3_report_of_a_corrupt_run_is_of_what_can_be_read() -> None:
    """It says where it stops, and fails nobody."""
    log = claimed()
    log.turn()
    log.turn()
    twice = [*log.entries[:6], log.entries[2]]

    found = report_view(log.header, twice)

    assert found.lifecycle == "failed"
    assert found.turns == 1
    assert found.notes[0] == (
        "The log is corrupt (seq_not_next at seq 3); this report is of what comes before."
    )


def test_run_13_report_of_a_newer_log_says_which_build_reads_the_rest() -> None:
    """An old build is no reason to call a log corrupt."""
    log = claimed()
    log.turn()
    header = log.header.model_copy(update={"schema_version": 2})

    found = report_view(header, log.entries[:4])

    assert found.lifecycle == "running"
    assert found.notes[0].startswith("From seq 5 on the log needs schema version 2:")


def test_log_2_a_report_takes_one_pass_over_the_log() -> None:
    """A generator will do: nothing is looked at twice."""
    log = claimed()
    for _ in range(50):
        [call] = log.turn(["look"])
        log.start(call)
        log.finish(call)

    found = report_view(log.header, (entry for entry in log.entries))

    assert found.turns == 50
    assert found.totals.usage.output_tokens == 150
    assert len(found.tool_calls) == 50
