"""LogBuilder: what it writes is legal, deterministic, and what a store takes."""

import pytest

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.fold import fold
from psych_runtime.errors import CorruptLog
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.record import TasksUpdated, ToolProgress
from tests.unit.core.logs import asked, claimed, two_turns, whole_log


def test_log_1_a_built_log_is_what_a_run_writes() -> None:
    """Two turns and a tool, from short calls."""
    log = two_turns()
    assert [row.type for row in log.rows] == [
        "run.admitted",
        "attempt.started",
        "turn.started",
        "tools.offered",
        "model.started",
        "model.completed",
        "tool.started",
        "tool.completed",
        "turn.started",
        "model.started",
        "model.completed",
        "run.settled",
    ]
    assert fold(map(decode_anew, log.rows)) == log.state
    assert log.header.state == "settled"


def test_log_1_an_illegal_record_is_not_written() -> None:
    """It raises, and the log goes on as if nothing had been tried."""
    log, [call] = asked()
    rows, header = list(log.rows), log.header
    with pytest.raises(CorruptLog, match="call_is_asked"):
        log.finish(call)
    assert (log.rows, log.header) == (rows, header)
    log.start(call)
    log.finish(call)


def test_log_1_nothing_is_there_before_the_admission() -> None:
    """A header comes with the first record."""
    log = LogBuilder()
    with pytest.raises(ValueError, match="admit"):
        _ = log.header
    assert log.units() == []
    with pytest.raises(CorruptLog, match="run_is_none"):
        log.write(TasksUpdated, tasks=[])


def test_log_1_the_same_calls_give_the_same_bytes() -> None:
    """Ids, instants and salts count; another first id is another Run."""
    assert whole_log().rows == whole_log().rows
    other = LogBuilder(system=CountingSystem(first_id=1000))
    assert other.run_id != LogBuilder().run_id


def test_log_1_drafts_are_added_as_they_are() -> None:
    """What comes back has its place; the draft has none."""
    log, [call] = asked()
    log.start(call)
    draft = log.draft(ToolProgress, call_id=call, progress=0.5)
    record = log.add(draft)
    assert (draft.seq, draft.epoch, record.seq, record.epoch) == (0, 0, len(log.rows), 1)
    assert record == log.entries[-1].record


async def test_r_1_a_built_log_can_be_committed() -> None:
    """In units as small or large as wanted; the store's header is the builder's."""
    for records_per_unit, units in [(1, 60), (90, 15)]:
        log = LogBuilder(records_per_unit=records_per_unit)
        for entry in whole_log().entries:
            log.add(entry.record.model_copy(update={"seq": 0, "epoch": 0, "prev": None}))
        store = MemoryStore(CountingSystem())
        await log.commit_to(store)
        assert await store.read("acme", log.run_id) == log.rows
        assert (await store.header("acme", log.run_id)).head == 60
        assert len(log.units()) == units


async def test_r_1_two_built_logs_share_a_store() -> None:
    """Each from a System of its own, or one after the other from the same."""
    system = CountingSystem()
    store = MemoryStore(system)
    for tenant in ("acme", "globex"):
        log = claimed(LogBuilder(tenant=tenant, system=system))
        await log.commit_to(store)
        assert (await store.header(tenant, log.run_id)).state == "running"


async def test_r_1_a_log_that_is_there_already_is_not_taken_again() -> None:
    """The store knows the Run."""
    store = MemoryStore(CountingSystem())
    log = claimed()
    await log.commit_to(store)
    with pytest.raises(ValueError, match="SeqConflict"):
        await log.commit_to(store)
