"""TOOL-5: what a log says of failures and repeats in a row."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.core.codec import decode_anew, sha256
from psych_runtime.core.streaks import NOT_HAPPENED, NOT_READ, WITHHELD, Streaks
from psych_runtime.testing import LogBuilder
from psych_schema.common import BlobRef
from psych_schema.record import (
    AdvisoryAdded,
    Elided,
    EventReceived,
    Failure,
    Record,
    ToolCompleted,
    ToolsOffered,
    ToolStarted,
    UnavailableTool,
)
from tests.unit.core.logs import claimed
from tests.unit.effort import effort

FAILED: Final = Failure(code="boom", transient=False)
NO_LIMIT: Final = 1000


def read(records: Iterable[Record]) -> Streaks:
    """Return what a log says."""
    found = Streaks()
    for record in records:
        found.add(record)
    return found


def of(log: LogBuilder) -> Streaks:
    """Return what a log says, as whoever reads its rows finds it."""
    return read(decode_anew(row).record for row in log.rows)


def lived(*names: str) -> LogBuilder:
    """Return a log whose model was offered tools."""
    log = claimed()
    log.offer(*names)
    return log


def call(
    log: LogBuilder,
    name: str = "look",
    outcome: str = "ok",
    *,
    arguments: str = "a",
    text: str = "42",
    **fields: object,
) -> None:
    """Write a turn with one call, from its beginning to its end."""
    [one] = log.turn([name])
    log.start(one, digest=sha256(arguments))
    log.finish(one, text, outcome=outcome, **fields)


def refused(log: LogBuilder, name: str = "look", code: str = "guard", *, calls: int = 1) -> None:
    """Write a turn whose calls are refused."""
    for one in log.turn([name] * calls):
        log.refuse(one, code)


@pytest.mark.parametrize("outcome", ["error", "timed_out"])
def test_tool_5_a_failure_counts_and_a_success_ends_the_row(outcome: str) -> None:
    """Both kinds of failure are one row."""
    log = lived("look")
    call(log, outcome="error", text="1")
    call(log, outcome=outcome, text="2")
    assert of(log).failures("code:look") == 2
    call(log)
    assert of(log).failures("code:look") == 0
    call(log, outcome=outcome)
    assert of(log).failures("code:look") == 1


@pytest.mark.parametrize("outcome", ["unknown", "aborted"])
def test_tool_5_what_nobody_knows_neither_counts_nor_ends_the_row(outcome: str) -> None:
    """It may have happened, or we stopped it: the tool did not fail, nor did it succeed."""
    log = lived("look")
    call(log, outcome="error")
    call(log, outcome=outcome)
    assert of(log).failures("code:look") == 1
    call(log, outcome="error")
    assert of(log).failures("code:look") == 2


def test_tool_5_a_call_that_did_not_happen_neither_counts_nor_ends_the_row() -> None:
    """A worker died, not the tool; another reconciled error is the tool's own."""
    gone = Failure(code=NOT_HAPPENED, transient=True)
    log = lived("look")
    call(log, outcome="error")
    for _ in range(5):
        call(log, outcome="error", failure=gone, source="reconciled")
    assert of(log).failures("code:look") == 1
    call(log, outcome="error", failure=FAILED, source="reconciled")
    assert of(log).failures("code:look") == 2


def test_tool_5_a_part_of_a_result_that_cannot_be_given_is_no_failure() -> None:
    """The range was none, or a store was away: the tool is as it was."""
    none = Failure(code=NOT_READ, transient=False)
    log = lived("look")
    call(log, outcome="error")
    for _ in range(5):
        call(log, outcome="error", failure=none)
    assert of(log).failures("code:look") == 1
    assert of(log).most_repeats(NO_LIMIT) == 5


def test_tool_5_a_call_that_never_happens_is_a_repeat() -> None:
    """One that kills each worker that begins it is not begun for ever."""
    gone = Failure(code=NOT_HAPPENED, transient=True)
    log = lived("look")
    for _ in range(3):
        call(log, outcome="error", failure=gone, source="reconciled")
    assert of(log).most_repeats(NO_LIMIT) == 3


@pytest.mark.parametrize("code", ["unknown", "malformed", "denied", "guard", "limit", "aborted"])
def test_tool_5_a_refusal_is_no_failure(code: str) -> None:
    """Nor does it end the row."""
    log = lived("look")
    call(log, outcome="error")
    for _ in range(5):
        refused(log, code=code)
    assert of(log).failures("code:look") == 1
    call(log, outcome="error")
    assert of(log).failures("code:look") == 2


def test_tool_5_each_tool_has_a_row_of_its_own() -> None:
    """Another tool's success does not end it; another worker's failure counts."""
    log = lived("look", "pay")
    call(log, "pay", "error")
    call(log)
    log.claim()
    call(log, "pay", "error")
    found = of(log)
    assert (found.failures("code:pay"), found.failures("code:look")) == (2, 0)
    assert found.failures("code:never") == 0
    assert found.most_failures(NO_LIMIT) == 2


def test_tool_5_a_row_counts_no_further_than_its_limit_in_one_turn() -> None:
    """Calls that ran beside each other fail together; each later turn that insists is one more."""
    log = lived("look")
    calls = log.turn(["look"] * 5)
    for one in calls:
        log.start(one)
    for one in calls:
        log.finish(one, outcome="error")
    assert of(log).failures("code:look") == 5
    assert of(log).most_failures(3) == 3
    refused(log, calls=4)
    assert of(log).most_failures(3) == 4
    refused(log)
    assert of(log).most_failures(3) == 5
    assert of(log).failures("code:look") == 5


def test_tool_5_a_refusal_of_the_same_turn_does_not_insist() -> None:
    """The model asked before it could know."""
    log = lived("look")
    first, second = log.turn(["look", "look"])
    log.start(first)
    log.finish(first, outcome="error")
    log.refuse(second, "guard")
    assert of(log).most_failures(1) == 1


def test_tool_5_who_insisted_on_a_repeat_has_not_failed_more() -> None:
    """Below the limit only failures count; a call that ran begins anew."""
    log = lived("look")
    call(log, outcome="error")
    call(log, outcome="error")
    refused(log)
    assert of(log).most_failures(3) == 2
    call(log, outcome="error", arguments="b")
    assert of(log).most_failures(3) == 3


def repeats(log: LogBuilder, arguments: str = "a", name: str = "look") -> int:
    """Return how often a call was repeated, as the log says."""
    return of(log).repeats(f"code:{name}", sha256(arguments))


def test_tool_5_repeats_are_the_same_call_with_the_same_result() -> None:
    """Other arguments are no repeat, and end the row."""
    log = lived("look")
    assert repeats(log) == 0
    for count in (1, 2, 3):
        call(log)
        assert repeats(log) == count
    assert repeats(log, "b") == 0
    call(log, arguments="b")
    assert (repeats(log), repeats(log, "b")) == (0, 1)
    call(log)
    assert repeats(log) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"text": "43"},
        {"outcome": "error"},
        {"failure": FAILED},
        {"outcome": "timed_out", "failure": FAILED, "text": "43"},
    ],
)
def test_tool_5_another_result_is_no_repeat(other: dict[str, str]) -> None:
    """Who polls learns something."""
    log = lived("look")
    call(log)
    call(log)
    call(log, **other)
    assert repeats(log) == 1


def test_tool_5_a_long_result_is_compared_by_its_blob() -> None:
    """The preview names a handle, which is another one each time."""
    log = lived("look")
    for count, blob in ((1, "x"), (2, "x"), (1, "y")):
        whole = BlobRef(hash=sha256(blob), bytes=5, media_type="text/plain")
        handle = log.system.new_id("blob")
        call(log, text=f"see {handle}", elided=Elided(handle=handle, blob=whole))
        assert repeats(log) == count


def test_tool_5_another_file_beside_a_long_result_is_news() -> None:
    """A page that reads the same may look otherwise."""
    log = lived("look")
    whole = BlobRef(hash=sha256("x"), bytes=5, media_type="text/plain")
    for count, shot in ((1, "a"), (2, "a"), (1, "b")):
        file = BlobRef(hash=sha256(shot), bytes=5, media_type="image/png")
        handle = log.system.new_id("blob")
        elided = Elided(handle=handle, blob=whole)
        call(log, text=f"see {handle}", elided=elided, attachments=(file,))
        assert repeats(log) == count


def _steer(log: LogBuilder) -> None:
    log.consume(log.send())


def _learn(log: LogBuilder) -> None:
    call(log, "pay", text=log.system.new_id("rec"))


def _wait(log: LogBuilder) -> None:
    [one] = log.turn(["pay"])
    wait = log.wait("question", call=one)
    log.resolve(wait)
    log.start(one, digest=sha256("a"))
    log.finish(one)  # as the call before: that it waited is what is new


@pytest.mark.parametrize("happens", [_steer, _learn, _wait])
def test_tool_5_something_new_ends_a_row_of_repeats(happens: Callable[[LogBuilder], None]) -> None:
    """A message, another tool's news, a wait that is over: what failed before may go now."""
    log = lived("look", "pay")
    call(log, "pay")
    call(log)
    call(log)
    happens(log)
    assert repeats(log) == 0
    assert of(log).most_repeats(NO_LIMIT) <= 1
    call(log)
    assert repeats(log) == 1


def test_tool_5_two_tools_that_bring_nothing_new_by_turns_are_repeats() -> None:
    """A circle of two calls is a circle."""
    log = lived("look", "pay")
    for _ in range(4):
        call(log)
        call(log, "pay")
    assert (repeats(log), repeats(log, name="pay")) == (3, 4)


def test_tool_5_who_insists_on_a_repeat_is_counted_by_turns() -> None:
    """As for failures."""
    log = lived("look")
    call(log)
    call(log)
    refused(log, calls=3)
    assert (of(log).most_repeats(2), of(log).most_repeats(3)) == (3, 2)
    refused(log)
    assert of(log).most_repeats(2) == 4
    call(log)
    assert of(log).most_repeats(2) == 2


def test_r_25_what_the_last_offer_calls_withheld_is_known() -> None:
    """And whether the model was told of something else since."""
    log = lived("look", "pay")
    assert (of(log).withheld, of(log).told) == (frozenset(), False)
    log.write(AdvisoryAdded, advisory_id=log.system.new_id("adv"), code="other", message="x")
    assert not of(log).told
    log.write(AdvisoryAdded, advisory_id=log.system.new_id("adv"), code=WITHHELD, message="x")
    assert of(log).told
    last = next(one.record for one in log.entries if isinstance(one.record, ToolsOffered))
    missing = (
        UnavailableTool(identity="code:pay", code=WITHHELD),
        UnavailableTool(identity="code:look", code="not_permitted"),
    )
    log.write(
        ToolsOffered,
        hash=last.hash,
        system_ref=last.system_ref,
        tools=last.tools,
        unavailable=missing,
    )
    assert (of(log).withheld, of(log).told) == (frozenset({"code:pay"}), False)


def test_log_2_what_is_kept_does_not_grow_with_the_log() -> None:
    """Of a call that ended only what it was counts: turn 400 costs what turn 4 does."""
    log = lived("look", "pay")
    found, sizes = Streaks(), []
    for turn in range(1, 401):
        first = len(log.entries)
        call(log, "look" if turn % 2 else "pay", "error" if turn % 3 else "ok", text=f"{turn:04d}")
        refused(log, "pay")
        for entry in log.entries[first:]:
            found.add(entry.record)
        sizes.append(len(pickle.dumps(found)))
    assert max(sizes) - sizes[3] < 100


class Step(NamedTuple):
    """One thing that happens in a Run."""

    kind: str
    name: str = "look"
    arguments: str = "a"
    text: str = "42"


_TOOLS: Final = ("look", "pay")
_KINDS: Final = ("ok", "error", "timed_out", "unknown", "aborted", "guard", "denied", "steer")
_STEPS: Final = st.lists(
    st.lists(
        st.builds(
            Step,
            st.sampled_from(_KINDS),
            st.sampled_from(_TOOLS),
            st.sampled_from("ab"),
            st.sampled_from(("42", "43")),
        ),
        min_size=1,
        max_size=4,
    ),
    max_size=12,
)


def written(turns: Sequence[Sequence[Step]]) -> LogBuilder:
    """Return the log of turns whose calls run beside each other; others write in between."""
    log = lived(*_TOOLS)
    for steps in turns:
        messages = [log.send() for step in steps if step.kind == "steer"]
        if messages:
            log.consume(*messages)
        rest = [step for step in steps if step.kind != "steer"]
        calls = log.turn([step.name for step in rest])
        pairs = list(zip(calls, rest, strict=True))
        for one, step in pairs:
            if step.kind not in ("guard", "denied"):
                log.start(one, digest=sha256(step.arguments))
        log.write(EventReceived, event_id=log.system.new_id("evt"), name="paid", by="hook")
        for one, step in reversed(pairs):
            if step.kind in ("guard", "denied"):
                log.refuse(one, step.kind)
            else:
                log.finish(one, step.text, outcome=step.kind)
    return log


def told(found: Streaks) -> list[int]:
    """Return everything that a limit is compared with."""
    numbers = [found.failures(f"code:{name}") for name in _TOOLS]
    numbers += [found.repeats(f"code:{name}", sha256(one)) for name in _TOOLS for one in "ab"]
    numbers += [found.most_failures(limit) for limit in (1, 2, 3, NO_LIMIT)]
    return numbers + [found.most_repeats(limit) for limit in (1, 2, 3, NO_LIMIT)]


class _Done(NamedTuple):
    identity: str
    brought: tuple[str, str, str]


def _history(records: Iterable[Record]) -> list[_Done | None]:
    """Return the calls that ended, in order; None: a message was read."""
    begun: dict[str, ToolStarted] = {}
    found: list[_Done | None] = []
    for record in records:
        if isinstance(record, ToolStarted):
            begun[record.call_id] = record
        elif isinstance(record, ToolCompleted):
            start, result = begun[record.call_id], record.result
            said = result.model_dump_json() if result else ""
            found.append(_Done(start.identity, (start.digest, record.outcome, said)))
        elif record.type == "queue.consumed":
            found.append(None)
    return found


def counted_failures(history: Sequence[_Done | None], identity: str) -> int:
    """Count from the end, as a reader would."""
    count = 0
    for one in reversed(history):
        if one is None or one.identity != identity:
            continue
        if one.brought[1] == "ok":
            break
        count += one.brought[1] in ("error", "timed_out")
    return count


def _is_news(history: Sequence[_Done | None], place: int) -> bool:
    """Tell whether what stands at `place` is another thing than that tool brought before."""
    here = history[place]
    before = [one for one in history[:place] if one and here and one.identity == here.identity]
    return here is None or not before or before[-1] != here


def counted_repeats(history: Sequence[_Done | None], identity: str, digest: str) -> int:
    """Count from the end, as a reader would."""
    last: _Done | None = None
    count = 0
    for place in range(len(history) - 1, -1, -1):
        one = history[place]
        if one is not None and one.identity == identity:
            if one.brought[0] != digest or last not in (None, one):
                break
            last = one
            count += 1
        if _is_news(history, place):
            break
    return count


@effort(80)
@given(_STEPS)
def test_tool_5_each_reader_counts_the_same_at_each_record(turns: list[list[Step]]) -> None:
    """Who heard the records as they were made, who read the rows, who took over, who recounts."""
    log = written(turns)
    rows = [decode_anew(row).record for row in log.rows]
    live = Streaks()
    for place, entry in enumerate(log.entries, 1):
        live.add(entry.record)
        found = told(live)
        assert found == told(read(rows[:place]))
        history = _history(rows[:place])
        assert found[:6] == [
            *(counted_failures(history, f"code:{name}") for name in _TOOLS),
            *(
                counted_repeats(history, f"code:{name}", sha256(one))
                for name in _TOOLS
                for one in "ab"
            ),
        ]


@effort(40)
@given(_STEPS)
def test_r_3_records_of_others_change_no_number(turns: list[list[Step]]) -> None:
    """Where they stand among the attempt's own differs between who writes and who reads."""
    log = written(turns)
    records = [entry.record for entry in log.entries]
    own = [one for one in records if one.epoch or one.type == "run.admitted"]
    assert len(own) < len(records) or not turns
    assert told(read(own)) == told(read(records))
