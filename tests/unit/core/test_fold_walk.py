"""R-3 and recovery over random legal logs; a failing seed is in the message and replays."""

from random import Random

import pytest

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.fold import Changes, RunState, fold, step
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record, ToolCompleted, ToolStarted
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.drafts import draft
from tests.unit.core.logs import claimed, copied, whole_log
from tests.unit.core.walk import choose, propose, recover

WALKS = 5
PROPOSALS = 400
OUTSIDE = [kind for kind, row in TRANSITIONS.items() if "outside" in row.by]


def judged(state: RunState, record: Record) -> Changes | None:
    """Return what a record changes, None when it may not follow."""
    try:
        return step(state, record)
    except CorruptLog:
        return None


def after(state: RunState, record: Record, changes: Changes) -> RunState:
    """Return a copy of the state with the record in it."""
    copy = copied(state)
    copy.apply(record, changes)
    return copy


def is_outside(record: Record) -> bool:
    """Tell whether somebody other than the attempt writes it to a living Run."""
    if record.type in ("run.admitted", "run.erased") or isinstance(record, ToolCompleted):
        return False
    by = TRANSITIONS[record.type].by
    return by == ("outside",) or ("outside" in by and record.by is not None)


def is_note(record: Record) -> bool:
    """Tell whether an attempt may have it happen before it is written."""
    if isinstance(record, ToolStarted):
        return record.approval_id is None
    return TRANSITIONS[record.type].mode in ("note", "either")


def check_commutes(state: RunState, note: Record, outside: Record, where: str) -> bool:
    """Check a note that is legal against an outside record; tell whether that was legal."""
    first = judged(state, note)
    assert first is not None
    noted = after(state, note, first)
    before, behind = judged(state, outside), judged(noted, outside)
    what = f"{where}: {note.type} and {outside.type}"
    assert (before is None) == (behind is None), f"{what}: legality"
    if before is None or behind is None:
        return False
    written = after(state, outside, before)
    again = judged(written, note)
    assert again is not None, f"{what}: the note is forbidden"
    assert after(written, note, again) == after(noted, outside, behind), f"{what}: state"
    return True


def walk(seed: int, seen: set[str], pairs: set[tuple[str, str]]) -> LogBuilder:
    """Walk a random legal log, checking at every step."""
    random = Random(seed)
    log = claimed()
    live = copied(log.state)
    for number in range(PROPOSALS):
        record = choose(log, random)
        changes = None if record is None else judged(log.state, record)
        if record is None or changes is None:
            continue
        where = f"seed {seed}, proposal {number}"
        if is_note(record) and not is_outside(record):
            for kind in random.sample(OUTSIDE, 3):
                other = propose(log, random, kind)
                if (
                    other is not None
                    and is_outside(other)
                    and check_commutes(log.state, record, other, where)
                ):
                    pairs.add((record.type, other.type))
        log.add(record)
        live.apply(record, changes)
        live.position = log.state.position
        assert live == log.state, where
        seen.add(record.type)
        if log.state.phase in ("settled", "erased"):
            break
    return log


@pytest.mark.parametrize("block", range(3))
def test_r_3_random_logs_commute_recover_and_fold_to_the_live_state(block: int) -> None:
    """Outside records commute with notes; any state can be taken and settled."""
    seen: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for seed in range(block * WALKS, (block + 1) * WALKS):
        log = walk(seed, seen, pairs)
        if log.state.phase not in ("settled", "erased"):
            recover(log)
        assert log.state.phase in ("settled", "erased")
        assert fold(map(decode_anew, log.rows)) == log.state
    assert len(seen) >= 30
    assert len(pairs) >= 40


def test_r_3_outside_records_commute_with_the_notes_of_a_whole_log() -> None:
    """Every outside record that the log knows, tried against every note at every prefix."""
    log = whole_log()
    records = [entry.record for entry in log.entries]
    outside = [record for record in records if record.epoch == 0 and is_outside(record)]
    pairs: set[tuple[str, str]] = set()
    state = RunState()
    for number, record in enumerate(records):
        for note in (one for one in records if is_note(one) and not is_outside(one)):
            if judged(state, note) is None:
                continue
            for other in outside:
                if check_commutes(state, note, other, f"record {number}"):
                    pairs.add((note.type, other.type))
        state.apply(record, step(state, record))
    kinds = {kind for kind, row in TRANSITIONS.items() if is_note(draft(log, kind))}
    assert {note for note, _ in pairs} == kinds
    assert {other for _, other in pairs} == {record.type for record in outside}


def test_r_4_every_prefix_of_a_whole_log_can_be_taken_and_settled() -> None:
    """A worker may die anywhere."""
    whole = whole_log()
    ends = 0
    for length in range(1, len(whole.entries) - 1):
        log = LogBuilder()
        for entry in whole.entries[:length]:
            log.add(entry.record.model_copy(update={"seq": 0, "epoch": 0, "prev": None}))
        recover(log)
        assert log.state.phase == "settled"
        ends += 1
    assert ends == len(whole.entries) - 2
