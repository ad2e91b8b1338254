"""The model contract notices clients that break it, each check at least one, for its own reason."""

import subprocess
import sys
from typing import Final

import pytest

from psych_runtime.testing.model_contract import CHECKS, OpenAIDialect, checks_for
from psych_runtime.testing.model_contract._scene import ask, scene, stream
from psych_schema.model import Finish, TextDelta
from tests.functional.model import mutants
from tests.functional.model.broken_clients import LeakyClient, NaiveClient
from tests.functional.model.contract_harness import ClientHarness, Make, tally
from tests.functional.model.tally import TallyDialect

_BY_NAME: Final = {check.name: check for check in CHECKS}
_HANGS: Final = "the client hangs"
_HANG_SECONDS: Final = 1.0

_NAIVE: Final = {
    "an_answer_is_the_same_wherever_it_is_split": "split after byte 1 of each message",
    "an_answer_of_single_bytes_is_the_same": "chunks of one byte",
    "a_long_event_is_understood": "the arguments of a long event",
    "a_long_answer_is_told_whole": "a long answer",
    "an_answer_before_the_answer_is_no_answer": "answered 100",
    "lines_may_end_with_crlf": "spelled with crlf",
    "lines_may_end_with_cr": "spelled with cr",
    "comments_say_nothing": "spelled with comments",
    "one_event_may_have_several_lines_of_data": "spelled with several_lines",
    "a_byte_order_mark_says_nothing": "spelled with byte_order_mark",
    "fields_of_other_names_say_nothing": "spelled with other_fields",
    "blank_lines_say_nothing": "spelled with blank_lines",
    "no_blank_is_needed_behind_a_colon": "spelled with no_blank",
    "a_last_line_without_its_end_is_read_or_worth_another_try": "not a ModelTransient",
    "reasoning_is_told_apart_from_text": r"\('', 'So.'\), not \('grübel', 'So.'\)",
    "a_call_comes_with_its_id_name_and_arguments": r"\('So', 'stop'\)",
    "each_reason_to_stop_is_told": "the reason: 'stop', not",
    "nothing_is_told_behind_the_end": "text behind it: .*late",
    "an_end_without_a_finish_is_worth_another_try": "ended with 'stop'",
    "the_end_alone_is_no_finish": "ended with 'stop'",
    "nothing_at_all_is_no_answer": "an empty body: None",
    "an_end_in_the_middle_of_a_message_is_worth_another_try": "an end after byte 1",
    "a_reset_connection_is_worth_another_try": "ConnectionResetError|IncompleteReadError",
    "a_connection_closed_before_the_answer_is_worth_another_try": "IncompleteReadError",
    "a_connection_closed_in_a_chunk_is_worth_another_try": "ended with 'stop'",
    "a_chunk_that_is_none_is_worth_another_try": "raised ValueError",
    "a_body_shorter_than_its_length_is_worth_another_try": "10,000 bytes .*ended with 'stop'",
    "a_half_closed_connection_is_no_reason_to_wait": "half closed without a finish",
    "a_server_that_is_not_there_is_worth_another_try": "raised ConnectionRefusedError",
    "what_is_no_http_is_a_typed_error": "no ModelError",
    "headers_without_end_are_given_up": "raised LimitOverrunError",
    "a_garbled_message_is_worth_another_try": r"garbled message \(cut\): None",
    "a_message_that_is_no_object_is_an_error": "raised AttributeError",
    "bytes_that_are_no_utf_8_are_worth_another_try": "\ufffd",
    "a_field_that_is_null_is_no_crash": "raised TypeError",
    "a_field_that_nobody_knows_says_nothing": "an answer with more fields",
    "a_passing_error_in_the_stream_is_worth_another_try": "overloaded.*: None",
    "an_error_in_the_stream_that_stays_is_permanent": "not valid.*: None",
    "an_error_as_the_whole_body_is_an_error": "the error object of 400 with status 200: None",
    "a_web_page_is_no_answer": "a web page as text/html: None",
    "a_compressed_body_is_read_or_an_error": "says it is gzip",
    "a_status_that_passes_is_worth_another_try": r"408: ModelPermanent",
    "a_request_that_is_too_long_is_an_overflow": "not a ContextOverflow",
    "a_key_that_the_stream_repeats_is_not_shown": "no failure",
}
"""What the naive client must fail, and what the check says of it."""

_LEAKY: Final = {
    "totals_become_disjoint_counters": r"the usage: \(None, None\)",
    "of_cumulative_usage_the_last_counts": r"\(None, 'HiHi'\)",
    "usage_with_the_last_message_is_told": r"\(None, None\)",
    "usage_of_one_call_is_not_that_of_the_next": r"\[None, None\]",
    "usage_before_a_failure_is_kept": r"\(None, 'Hi'\)",
    "silence_before_the_answer_ends": _HANGS,
    "silence_in_the_head_ends": _HANGS,
    "silence_behind_the_head_ends": _HANGS,
    "silence_between_messages_ends": _HANGS,
    "silence_inside_a_message_ends": _HANGS,
    "silence_behind_the_finish_loses_no_answer": _HANGS,
    "a_stream_that_stalls_ends_at_the_server_too": _HANGS,
    "a_status_that_stays_is_permanent": r"400: ModelTransient",
    "retry_after_may_be_seconds": "None, not 7.0",
    "retry_after_may_be_a_date": "the wait until .*: None",
    "a_key_in_a_garbled_answer_is_not_shown": "texts of the error that show the key",
    "closing_a_stream_ends_it_at_the_server": _HANGS,
    "cancelling_a_call_ends_it_at_the_server": _HANGS,
    "cancelling_a_call_that_waits_ends_it_at_the_server": _HANGS,
    "fifty_closed_streams_leave_room_for_the_next": _HANGS,
    "fifty_cancelled_calls_leave_room_for_the_next": _HANGS,
    "failed_calls_leave_room_for_the_next": _HANGS,
}
"""What the leaky client must fail, and what the check says of it."""

_MUTANTS: Final[dict[str, tuple[Make, str]]] = {
    "many_events_in_one_packet_are_all_told": (mutants.OneEventAPiece, "300 events|no ModelError"),
    "an_event_is_told_before_the_next_comes": (mutants.Buffers, _HANGS),
    "every_framing_of_a_body_is_understood": (mutants.NeedsChunks, _HANGS),
    "messages_without_words_say_nothing": (mutants.NeedsADelta, "without choices"),
    "pieces_of_two_calls_do_not_mix": (mutants.MixesCalls, "two calls in alternating pieces"),
    "equal_ids_are_calls_of_their_own": (mutants.MergesEqualIds, "two calls under one id"),
    "calls_without_an_id_are_calls": (mutants.DropsCallsWithoutId, r"without an id: \[\]"),
    "a_gap_between_calls_is_no_call": (mutants.FillsGaps, "calls 1 and 7"),
    "the_same_id_in_another_call_is_no_memory": (mutants.RemembersIds, "the call of sub"),
    "arguments_are_passed_on_as_they_are": (mutants.CompletesArguments, "arguments as written"),
    "calls_without_arguments_are_calls": (mutants.DropsBareCalls, "a call without arguments"),
    "an_answer_without_words_is_an_answer": (mutants.NeedsWords, "an empty answer"),
    "a_finish_that_is_said_twice_is_told_once": (mutants.FinishesAtOnce, r"\[2, 3\], not \[3\]"),
    "what_comes_behind_a_finish_is_not_told_behind_it": (
        mutants.FinishesAtOnce,
        "the place of the finish",
    ),
    "two_streams_at_once_do_not_mix": (mutants.MixesStreams, "two streams"),
    "usage_that_is_not_told_is_unknown": (mutants.InventsUsage, "a usage that nobody told"),
    "a_body_longer_than_its_length_poisons_nothing": (mutants.TrustsItsPool, "planted"),
    "a_line_without_end_is_given_up": (mutants.NeverGivesUp, "all 33554432 bytes were taken"),
    "a_slow_stream_is_no_silence": (mutants.TimesTheWhole, "it took too long"),
    "a_field_of_another_type_loses_no_words": (mutants.SkipsWrongShapes, "words and calls"),
    "another_content_type_is_read_or_an_error": (
        mutants.BelievesTheContentType,
        "a stream as text/plain",
    ),
    "a_retry_after_that_says_nothing_is_ignored": (mutants.ReadsSeconds, "the status told|wait"),
    "a_refusal_in_any_shape_keeps_its_status": (mutants.ParsesTheRefusal, "502 with b''"),
    "a_refusal_without_end_is_cut": (mutants.ReadsTheRefusal, "of a refusal were taken"),
    "a_refusal_that_stalls_is_no_reason_to_wait": (mutants.ReadsTheRefusal, _HANGS),
    "what_only_speaks_of_tokens_is_no_overflow": (mutants.OverflowsByWord, "ContextOverflow"),
    "a_whole_answer_leaves_room_for_the_next": (mutants.KeepsItsPlace, _HANGS),
    "a_connection_that_the_server_closed_is_no_answer_lost": (
        mutants.AnswersTwiceOnly,
        "a call on a connection that was closed",
    ),
    "a_call_that_was_never_begun_asks_nobody": (mutants.AsksAtOnce, "9, not 8"),
    "the_known_models_are_a_set_or_unknown": (mutants.HasAListOfModels, "is a frozenset"),
    "the_key_is_sent": (mutants.ForgetsTheKey, "that the key is in the request"),
    "a_client_does_not_show_its_key": (mutants.ShowsItsKey, "what a client shows"),
    "a_key_that_a_refusal_repeats_is_not_shown": (mutants.RepeatsTheRefusal, "show the key"),
    "a_redirect_takes_the_key_nowhere": (mutants.FollowsRedirects, "at the target of a 301"),
    "what_is_taken_is_said": (mutants.HasAListOfFields, "is a Takes"),
    "each_field_that_is_taken_is_sent": (mutants.ForgetsTheSeed, "that seed makes another"),
    "a_field_that_is_not_taken_is_refused_unsent": (
        mutants.TakesMoreThanItSays,
        "sent with seed: 1",
    ),
    "extras_are_sent": (mutants.ForgetsExtras, r"\(True, False\)"),
    "extras_set_nothing_that_the_client_writes": (mutants.LetsExtrasWin, "extras of user: 1"),
    "an_image_is_sent_or_refused": (mutants.ForgetsImages, "that the image is in the request"),
    "a_blob_without_its_bytes_is_refused_unsent": (
        mutants.InventsBytes,
        "without its bytes: 1",
    ),
    "another_models_thoughts_are_not_sent": (mutants.RepeatsEveryThought, "kit-thought"),
    "the_same_request_is_the_same_bytes": (mutants.CountsItsRequests, "sent again"),
    "what_a_tool_returned_ends_no_call": (
        mutants.JudgesToolsAsPeople,
        r"behind what a tool returned: UnsendableRequest",
    ),
    "a_tools_file_is_told_by_its_name": (mutants.ForgetsFilesOfTools, "name of application/zip"),
    "the_name_of_a_tools_file_is_short_and_on_one_line": (mutants.RepeatsNames, "a name in lines"),
    "a_long_result_is_told_as_its_text": (mutants.NamesEveryFile, "is kept as text/plain"),
}
"""For each check that both clients pass, or fail for another reason: one that fails it."""

_MORE: Final[tuple[tuple[Make, str, str], ...]] = (
    (mutants.AddsUsage, "of_cumulative_usage_the_last_counts", "the last of three reports"),
    (mutants.CallsByName, "calls_without_an_id_are_calls", "addadd"),
    (mutants.CountsTheCacheTwice, "totals_become_disjoint_counters", "input_tokens=100"),
    (mutants.FinishesAtOnce, "usage_with_the_last_message_is_told", "the place of the finish"),
    (mutants.HidesCancellation, "cancelling_a_call_ends_it_at_the_server", "cancelled call"),
    (mutants.ReadsSeconds, "retry_after_may_be_a_date", "the status told"),
    (mutants.RemembersUsage, "usage_of_one_call_is_not_that_of_the_next", "usage of two calls"),
    (mutants.SkipsWrongShapes, "a_message_that_is_no_object_is_an_error", r"begins with \[1\]"),
)
"""Other ways to break a promise."""

_BROKEN: Final[tuple[tuple[Make, str, str], ...]] = (
    *((NaiveClient, name, words) for name, words in _NAIVE.items()),
    *((LeakyClient, name, words) for name, words in _LEAKY.items()),
    *((make, name, words) for name, (make, words) in _MUTANTS.items()),
    *_MORE,
)

_SANE: Final[dict[Make, tuple[str, ...]]] = {
    NaiveClient: (
        "many_events_in_one_packet_are_all_told",
        "every_framing_of_a_body_is_understood",
        "pieces_of_two_calls_do_not_mix",
        "two_streams_at_once_do_not_mix",
        "a_status_that_stays_is_permanent",
        "closing_a_stream_ends_it_at_the_server",
        "fifty_closed_streams_leave_room_for_the_next",
    ),
    LeakyClient: (
        "an_answer_of_single_bytes_is_the_same",
        "lines_may_end_with_crlf",
        "a_call_comes_with_its_id_name_and_arguments",
        "each_reason_to_stop_is_told",
        "an_end_without_a_finish_is_worth_another_try",
        "a_garbled_message_is_worth_another_try",
        "a_passing_error_in_the_stream_is_worth_another_try",
        "a_line_without_end_is_given_up",
    ),
}
"""What they pass: they are clients, broken in their own ways only."""


def _harness(make: Make) -> ClientHarness:
    spoken = TallyDialect() if make is mutants.TrustsItsPool else OpenAIDialect()
    return ClientHarness(make, spoken)


@pytest.mark.parametrize(
    ("make", "name", "words"), _BROKEN, ids=lambda part: getattr(part, "__name__", "")
)
async def test_mod_5_a_broken_client_is_noticed(make: Make, name: str, words: str) -> None:
    """By the check that is named, which says what is wrong."""
    patience = _HANG_SECONDS if words == _HANGS else 60.0
    with pytest.raises(AssertionError, match=words):
        await _BY_NAME[name](_harness(make), patience_seconds=patience)


@pytest.mark.parametrize(
    ("make", "name"), [(make, name) for make, names in _SANE.items() for name in names]
)
async def test_mod_5_a_broken_client_passes_what_it_does_not_break(make: Make, name: str) -> None:
    """It fails for its own faults."""
    await _BY_NAME[name](_harness(make))


@pytest.mark.parametrize("name", mutants.__all__)
async def test_mod_5_a_mutant_is_a_client(name: str) -> None:
    """A plain answer that comes message by message arrives."""
    harness = _harness(getattr(mutants, name))
    said = (TextDelta(text="Hi "), TextDelta(text="you"), Finish(reason="stop"))
    groups = [*harness.dialect.answer(said), harness.dialect.end()]
    pieces = [harness.dialect.wire.write([message]) for group in groups for message in group]
    async with scene(harness, stream(harness.dialect, *pieces)) as (_, client):
        found = await ask(client)
    assert (found.text, found.finish, found.failure) == ("Hi you", "stop", None)


def test_mod_5_no_check_holds_on_every_client() -> None:
    """A check that nothing fails says nothing; one that is named twice is in the way."""
    assert {name for _, name, _ in _BROKEN} == set(_BY_NAME)


def test_mod_5_every_mutant_is_used() -> None:
    """What breaks nothing that is looked at is no mutant."""
    used = {getattr(make, "__name__", "") for make, _, _ in _BROKEN}
    assert set(mutants.__all__) - used == set()


def test_mod_5_checks_have_names_of_their_own_and_say_what_they_promise() -> None:
    """A report names a check; promises and docstrings say why it is there."""
    assert len(_BY_NAME) == len(CHECKS)
    for check in CHECKS:
        assert check.promises
        assert check.run.__doc__
        assert str(check) == check.name


def test_mod_9_a_format_gets_the_checks_that_say_something_of_it() -> None:
    """One without server-sent events is not asked about their comments."""
    ours, others = checks_for(OpenAIDialect()), checks_for(TallyDialect())
    assert ours == CHECKS
    left_out = {check.name for check in CHECKS} - {check.name for check in others}
    assert left_out == {
        "a_byte_order_mark_says_nothing",
        "comments_say_nothing",
        "fields_of_other_names_say_nothing",
        "lines_may_end_with_cr",
        "no_blank_is_needed_behind_a_colon",
        "one_event_may_have_several_lines_of_data",
        "the_end_alone_is_no_finish",
        "usage_with_the_last_message_is_told",
    }


async def test_mod_9_a_check_that_does_not_apply_says_so() -> None:
    """It does not pass by saying nothing."""
    with pytest.raises(ValueError, match=r"comments_say_nothing needs \['comments'\]"):
        await _BY_NAME["comments_say_nothing"](tally())


def test_mod_9_a_server_may_lack_what_the_format_has() -> None:
    """Then the checks that need it are left out."""
    plain = OpenAIDialect(without={"reasoning"})
    names = {check.name for check in checks_for(plain)}
    assert set(_BY_NAME) - names == {"reasoning_is_told_apart_from_text"}


def test_the_contract_needs_neither_pytest_nor_the_http_client() -> None:
    """A consumer runs it with what he has."""
    program = "import sys, psych_runtime.testing.model_contract as kit; print(len(kit.CHECKS))"
    program += "; print({'pytest', 'httpx2', '_pytest'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [str(len(CHECKS)), "set()"]
