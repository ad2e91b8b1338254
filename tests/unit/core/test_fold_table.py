"""LOG-1: the fold enforces every row of the generated table, phase by phase."""

from collections.abc import Iterator
from itertools import product

import pytest

from psych_runtime.core.fold import Object, RunState, step
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record
from psych_schema.transitions import PHASES, TRANSITIONS, Move, ObjectKind
from tests.unit.core.drafts import H, draft

OTHER = "oth_" + "1" * 26
MORE = "oth_" + "2" * 26
LEAD = "oth_" + "3" * 26

VARIANTS: dict[str, list[dict[str, object]]] = {
    "run.settled": [{}, {"state": "completed", "reason": None}],
    "abort.requested": [{"force": False}, {"force": True}],
    "turn.started": [{"step": OTHER}],
    "queue.enqueued": [{"queue": "steer"}, {"queue": "next_run"}],
    "queue.consumed": [{"entries": (OTHER, MORE)}],
    "model.started": [{"offer": H}],
    "model.completed": [{"calls": (OTHER, MORE)}],
    "model.failed": [{"next": "retry"}, {"next": "give_up"}],
    "tool.refused": [{}, {"parent_call": OTHER}, {"step": OTHER}],
    "tool.started": [{}, {"parent_call": OTHER}, {"step": OTHER}, {"approval_id": OTHER}],
    "tool.completed": [{"source": "executed"}, {"source": "reconciled"}, {"source": "stubbed"}],
    "approval.requested": [{"parent_call": OTHER}, {"step": OTHER}, {"supersedes": OTHER}],
    "approval.decided": [{"decision": one} for one in ("approve", "edit", "deny")],
    "wait.opened": [{"call": OTHER, "step": MORE}],
    "wait.resolved": [{"event_id": OTHER}],
    "child.admitted": [{"call": OTHER, "step": MORE}],
    "step.started": [{"compensates": OTHER}],
    "step.completed": [{}, {"retry_at": "2030-01-01T00:00:00.000000Z"}],
}
"""Fields with which each move of a type applies at least once."""


def applies(move: Move, record: Record) -> bool:
    """Read the table as its documentation says."""
    if move.given is not None and getattr(record, move.given) is None:
        return False
    return all(getattr(record, field) in values for field, values in move.when)


def keys(move: Move, record: Record) -> list[str]:
    """Return the ids that a move names."""
    if move.key is None:
        return [""]
    value = getattr(record, move.key)
    found = value if isinstance(value, tuple) else (value,)
    return [str(one) for one in found if one is not None]


def named(record: Record) -> dict[tuple[ObjectKind, str], tuple[str, ...]]:
    """Return every object that a record names, and in which phases it may be."""
    found: dict[tuple[ObjectKind, str], tuple[str, ...]] = {}
    for move in TRANSITIONS[record.type].moves:
        if move.key == "*" or not applies(move, record):
            continue
        for key in keys(move, record):
            both = found.get((move.kind, key), move.source)
            found[move.kind, key] = tuple(phase for phase in both if phase in move.source)
    return found


def states(record: Record) -> Iterator[dict[tuple[ObjectKind, str], str]]:
    """Yield the phases in which the named objects may be, together."""
    objects = named(record)
    for phases in product(*objects.values()):
        yield dict(zip(objects, phases, strict=True))


def state_with(phases: dict[tuple[ObjectKind, str], str]) -> RunState:
    """Return a state that knows nothing but these objects."""
    state = RunState(epoch=1)
    state.put([(kind, key, Object(phase)) for (kind, key), phase in phases.items()])
    return state


def refusal(state: RunState, record: Record) -> str:
    """Return why a record may not follow, "" when it may."""
    try:
        step(state, record)
    except CorruptLog as error:
        return error.reason
    return ""


DRAFTS = [
    draft(LogBuilder(), kind, **fields)
    for kind in TRANSITIONS
    for fields in VARIANTS.get(kind, [{}])
]


def test_log_1_every_move_of_the_table_applies_in_some_draft() -> None:
    """The tests below leave no row out."""
    applied = {
        (record.type, number)
        for record in DRAFTS
        for number, move in enumerate(TRANSITIONS[record.type].moves)
        if applies(move, record) and (move.key == "*" or keys(move, record))
    }
    assert applied == {
        (kind, number) for kind, row in TRANSITIONS.items() for number in range(len(row.moves))
    }


@pytest.mark.parametrize("record", DRAFTS, ids=lambda one: one.type)
def test_log_1_objects_in_a_wrong_phase_are_refused_and_in_a_right_one_are_not(
    record: Record,
) -> None:
    """One object at a time, all others as they should be."""
    for phases in states(record):
        assert "_is_" not in refusal(state_with(phases), record).replace("is_due", "").replace(
            "retry_is_safe", ""
        )
        for (kind, key), allowed in named(record).items():
            for wrong in set(PHASES[kind]) - set(allowed):
                reason = refusal(state_with({**phases, (kind, key): wrong}), record)
                assert reason == f"{kind}_is_{wrong}"


@pytest.mark.parametrize("kind", [kind for kind, row in TRANSITIONS.items() if row.absent])
def test_log_1_what_must_be_absent_is_refused_in_each_phase(kind: str) -> None:
    """Another object than those that the record names."""
    for record in (one for one in DRAFTS if one.type == kind):
        phases = next(states(record))
        for absent in TRANSITIONS[kind].absent:
            judged = all(getattr(record, field) in values for field, values in absent.when)
            for phase in PHASES[absent.kind]:
                reason = refusal(state_with({**phases, (absent.kind, LEAD): phase}), record)
                refused = judged and phase in absent.phases
                assert (reason == f"{absent.kind}_still_{phase}") == refused


@pytest.mark.parametrize("record", DRAFTS, ids=lambda one: one.type)
def test_log_1_objects_go_where_the_table_says(record: Record) -> None:
    """Each move's target, and nothing else changes but a suspended Run that is woken."""
    row = TRANSITIONS[record.type]
    for phases in states(record):
        state = state_with(phases)
        if reason := refusal(state, record):
            assert reason in row.guards
            continue
        expected = {
            (move.kind, key): move.target
            for move in row.moves
            if move.key != "*" and move.target is not None and applies(move, record)
            for key in keys(move, record)
        }
        if phases.get(("run", "")) == "suspended" and "outside" in row.by:
            expected["run", ""] = "ready"
        assert {(kind, key): new.phase for kind, key, new in step(state, record)} == expected


@pytest.mark.parametrize("kind", ["abort.requested", "run.settled", "attempt.started"])
def test_log_1_a_move_of_all_takes_all_that_are_there(kind: str) -> None:
    """Two objects in each phase: those in the move's phases go, the others stay."""
    for move in (one for one in TRANSITIONS[kind].moves if one.key == "*"):
        record = draft(LogBuilder(), kind)
        base = next(states(record))
        others = {
            (move.kind, f"{phase[:3]}_{n:026d}"): phase
            for phase in PHASES[move.kind]
            for n in (1, 2)
        }
        state = state_with({**base, **others})
        if kind == "run.settled" and move.kind == "entry":
            continue  # what is queued has to be listed: test_fold_illegal.py
        state.apply(record, step(state, record))
        for (one, key), phase in others.items():
            assert state.get(one, key).phase == (move.target if phase in move.source else phase)
