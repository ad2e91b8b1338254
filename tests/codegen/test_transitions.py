"""The generated transition table says what the sources say, in tuples."""

import pytest

from psych_schema.sets import SETS
from psych_schema.transitions import PHASES, TRANSITIONS, Absent, Move, Transition
from psych_schema.types import RECORD_TYPES


def test_the_first_record_of_a_run() -> None:
    """A row with nothing but a move and a content."""
    assert TRANSITIONS["run.admitted"] == Transition(
        by=("outside",),
        mode="decision",
        moves=(Move("run", None, ("none",), "ready"),),
        content="input",
    )


def test_a_row_with_everything() -> None:
    """Moves of all, of a list, under a condition; what may not be; guards; linked."""
    row = TRANSITIONS["run.settled"]
    assert row.by == ("attempt",)
    assert row.linked
    assert row.content == "output"
    assert row.guards == ("unconsumed_listed", "next_run_listed", "completed_leaves_nothing")
    assert Move("entry", "*", ("queued",), "voided") in row.moves
    assert Absent("model", ("open",)) in row.absent
    assert Absent("child", ("live",), (("state", ("completed",)),)) in row.absent


def test_a_condition_names_null() -> None:
    """A call that the model asked for has neither parent nor step."""
    moves = TRANSITIONS["tool.refused"].moves
    assert moves[1] == Move(
        kind="call",
        key="call_id",
        source=("asked", "proposed"),
        target="done",
        when=(("parent_call", (None,)), ("step", (None,))),
    )
    assert moves[2] == Move("call", "call_id", ("none", "proposed"), "done", given="parent_call")


def test_a_field_is_remembered() -> None:
    """`keep` names what later guards read."""
    move = next(move for move in TRANSITIONS["tool.started"].moves if move.key == "approval_id")
    assert move == Move("approval", "approval_id", ("granted",), "used")
    kept = {move.keep for move in TRANSITIONS["tool.started"].moves if move.key == "call_id"}
    assert all({"safe_to_retry", "tries"} <= set(keep) for keep in kept)


def test_two_may_write_one_type() -> None:
    """An answer comes from outside, a timer from the attempt."""
    assert set(TRANSITIONS["wait.resolved"].by) == {"outside", "attempt"}


def test_each_kind_begins_as_none() -> None:
    """The first phase is that of what does not exist yet."""
    assert {phases[0] for phases in PHASES.values()} == {"none"}
    assert PHASES["run"] == ("none", "ready", "running", "suspended", "settled", "erased")
    assert len(PHASES) == 13


@pytest.mark.parametrize("name", sorted(TRANSITIONS))
def test_a_row_names_phases_and_fields_that_exist(name: str) -> None:
    """And never the content, so that the fold of an erased log is the fold before."""
    row, fields = TRANSITIONS[name], set(RECORD_TYPES[name].model_fields)
    used: set[str] = set()
    for move in row.moves:
        assert {*move.source, move.target or move.source[0]} <= set(PHASES[move.kind])
        used |= {*move.keep, *(field for field, _ in move.when), move.given or "type"}
        used |= set() if move.key in {None, "*"} else {str(move.key)}
    for absent in row.absent:
        assert set(absent.phases) <= set(PHASES[absent.kind])
        used |= {field for field, _ in absent.when}
    assert used <= fields
    assert row.content not in used
    assert row.content is None or row.content in fields


def test_the_table_cannot_be_changed() -> None:
    """It is shared by every Run of a process."""
    with pytest.raises(TypeError):
        TRANSITIONS["run.admitted"] = TRANSITIONS["run.settled"]  # type: ignore[index]  # on purpose


def test_sets_are_named_with_their_key() -> None:
    """Tools, events and skills of an agent are sets by name."""
    assert SETS["AgentSpec"] == dict.fromkeys(("tools", "events", "skills"), "name")
