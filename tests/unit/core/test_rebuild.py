"""A header is what its log makes it, and each column that is not is found (R-1, LOG-6)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

import pytest

from psych_runtime.core.fold import RunState, advance, step
from psych_runtime.core.rebuild import (
    SOME,
    Difference,
    Traces,
    compare,
    contradictions,
    differences,
    rebuild,
)
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.record import BaseRef, ParentRef, Record, ThreadRef
from psych_schema.store import RunRow
from tests.unit.core.logs import CHILD, FAR, asked, claimed, two_turns, whole_log
from tests.unit.core.walk import choose

OTHER: Final = "run_" + "8" * 26
LATER: Final = datetime(2031, 1, 1, tzinfo=UTC)

ALTERED: Final[Mapping[str, object]] = {
    "tenant": "globex",
    "run_id": OTHER,
    "version": "f" * 64,
    "state": "ready",
    "head": 99,
    "head_hash": "e" * 64,
    "head_at": LATER,
    "worker": "wrk_" + "9" * 26,
    "epoch": 7,
    "crashes": 3,
    "priority": 9,
    "schema_version": 2,
    "abort": "requested",
    "thread": "another",
    "position": 5,
    "previous": OTHER,
    "parent": OTHER,
    "root": OTHER,
    "created_at": LATER,
    "open": {"wait_" + "9" * 26: 2},
    "wake_at": LATER,
    "deadline_at": LATER,
    "remaining_seconds": 1.5,
}
"""Another value for each column that the log of a settled Run determines."""

ASIDE: Final = {"referenced", "capped"}
"""Columns that it does not: another Run says whether it names this one, a cap whether it counts."""


def bounded() -> LogBuilder:
    """Return a Run with a deadline that a worker has claimed."""
    log = LogBuilder()
    log.admit(deadline_seconds=900.0)
    log.claim()
    return log


def resting(**fields: object) -> LogBuilder:
    """Return a bounded Run that is suspended: for a question, or as `fields` say."""
    log = bounded()
    if not fields:
        log.wait("question")
    log.suspend(**fields)
    return log


def woken() -> LogBuilder:
    """Return a bounded Run that was answered."""
    log = resting()
    [wait] = log.state.ids("wait", "open")
    log.resolve(wait)
    return log


def broken() -> LogBuilder:
    """Return a bounded Run whose attempt died of a bug."""
    log = bounded()
    log.end("error", code="bug")
    return log


def followed() -> LogBuilder:
    """Return a settled Run whose queue became the next Run."""
    log = bounded()
    log.send("next", queue="next_run")
    log.settle("failed")
    return log


def columns_of(found: tuple[Difference, ...]) -> list[str]:
    return [one.column for one in found]


def test_log_6_every_column_of_a_header_is_judged_here() -> None:
    """A new column has to be put on one side or the other."""
    assert set(ALTERED) | ASIDE == set(RunRow.model_fields)
    assert not set(ALTERED) & ASIDE


@pytest.mark.parametrize("column", sorted(ALTERED))
def test_log_6_an_altered_column_is_found(column: str) -> None:
    """That column, and no other."""
    log = two_turns()
    header = log.header.model_copy(update={column: ALTERED[column]})

    assert columns_of(differences(header, log.entries)) == [column]
    assert differences(log.header, log.entries) == ()


@pytest.mark.parametrize("column", sorted(set(ALTERED) - {"state"}))
def test_log_6_an_altered_column_of_a_run_under_way_is_found(column: str) -> None:
    """A claim, an open wait, a deadline: what differs from a settled Run is judged, too."""
    log = resting()
    value = None if column == "remaining_seconds" else ALTERED[column]
    header = log.header.model_copy(update={column: value})

    assert columns_of(differences(header, log.entries)) == [column]
    assert differences(log.header, log.entries) == ()


@pytest.mark.parametrize("state", ["ready", "running", "settled"])
def test_log_6_an_altered_state_is_found(state: str) -> None:
    """Whatever it is altered to, corrupt aside: no record explains that one."""
    log = resting()
    header = log.header.model_copy(update={"state": state})
    assert differences(header, log.entries) == (Difference("state", state, "suspended"),)


def test_log_6_what_goes_with_corrupt_is_not_judged_and_the_rest_is() -> None:
    """The marking takes the worker and the instants away."""
    log = bounded()
    marked = {"state": "corrupt", "worker": None, "wake_at": None, "deadline_at": None}
    header = log.header.model_copy(update=marked)
    assert differences(header, log.entries) == ()
    header = header.model_copy(update={"epoch": 2, "open": {CHILD: 1}})
    assert columns_of(differences(header, log.entries)) == ["epoch", "open"]


def test_log_6_a_difference_says_what_is_there_and_what_should_be() -> None:
    """As text that can be read in a terminal: null, numbers, instants, JSON."""
    log = two_turns()
    update = {"worker": "wrk_x", "crashes": 2, "created_at": LATER, "open": {"b": 2, "a": 1}}
    header = log.header.model_copy(update=update)

    assert differences(header, log.entries) == (
        Difference("created_at", "2031-01-01T00:00:00.000000Z", "2026-11-29T20:00:00.001000Z"),
        Difference("worker", "wrk_x", "null"),
        Difference("crashes", "2", "0"),
        Difference("open", '{"a": 1, "b": 2}', "{}"),
    )


def test_log_6_a_rebuilt_header_in_full() -> None:
    """Of a Run in the middle of everything."""
    log = LogBuilder(tenant="globex")
    log.admit(
        deadline_seconds=60.0,
        priority=4,
        root=OTHER,
        parent=ParentRef(run=OTHER),
        thread=ThreadRef(id="line", position=3, previous=CHILD),
        base=BaseRef(run=CHILD, seq=4, hash="c" * 64),
    )
    worker = log.claim().worker
    log.claim(worker=worker)
    entry = log.send()
    log.abort()

    assert rebuild(log.entries) == {
        "tenant": "globex",
        "run_id": log.run_id,
        "version": log.header.version,
        "priority": 4,
        "thread": "line",
        "position": 3,
        "previous": CHILD,
        "parent": OTHER,
        "root": OTHER,
        "created_at": log.entries[0].record.at,
        "state": "running",
        "head": 5,
        "head_hash": log.entries[4].hash,
        "head_at": log.entries[4].record.at,
        "worker": worker,
        "epoch": 2,
        "crashes": 1,
        "schema_version": 1,
        "abort": "requested",
        "open": {entry: 4},
        "wake_at": None,
        "deadline_at": SOME,
        "remaining_seconds": None,
    }


INSTANTS: Final[Mapping[str, tuple[Callable[[], LogBuilder], object, object, object]]] = {
    "admitted": (lambda: _admitted(900.0), None, SOME, None),
    "without a deadline": (lambda: _admitted(None), None, None, None),
    "running": (bounded, None, SOME, None),
    "waiting": (resting, None, None, SOME),
    "waiting until": (lambda: _waiting_until(FAR), FAR, None, SOME),
    "parked": (lambda: resting(wake_at=FAR), FAR, SOME, None),
    "woken": (woken, None, SOME, None),
    "failed attempt": (broken, SOME, SOME, None),
    "drained": (lambda: _ended("drained"), None, SOME, None),
    "blocked": (lambda: _ended("blocked"), None, SOME, None),
    "settled": (followed, None, None, None),
}


def _admitted(deadline_seconds: float | None) -> LogBuilder:
    log = LogBuilder()
    log.admit(deadline_seconds=deadline_seconds)
    return log


def _waiting_until(instant: datetime) -> LogBuilder:
    log = bounded()
    log.wait("timer", due=instant)
    log.suspend(wake_at=instant)
    return log


def _ended(reason: str) -> LogBuilder:
    log = bounded()
    log.end(reason)
    return log


@pytest.mark.parametrize("name", sorted(INSTANTS))
def test_r_14_what_the_log_tells_of_instants(name: str) -> None:
    """Null or not, and of a suspended Run its wake_at; the values are the store's clock."""
    make, wake_at, deadline_at, remaining_seconds = INSTANTS[name]
    log = make()
    found = rebuild(log.entries)

    assert found["wake_at"] == wake_at
    assert found["deadline_at"] == deadline_at
    assert found["remaining_seconds"] == remaining_seconds
    assert differences(log.header, log.entries) == ()


@pytest.mark.parametrize("name", sorted(INSTANTS))
@pytest.mark.parametrize("column", ["wake_at", "deadline_at", "remaining_seconds"])
def test_r_14_an_instant_that_the_log_rules_out_is_found(name: str, column: str) -> None:
    """Set where it must be null, and null where it must be set."""
    log = INSTANTS[name][0]()
    before: object = getattr(log.header, column)
    value = ALTERED[column] if before is None else None
    header = log.header.model_copy(update={column: value})
    assert columns_of(differences(header, log.entries)) == [column]


def test_r_14_an_instant_of_the_stores_clock_may_be_any() -> None:
    """The neighbours: another deadline, another rest of time, another pause after a failure."""
    hour = timedelta(hours=1)
    for log, column in ((bounded(), "deadline_at"), (broken(), "wake_at")):
        value: datetime = getattr(log.header, column)
        header = log.header.model_copy(update={column: value + hour})
        assert differences(header, log.entries) == ()
    log = resting()
    header = log.header.model_copy(update={"remaining_seconds": 0.0})
    assert differences(header, log.entries) == ()


def test_r_18_a_run_with_a_next_one_is_referenced() -> None:
    """Any other may be, by a Run that continues it."""
    log = followed()
    header = log.header.model_copy(update={"referenced": False})
    assert differences(header, log.entries) == (Difference("referenced", "false", "true"),)
    log = two_turns()
    header = log.header.model_copy(update={"referenced": True})
    assert differences(header, log.entries) == ()


def test_log_6_a_log_that_is_not_there_says_so() -> None:
    """The header names records; there is none."""
    log = two_turns()
    assert rebuild([]) == {"head": 0}
    head = str(log.header.head)
    assert differences(log.header, []) == (Difference("head", head, "0"),)


def test_log_6_a_header_behind_its_log_is_found() -> None:
    """And one that is ahead of it."""
    log = two_turns()
    found = columns_of(differences(log.header, log.entries[:-1]))
    assert {"head", "head_hash", "head_at", "state", "worker"} <= set(found)
    older = LogBuilder()
    older.admit()
    before = older.header
    older.claim()
    found = columns_of(differences(before, older.entries))
    assert found == ["state", "head", "head_hash", "head_at", "worker", "epoch"]


def test_log_1_an_illegal_log_has_no_header() -> None:
    """The reason is the fold's."""
    log, _ = asked("look")
    with pytest.raises(CorruptLog) as caught:
        rebuild(log.entries[1:])
    assert caught.value.reason == "seq_not_next"
    assert caught.value.seq == 2


def test_log_6_contradictions_take_the_columns_that_are_known() -> None:
    """For who knows a part of a log only."""
    header = bounded().header
    assert contradictions(header, {"head": 2, "deadline_at": SOME}) == ()
    assert contradictions(header, {"head": 3, "worker": SOME, "wake_at": SOME}) == (
        Difference("head", "2", "3"),
        Difference("wake_at", "null", "not null"),
    )


def legal(state: RunState, record: Record) -> bool:
    """Tell whether a record may follow."""
    try:
        step(state, record)
    except CorruptLog:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("deadline_seconds", [None, 900.0])
def test_r_1_a_header_is_its_recomputation_after_every_record(
    seed: int, deadline_seconds: float | None
) -> None:
    """Over random logs, record by record: what a simulation does at every commit."""
    random = Random(seed)
    log = _admitted(deadline_seconds)
    log.claim()
    state, traces = RunState(), Traces()
    taken = 0
    for _ in range(600):
        record = choose(log, random)
        if record is None or not legal(log.state, record):
            continue
        log.add(record)
        for entry in log.entries[taken:]:
            traces.take(entry.record, advance(state, entry))
        taken = len(log.entries)
        assert compare(log.header, state, traces) == ()
    assert taken > 50
    assert differences(log.header, log.entries) == ()


def test_r_1_a_log_of_every_record_type_makes_its_header() -> None:
    """Also an erased one; and each shorter log an earlier header."""
    log = whole_log()
    assert differences(log.header, log.entries) == ()
    state, traces = RunState(), Traces()
    for entry in log.entries:
        traces.take(entry.record, advance(state, entry))
        assert traces.columns(state)["head"] == entry.record.seq
    assert traces.columns(state) == rebuild(log.entries)
    assert claimed().header.state == "running"
