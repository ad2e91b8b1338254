"""LOG-1, LOG-3: logs that nobody wrote are folded or refused, with a typed error, never else.

An altered row is tried twice: as it would be stored, where the chain or the head tells that it
was altered; and in a chain made to fit, where what it says is judged.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.core.codec import (
    Entry,
    content_fits,
    decode_anew,
    outline,
    outline_commit,
    record_text,
)
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance, fold, step
from psych_runtime.errors import ContentErased, CorruptLog, NewerRecord
from psych_runtime.runtime.takeover import fold_rows
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_runtime.views import answer_view, report_view, status_view
from psych_schema.common import Usage
from psych_schema.record import Timings
from psych_schema.store import RecordRow, RunRow
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.logs import claimed, copied, erased, two_turns, whole_log
from tests.unit.core.reasons import COMPACTION, READING, REASONS
from tests.unit.core.spoil import altered_rows, placed_anew
from tests.unit.core.walk import choose
from tests.unit.effort import effort

NEWER = "newer"
WHOLE = whole_log()


def refusal(read: Callable[[], object]) -> str:
    """Return why `read` was refused, "" when it was not; the reason is one that is known."""
    reason = ""
    try:
        read()
    except CorruptLog as error:
        reason = error.reason
    except NewerRecord:
        return NEWER
    assert not reason or reason in REASONS
    return reason


def verdict(rows: Sequence[RecordRow]) -> str:
    """Return what the fold says of stored rows, "" for nothing against them."""
    return refusal(lambda: fold(map(decode_anew, rows)))


def readable(rows: Sequence[RecordRow]) -> Iterator[Entry]:
    """Yield entries as readers do: up to the first that cannot be read."""
    for row in rows:
        try:
            yield decode_anew(row)
        except (CorruptLog, NewerRecord):
            return


def look(header: RunRow, entries: Sequence[Entry]) -> None:
    """Show what a log says in every view, and what was said in it; views do not fail."""
    for view in (status_view, answer_view, report_view):
        assert view(header, entries).model_dump_json()
    conversation = Conversation()
    try:
        for entry in entries:
            conversation.add(entry.record)
    except ContentErased:
        return
    except CorruptLog as error:
        problem = error.reason
    else:
        problem = ""
    assert problem in ("", *COMPACTION)


def grown(seed: int, *, records: int) -> LogBuilder:
    """Return a random legal log."""
    random = Random(seed)
    log = claimed()
    while len(log.entries) < records and log.state.phase not in ("settled", "erased"):
        record = choose(log, random)
        if record is not None and not refusal(partial(step, log.state, record)):
            log.add(record)
    return log


GROWN = [grown(seed, records=40) for seed in range(3)]
LOGS = [WHOLE, two_turns(), *GROWN]
logs = pytest.mark.parametrize("log", LOGS, ids=["whole", "two_turns", "walk0", "walk1", "walk2"])


def states(log: LogBuilder) -> list[RunState]:
    """Return the state before each record, and the last one."""
    found = [RunState()]
    for entry in log.entries:
        found.append(copied(found[-1]))
        advance(found[-1], entry)
    return found


def fold_onto(state: RunState, rows: Sequence[RecordRow]) -> None:
    """Fold stored rows into a state."""
    for row in rows:
        advance(state, decode_anew(row))


STATES = states(WHOLE)


@logs
def test_log_1_every_prefix_of_a_log_folds_and_can_be_shown(log: LogBuilder) -> None:
    """A log that merely stops early is legal, though its header may say that there was more."""
    for length in range(1, len(log.rows) + 1):
        rows = log.rows[:length]
        assert verdict(rows) == ""
        assert fold_rows(rows).state.position.seq == length
        look(log.header, log.entries[:length])
    shown = status_view(log.header, log.entries[:-1]).blocked_on
    assert shown is not None
    assert (shown.code, shown.message[:10]) == ("corrupt_log", "unreadable")


@logs
def test_log_1_rows_out_of_order_are_refused(log: LogBuilder) -> None:
    """Any two of them swapped, wherever they are."""
    before = states(log)
    for one, other in combinations(range(len(log.rows)), 2):
        rows = list(log.rows)
        rows[one], rows[other] = rows[other], rows[one]
        state = copied(before[one])
        assert refusal(partial(fold_onto, state, rows[one:])) == "seq_not_next"


@logs
def test_log_1_a_row_that_is_missing_is_noticed(log: LogBuilder) -> None:
    """In the middle by the record behind it, at the end by the head alone."""
    for place, state in enumerate(states(log)[:-2]):
        assert refusal(partial(fold_onto, state, log.rows[place + 1 :])) == "seq_not_next"
    assert fold(log.entries[:-1]).position.hash != log.header.head_hash
    assert fold(log.entries).position.hash == log.header.head_hash


@logs
def test_log_1_a_row_that_comes_twice_is_refused(log: LogBuilder) -> None:
    """Right behind itself, or at the end."""
    before = states(log)
    for row, behind in zip(log.rows, before[1:], strict=True):
        for state in (behind, before[-1]):
            assert refusal(partial(fold_onto, state, [row])) == "seq_not_next"


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_log_6_a_field_that_was_altered_is_noticed(kind: str) -> None:
    """Flipped, removed or of another type: the row, the one behind it, or the head tells."""
    tried = 0
    for place, row in enumerate(WHOLE.rows):
        if row.type != kind:
            continue
        for where, altered in altered_rows(row):
            tried += 1
            assert is_noticed(altered, place), (where, altered.body)
    assert tried > 100


def is_noticed(altered: RecordRow, place: int) -> bool:
    """Tell whether the row, the one behind it, or the header's hash says that it was altered."""
    state = copied(STATES[place])
    behind = WHOLE.rows[place + 1 : place + 2]
    reason = refusal(partial(fold_onto, state, [altered, *behind]))
    return reason != "" or (not behind and state.position.hash != WHOLE.header.head_hash)


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_log_1_an_altered_field_in_a_chain_that_fits_is_judged(kind: str) -> None:
    """What it says may be legal, or make a later record illegal; views show it all the same."""
    for place, row in enumerate(WHOLE.rows):
        if row.type != kind:
            continue
        shown: set[str] = set()
        for where, altered in altered_rows(row):
            state = copied(STATES[place])
            entries: list[Entry] = []
            refusal(partial(placed_onto, state, altered, WHOLE.entries[place], entries))
            if not entries:
                continue
            behind = WHOLE.entries[place + 1 :]
            refusal(partial(fold, behind, state))
            if where not in shown:
                shown.add(where)
                look(WHOLE.header, [*WHOLE.entries[:place], *entries, *behind])


def placed_onto(state: RunState, row: RecordRow, instead: Entry, into: list[Entry]) -> None:
    """Fold a row in the place of an entry, as if the chain had always been over it."""
    entry = decode_anew(row)._replace(hash=instead.hash)
    advance(state, entry)
    into.append(entry)


RUBBISH = [
    "",
    "\x00",
    "\N{BYTE ORDER MARK}",
    "{}",
    "[]",
    "null",
    "7",
    '"x"',
    "NaN",
    "{",
    '{"v":1}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "1" * 5_000,
    "\ud800",
]
NUMBERS = [
    "1e400",
    "-1e400",
    "1" * 4_300,
    "1" * 5_000,
    "1e-400",
    "-0",
    "0x1",
    "1.0",
    "NaN",
    "Infinity",
    "[" * 150 + "]" * 150,
    "[" * 250 + "]" * 250,
    "[" * 50_000,
    '"\\ud800"',
    '"\\u0000"',
    '"\x00"',
]


def assert_typed(row: RecordRow, place: int) -> None:
    """Read one row in every way: each ends in a value or in an error of the log."""
    refusal(partial(fold_onto, copied(STATES[place]), [row]))
    assert refusal(partial(outline, row)) in ("", "unreadable")
    assert isinstance(outline_commit(row), str)
    assert isinstance(content_fits(row), bool)
    assert isinstance(record_text(row), str)


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_log_1_rows_that_were_cut_or_are_no_json_are_refused(kind: str) -> None:
    """After every character; and rubbish before, in the midst, behind and instead."""
    place = next(place for place, row in enumerate(WHOLE.rows) if row.type == kind)
    row = WHOLE.rows[place]
    for end in range(len(row.body)):
        cut = row.model_copy(update={"body": row.body[:end]})
        assert refusal(partial(decode_anew, cut)) == "unreadable"
        assert refusal(partial(outline, cut)) == "unreadable"
    for end in range(len(row.content or "")):
        cut = row.model_copy(update={"content": (row.content or "")[:end]})
        assert refusal(partial(decode_anew, cut)) in READING
        assert is_noticed(cut, place)
    for rubbish in RUBBISH:
        for end in (0, 1, len(row.body) // 2, len(row.body) - 1, len(row.body)):
            body = row.body[:end] + rubbish + row.body[end:]
            assert_typed(row.model_copy(update={"body": body}), place)
        assert_typed(row.model_copy(update={"body": rubbish}), place)
        if row.content is not None:
            assert_typed(row.model_copy(update={"content": rubbish}), place)


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_log_1_values_at_the_edge_of_json_are_refused_or_taken(kind: str) -> None:
    """Numbers without an end, nests without a floor, characters that are none."""
    place = next(place for place, row in enumerate(WHOLE.rows) if row.type == kind)
    row = WHOLE.rows[place]
    for name in json.loads(row.body):
        for number in NUMBERS:
            body = json.dumps(json.loads(row.body) | {name: "@"}, separators=(",", ":"))
            altered = row.model_copy(update={"body": body.replace('"@"', number)})
            assert_typed(altered, place)


def test_log_1_a_row_that_differs_from_its_columns_is_refused() -> None:
    """The Run, the place and the type are said twice; a salt belongs to its content."""
    other = LogBuilder(system=CountingSystem(first_id=10**6))
    other.admit()
    for place, row in enumerate(WHOLE.rows):
        for column, value in (("run_id", other.run_id), ("seq", row.seq + 1)):
            altered = row.model_copy(update={column: value})
            assert refusal(partial(decode_anew, altered)) == "row_differs"
        for kind in TRANSITIONS:
            altered = row.model_copy(update={"type": kind})
            assert kind == row.type or refusal(partial(decode_anew, altered)) in READING
        altered = row.model_copy(update={"type": "run.teleported"})
        assert refusal(partial(decode_anew, altered)) == NEWER
        if row.content is not None:
            for fields in (
                {"salt": None},
                {"salt": "\ud800"},
                {"salt": "0" * 32},
                {"content": row.content + " "},
            ):
                altered = row.model_copy(update=fields)
                assert refusal(partial(decode_anew, altered)) == "content_does_not_fit"
        assert_typed(row.model_copy(update={"tenant": "globex"}), place)


def test_log_1_rows_of_another_run_are_refused() -> None:
    """At their own seq, under their own id or under ours; and everything behind some place."""
    other = LogBuilder(system=CountingSystem(first_id=10**6))
    for entry in WHOLE.entries:
        ours = {"seq": 0, "epoch": 0, "prev": None, "run_id": other.run_id}
        other.add(entry.record.model_copy(update=ours))
    for place, row in enumerate(other.rows):
        assert is_noticed(row, place)
        renamed = row.model_copy(update={"run_id": WHOLE.run_id})
        assert refusal(partial(decode_anew, renamed)) == "row_differs"
        if place:
            state = copied(STATES[place])
            assert refusal(partial(fold_onto, state, other.rows[place:])) == "prev_does_not_fit"


def spoiled(random: Random, rows: list[RecordRow]) -> None:
    """Do one thing to a log that nobody does."""
    place = random.randrange(len(rows))
    match random.randrange(8):
        case 0 if len(rows) > 1:
            del rows[place]
        case 1:
            rows.insert(random.randrange(len(rows) + 1), rows[place])
        case 2:
            other = random.randrange(len(rows))
            rows[place], rows[other] = rows[other], rows[place]
        case 3:
            rows[place] = erased([rows[place]])[0]
        case 4:
            rows.insert(place, random.choice(random.choice(LOGS).rows))
        case _:
            rows[place] = random.choice(list(altered_rows(rows[place])))[1]


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 4), log=st.sampled_from(LOGS))
@effort(80)
def test_log_1_log_3_a_log_altered_in_many_ways_is_read_or_refused(
    seed: int, steps: int, log: LogBuilder
) -> None:
    """By the fold, by whoever takes the Run over, and by every view."""
    random = Random(seed)
    rows = list(log.rows)
    for _ in range(steps):
        spoiled(random, rows)
    for one in (rows, placed_anew(rows)):
        reason = verdict(one)
        look(log.header, list(readable(one)))
        try:
            folded = fold_rows(one).state if one else RunState()
        except ContentErased:
            assert any(row.content is None for row in one)
        except (CorruptLog, NewerRecord):
            assert reason or any(row.type == "context.compacted" for row in one)
        else:
            assert reason == ""
            assert folded == fold(map(decode_anew, one))


def test_log_3_numbers_that_no_sum_can_hold_are_shown() -> None:
    """A second for ever, and more tokens than there are digits for."""
    log = claimed()
    long, many = Timings(seconds=1.7e308), Usage(input_tokens=10**4300 - 1, output_tokens=1)
    for _ in range(2):
        [call] = log.turn(calls=["look"], timings=long, usage=many)
        log.start(call)
        log.finish(call, duration_seconds=1.7e308)
    log.begin_turn()
    log.ask()
    look(log.header, log.entries)
    totals = report_view(log.header, log.entries).totals
    assert totals.model_seconds == totals.tool_seconds == sys.float_info.max
