"""LOG-2: what a turn costs does not grow with the log; counted, never timed."""

import sys
from collections.abc import Callable
from functools import cache, partial

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance
from psych_runtime.testing import LogBuilder
from psych_schema.record import TurnStarted
from psych_schema.store import RecordRow
from tests.unit.core.logs import claimed

EARLY, LATE = 2, 2000


@cache
def long_log() -> LogBuilder:
    """Return a log of 2,000 turns, of which the early and the late one have a call."""
    log = claimed()
    log.offer("look")
    for turn in range(1, LATE + 1):
        for call in log.turn(calls=["look"] if turn in (EARLY, LATE) else []):
            log.start(call)
            log.finish(call)
    return log


def place(turn: int) -> slice:
    """Return where the records of a turn with a call stand."""
    first = next(
        number
        for number, entry in enumerate(long_log().entries)
        if isinstance(entry.record, TurnStarted) and entry.record.turn == turn
    )
    return slice(first, first + 5)


def size_of(turn: int) -> int:
    """Return the bytes of a turn less the digits of positions and turns."""
    size = 0
    for row in long_log().rows[place(turn)]:
        number = f'"turn":{turn},'
        size += len(row.body) + len(row.content or "") - len(str(row.seq))
        size -= len(number) * (number in row.body)
    return size


def test_log_2_the_bytes_of_a_turn_are_constant() -> None:
    """Turn 2 and turn 2,000 differ in the digits of seq and turn only."""
    rows = long_log().rows
    kinds = ["turn.started", "model.started", "model.completed", "tool.started", "tool.completed"]
    assert [row.type for row in rows[place(EARLY)]] == kinds
    assert [row.type for row in rows[place(LATE)]] == kinds
    assert size_of(EARLY) == size_of(LATE)
    assert 1000 < size_of(EARLY) < 4000


def counted(work: Callable[[], object]) -> int:
    """Return how many functions are called and returned from during `work`."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_log_2_folding_a_turn_costs_the_same_at_the_end_of_a_long_log() -> None:
    """The same calls for decoding, folding and saying the records of turn 2 and of turn 2,000."""
    log = long_log()
    state, conversation = RunState(), Conversation()

    def read(rows: list[RecordRow]) -> None:
        for row in rows:
            entry = decode_anew(row)
            advance(state, entry)
            conversation.add(entry.record)

    read(log.rows[: place(EARLY).start])
    early = counted(partial(read, log.rows[place(EARLY)]))
    for entry in log.entries[place(EARLY).stop : place(LATE).start]:
        advance(state, entry)
        conversation.add(entry.record)
    late = counted(partial(read, log.rows[place(LATE)]))

    assert state == log.state
    assert conversation.messages == log.conversation.messages
    assert early == late > 100


def test_log_2_trying_a_decision_costs_the_same_at_the_end_of_a_long_log() -> None:
    """An overlay copies what is open, not what there was."""
    early, late = claimed(), long_log()
    assert counted(early.state.overlay) == counted(late.state.overlay)
    assert sum(map(len, late.state.overlay().live.values())) == 1


def test_log_2_the_fold_keeps_no_list_of_what_is_over() -> None:
    """What is closed is not among the live objects, which guards go over."""
    state = long_log().state
    assert {key: len(ids) for key, ids in state.live.items() if ids} == {("run", "running"): 1}
    assert len(state.objects) > 2 * LATE
    assert len(long_log().rows) > 6000
