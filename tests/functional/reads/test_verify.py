"""`verify`: a log that somebody changed is found, and a head hash proves what it was (LOG-6, R-11).

What no store would do is done to a SQLite file by hand.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from psych_runtime import (
    InvalidArgument,
    RunNotFound,
    Runtime,
    ToolRegistry,
    VerificationView,
    Worker,
    dispatch,
    publish,
    report,
    verify,
    wait,
)
from psych_runtime.core.codec import seal, sha256
from psych_runtime.core.rebuild import rebuild
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Sealed, Store, Unit
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from psych_runtime.testing import CountingSystem, FakeModel, LogBuilder
from psych_runtime.views.verification import MAX_PROBLEMS
from psych_schema.base import format_instant
from psych_schema.common import Scope
from psych_schema.model import TextPart, UserMessage
from psych_schema.record import ContextCompacted, ModelDelta
from psych_schema.spec import AgentSpec, CodeTool, ModelRef
from psych_schema.store import RecordRow, RunRow
from tests.functional.reads.logs import ACME, OTHER, append, commit, lived, mark_corrupt
from tests.stores.opening import EVERYWHERE
from tests.unit.core.logs import whole_log

UNKNOWN_HEAD: Final = "a" * 64
LAST: Final = 14
"""Seq of the last record of `lived()`."""


class File:
    """A SQLite file that is open as a store, and can be written by hand."""

    def __init__(self, store: Store, path: Path) -> None:
        self.store = store
        self._path = path

    def change(self, statement: str, *values: object) -> None:
        """Change one row."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            assert connection.execute(statement, values).rowcount == 1

    def run(self, *statements: str) -> None:
        """Do what changes any number of rows."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[File]:
    """An empty, migrated SQLite store."""
    path = tmp_path / "runs.db"
    async with open_store(f"sqlite:///{path}") as store:
        await store.migrate()
        yield File(store, path)


async def look(file: File, log: LogBuilder, head: str | None = None) -> VerificationView:
    return await verify(file.store, log.run_id, scope=ACME, expected_head=head)


def found(view: VerificationView) -> list[tuple[str, int | None]]:
    """Return the problems of a log and where they are."""
    return [(one.code, one.seq) for one in view.problems if one.column is None]


def columns(view: VerificationView) -> list[str]:
    return [one.column for one in view.problems if one.column is not None]


@EVERYWHERE
async def test_log_6_a_log_as_it_was_written_is_consistent(store: Store) -> None:
    """In every store; the verdict in full."""
    log = lived()
    await log.commit_to(store)

    assert await verify(store, log.run_id, scope=ACME) == VerificationView(
        run_id=log.run_id,
        records=len(log.rows),
        head_hash=log.header.head_hash,
        consistent=True,
        expected_head=None,
        expected_seq=None,
        proven=None,
        problems=(),
    )


@EVERYWHERE
async def test_log_6_a_log_of_every_record_type_is_consistent(store: Store) -> None:
    """Whatever form its rows are kept in, in every store."""
    log = whole_log()
    await log.put_texts(store)
    units = log.units()
    assert await store.commit(units) == [Committed()] * len(units)
    view = await verify(store, log.run_id, scope=ACME, expected_head=log.header.head_hash)
    assert (view.problems, view.records, view.proven) == ((), len(log.rows), True)


async def test_log_6_a_log_that_grows_is_consistent(store: Store) -> None:
    """A Run under way has a head like any other."""
    log = whole_log()
    await log.put_texts(store)
    for unit in log.units():
        await commit(store, unit)
        view = await verify(store, log.run_id, scope=ACME)
        assert view.problems == ()
        assert view.records == unit.changes[-1].records[-1].row.seq


async def test_log_6_a_long_log_is_read_in_pages(store: Store) -> None:
    """More than one page, and exactly two."""
    log = LogBuilder(system=CountingSystem(), records_per_unit=90)
    log.admit()
    log.claim()
    for _ in range(332):
        log.turn()
    while len(log.rows) < 1000:
        log.begin_turn()
        log.answer(log.ask())
        log.send()
    await log.commit_to(store)
    view = await verify(store, log.run_id, scope=ACME, expected_head=log.entries[600].hash)
    assert (view.consistent, view.records) == (True, len(log.rows))
    assert (view.proven, view.expected_seq) == (True, 601)


@pytest.mark.parametrize("seq", [1, 6, 14])
async def test_r_11_a_head_that_was_kept_proves_the_log_up_to_it(store: Store, seq: int) -> None:
    """The first record, one in the middle, the last one."""
    log = lived()
    await log.commit_to(store)
    view = await verify(store, log.run_id, scope=ACME, expected_head=log.entries[seq - 1].hash)
    assert (view.consistent, view.proven, view.expected_seq) == (True, True, seq)


@EVERYWHERE
async def test_r_11_the_head_of_a_report_is_proven_when_the_run_has_gone_on(store: Store) -> None:
    """What was kept early still holds."""
    log = lived()
    *early, last = log.units()
    for unit in early:
        await commit(store, unit)
    kept = (await report(store, log.run_id, scope=ACME)).head_hash
    await commit(store, last)
    view = await verify(store, log.run_id, scope=ACME, expected_head=kept)
    assert (view.proven, view.expected_seq) == (True, len(log.rows) - 1)


async def test_r_11_a_head_that_the_log_does_not_have_is_refuted(store: Store) -> None:
    """Another Run's head, too: the log itself is consistent all the same."""
    log, other = lived(), lived(first_id=900)
    await log.commit_to(store)
    await other.commit_to(store)
    for head in (UNKNOWN_HEAD, other.header.head_hash):
        view = await verify(store, log.run_id, scope=ACME, expected_head=head)
        assert (view.consistent, view.proven, view.expected_seq) == (True, False, None)
        assert view.expected_head == head


@pytest.mark.parametrize("head", ["", "abc", "A" * 64, "a" * 63, "a" * 65, "g" * 64, 5, b"a" * 64])
async def test_r_11_what_is_no_hash_is_refused(store: Store, head: object) -> None:
    """Before the store is asked."""
    log = lived()
    await log.commit_to(store)
    untyped: Callable[..., Awaitable[object]] = verify
    with pytest.raises(InvalidArgument) as caught:
        await untyped(store, log.run_id, scope=ACME, expected_head=head)
    assert caught.value.what == "expected_head"


async def test_ten_1_another_tenants_run_is_not_found(store: Store) -> None:
    """As one that is nowhere."""
    log = lived()
    await log.commit_to(store)
    for run_id, scope in ((log.run_id, OTHER), ("run_x", ACME)):
        with pytest.raises(RunNotFound):
            await verify(store, run_id, scope=scope)


def saying(body: str, **fields: object) -> str:
    """Return a body that says something else, and is a record as good as any."""
    return json.dumps(json.loads(body) | fields, separators=(",", ":"))


def behind(log: LogBuilder, **fields: object) -> str:
    """Return the body of another claim, in the right place behind the log."""
    head = log.header
    place = {"seq": head.head + 1, "prev": head.head_hash, "at": format_instant(head.head_at)}
    return saying(log.rows[1].body, epoch=head.epoch + 1, **place, **fields)


@pytest.mark.parametrize("seq", [1, 4, 12])
async def test_log_6_an_altered_body_is_found_at_the_record_behind_it(file: File, seq: int) -> None:
    """The body is a legal record still: only the chain tells."""
    log = lived()
    await log.commit_to(file.store)
    body = saying(log.rows[seq - 1].body, id="rec_" + "z" * 26)
    file.change("UPDATE record SET body = ? WHERE seq = ?", body, seq)

    view = await look(file, log, log.header.head_hash)
    assert found(view) == [("prev_does_not_fit", seq + 1)]
    assert (view.consistent, view.proven, view.expected_seq) == (False, False, LAST)
    before = await look(file, log, log.entries[seq - 1].hash)
    assert (before.proven, before.expected_seq) == (False, None)


async def test_log_6_what_is_before_an_altered_body_is_proven(file: File) -> None:
    """The neighbour: a head in front of the change."""
    log = lived()
    await log.commit_to(file.store)
    body = saying(log.rows[8].body, id="rec_" + "z" * 26)
    file.change("UPDATE record SET body = ? WHERE seq = 9", body)
    view = await look(file, log, log.entries[7].hash)
    assert (view.consistent, view.proven, view.expected_seq) == (False, True, 8)


async def test_log_6_an_altered_last_body_is_found_by_the_header(file: File) -> None:
    """No record is behind it; the header has its hash, and who kept it has, too."""
    log = lived()
    await log.commit_to(file.store)
    body = saying(log.rows[13].body, id="rec_" + "z" * 26)
    file.change("UPDATE record SET body = ? WHERE seq = 14", body)

    view = await look(file, log, log.header.head_hash)
    assert columns(view) == ["head_hash"]
    assert (view.consistent, view.proven) == (False, False)
    assert view.head_hash == sha256(body)


async def test_log_6_an_altered_prev_is_found_at_its_record(file: File) -> None:
    """And at the one behind it, which names the body as it was."""
    log = lived()
    await log.commit_to(file.store)
    body = saying(log.rows[4].body, prev="d" * 64)
    file.change("UPDATE record SET body = ? WHERE seq = 5", body)
    view = await look(file, log)
    assert found(view) == [("prev_does_not_fit", 5), ("prev_does_not_fit", 6)]


@pytest.mark.parametrize("column", ["content", "salt"])
async def test_log_6_an_altered_content_is_found_at_its_record(file: File, column: str) -> None:
    """The words or their salt; the rest of the log is judged as if they were erased."""
    log = lived()
    await log.commit_to(file.store)
    seq = next(row.seq for row in log.rows if row.type == "model.completed")
    value = json.dumps({"parts": [], "calls": []}) if column == "content" else "0" * 32
    file.change(f"UPDATE record SET {column} = ? WHERE seq = ?", value, seq)

    view = await look(file, log, log.header.head_hash)
    assert found(view) == [("content_does_not_fit", seq)]
    assert columns(view) == []
    assert (view.proven, view.expected_seq) == (False, LAST)


async def test_log_6_a_content_that_is_no_json_is_found_as_content(file: File) -> None:
    """The body is well; so is what its record says of the Run."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE record SET content = ? WHERE seq = 1", '"hi", "priority": 9')
    view = await look(file, log)
    assert found(view) == [("content_does_not_fit", 1)]
    assert columns(view) == []


@pytest.mark.parametrize("body", ["", "no record", "[]", "{}", '{"v":1}', "\x00"])
async def test_log_6_a_body_that_is_no_record_is_found(file: File, body: str) -> None:
    """What is behind it is read on, and stands on something else than it says."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE record SET body = ? WHERE seq = 7", body)
    view = await look(file, log)
    assert found(view) == [("unreadable", 7), ("prev_does_not_fit", 8)]
    assert view.records == LAST


async def test_log_6_a_missing_record_is_found(file: File) -> None:
    """At the one behind the gap."""
    log = lived()
    await log.commit_to(file.store)
    file.change("DELETE FROM record WHERE seq = 6")
    view = await look(file, log, log.header.head_hash)
    assert found(view) == [("seq_not_next", 7)]
    assert (view.records, view.proven) == (13, False)


async def test_log_6_a_missing_first_record_is_found(file: File) -> None:
    """The log begins in the middle."""
    log = lived()
    await log.commit_to(file.store)
    file.change("DELETE FROM record WHERE seq = 1")
    assert found(await look(file, log)) == [("seq_not_next", 2)]


async def test_log_6_swapped_rows_are_found(file: File) -> None:
    """Each is at the other's place, and the one behind them sees it."""
    log = lived()
    await log.commit_to(file.store)
    file.run(
        "UPDATE record SET seq = -1 WHERE seq = 8",
        "UPDATE record SET seq = 8 WHERE seq = 9",
        "UPDATE record SET seq = 9 WHERE seq = -1",
    )
    view = await look(file, log)
    assert found(view) == [("row_differs", 8), ("row_differs", 9), ("prev_does_not_fit", 10)]


@pytest.mark.parametrize(("column", "value"), [("type", "turn.started"), ("tenant", "globex")])
async def test_log_6_a_row_that_names_another_record_is_found(
    file: File, column: str, value: str
) -> None:
    """What stands beside the body is a copy of what is in it."""
    log = lived()
    await log.commit_to(file.store)
    file.change(f"UPDATE record SET {column} = ? WHERE seq = 2", value)
    assert found(await look(file, log)) == [("row_differs", 2)]


async def test_log_6_a_record_that_was_added_is_found(file: File) -> None:
    """One behind the header's head: no commit wrote it."""
    log = lived()
    *early, _ = log.units()
    await log.put_texts(file.store)
    for unit in early:
        await commit(file.store, unit)
    last = log.rows[-1]
    file.change(
        "INSERT INTO record (run_id, seq, tenant, type, body, content, salt) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        *(last.run_id, last.seq, last.tenant, last.type, last.body, last.content, last.salt),
    )
    view = await look(file, log)
    assert found(view) == []
    assert columns(view)[:4] == ["state", "head", "head_hash", "head_at"]


async def test_log_6_a_log_that_was_cut_off_is_found_by_its_header(file: File) -> None:
    """As long as nobody cuts that, too."""
    log = lived()
    await log.commit_to(file.store)
    file.change("DELETE FROM record WHERE seq = 14")
    view = await look(file, log)
    assert found(view) == []
    head = next(one for one in view.problems if one.column == "head")
    assert (head.code, head.found, head.wanted) == ("header_differs", "14", "13")


async def cut(file: File, log: LogBuilder, length: int) -> None:
    """Cut a log off, and make its header fit: what somebody with the database can do."""
    entries = log.entries[:length]
    file.run(f"DELETE FROM record WHERE seq > {length}")
    header = RunRow.model_validate(
        {
            name: value
            for name, value in rebuild(entries).items()
            if name in RunRow.model_fields and not isinstance(value, dict)
        }
    )
    for column in ("state", "head", "head_hash", "worker", "epoch", "crashes", "abort"):
        file.change(f"UPDATE run SET {column} = ?", getattr(header, column))
    file.change("UPDATE run SET head_at = ?", format_instant(header.head_at))


async def test_r_11_a_log_that_was_cut_off_with_its_header_needs_the_head_that_was_kept(
    file: File,
) -> None:
    """Consistent by itself; refuted by whoever has the hash of what is gone."""
    log = lived()
    await log.commit_to(file.store)
    await cut(file, log, 9)

    assert (await look(file, log)).consistent
    gone = await look(file, log, log.header.head_hash)
    assert (gone.consistent, gone.proven, gone.expected_seq) == (True, False, None)
    there = await look(file, log, log.entries[8].hash)
    assert (there.consistent, there.proven, there.expected_seq) == (True, True, 9)


async def test_r_11_a_log_that_was_written_anew_needs_the_head_that_was_kept(file: File) -> None:
    """Another history with the same id, chain and header and all."""
    log = lived()
    forged = LogBuilder(system=CountingSystem())
    forged.admit("something else")
    forged.claim()
    forged.turn()
    forged.settle()
    assert forged.run_id == log.run_id
    await forged.commit_to(file.store)

    assert (await look(file, log)).consistent
    view = await look(file, log, log.header.head_hash)
    assert (view.consistent, view.proven) == (True, False)


async def test_r_11_an_erased_log_is_consistent_and_proven(file: File) -> None:
    """Contents and salts are gone; a head from before the erasure holds."""
    log = lived()
    log.erase()
    await log.commit_to(file.store)
    file.run("UPDATE record SET content = NULL, salt = NULL")

    view = await look(file, log, log.entries[13].hash)
    assert (view.consistent, view.proven, view.expected_seq) == (True, True, LAST)
    assert view.records == LAST + 1
    assert view.erased == sum(row.content is not None for row in log.rows)
    assert view.erased > 0


async def test_r_11_a_log_that_is_erased_in_part_is_consistent(file: File) -> None:
    """An erasure under way, or a purge of deltas: content and salt of one record."""
    log = whole_log()
    await log.commit_to(file.store)
    for seq in (1, 20):
        file.change("UPDATE record SET content = NULL, salt = NULL WHERE seq = ?", seq)
        assert (await look(file, log)).problems == ()


async def test_r_11_words_that_were_put_back_after_an_erasure_are_found(file: File) -> None:
    """The digest stays when the words go."""
    log = lived()
    log.erase()
    await log.commit_to(file.store)
    file.run("UPDATE record SET content = NULL, salt = NULL")
    file.change("UPDATE record SET content = ?, salt = ? WHERE seq = 1", '"other"', "0" * 32)
    assert found(await look(file, log)) == [("content_does_not_fit", 1)]


async def test_log_3_an_illegal_record_is_found_with_its_reason(store: Store) -> None:
    """Committed by some build that should not have: the chain holds, the protocol does not."""
    log = lived()
    await log.commit_to(store)
    body = behind(log, v=1)
    await append(store, log, type="attempt.started", body=body)

    view = await verify(store, log.run_id, scope=ACME, expected_head=sha256(body))
    assert found(view) == [("run_is_settled", 15)]
    assert (view.consistent, view.proven, view.expected_seq) == (False, True, 15)


async def test_log_3_a_conversation_that_nobody_can_build_is_found(store: Store) -> None:
    """A compaction up to a record that is none: the fold alone lets it pass."""
    log = LogBuilder(system=CountingSystem())
    log.admit()
    log.claim()
    log.turn()
    call = log.ask(purpose="compaction")
    log.answer(call, text="so far")
    await log.commit_to(store)
    unknown = "rec_" + "6" * 26
    summary = UserMessage(parts=(TextPart(text="so far"),))
    draft = log.draft(ContextCompacted, upto=unknown, summary=summary, call=call, reason="asked")
    place = log.state.position
    sealed = seal([draft], place, tenant="acme", epoch=1, commit_id="com_x", salts=["5" * 32])
    change = Change(log.run_id, place.seq, 1, tuple(sealed), HeaderChange())
    await commit(store, Unit("com_x", "acme", (change,)))

    view = await verify(store, log.run_id, scope=ACME)
    assert found(view) == [("upto_unknown", place.seq + 1)]


@EVERYWHERE
async def test_r_16_a_newer_record_is_no_corruption_and_its_chain_is_proven(store: Store) -> None:
    """What this build cannot read it can hash; the verdict names the version that it needs."""
    log = lived()
    await log.commit_to(store)
    body = behind(log, v=2, type="mind.changed")
    await append(store, log, type="mind.changed", body=body, version=2)

    view = await verify(store, log.run_id, scope=ACME, expected_head=sha256(body))
    assert found(view) == [("newer_record", 15)]
    assert "needs schema version 2; upgrade psych-runtime" in view.problems[0].message
    assert columns(view) == []
    assert (view.consistent, view.proven, view.expected_seq) == (False, True, 15)


async def test_r_16_nothing_is_said_of_what_follows_a_form_of_a_newer_build(store: Store) -> None:
    """Its row does not tell its hash: the chain is proven up to the record before."""
    log = lived()
    await log.commit_to(store)
    body = behind(log, v=2, type="mind.changed")
    hidden = "B261129200001000000?" + body
    await append(store, log, type="mind.changed", body=hidden, version=2)
    after = RecordRow(run_id=log.run_id, seq=16, tenant=log.tenant, type="run.erased", body=body)
    record = log.entries[-1].record
    change = Change(log.run_id, 15, None, (Sealed(after, record, "b" * 64),), HeaderChange())
    await commit(store, Unit(log.system.new_id("com"), log.tenant, (change,)))

    view = await verify(store, log.run_id, scope=ACME, expected_head=log.entries[-1].hash)
    assert found(view) == [("newer_record", 15)]
    assert columns(view) == []
    assert (view.consistent, view.proven, view.expected_seq) == (False, True, 14)
    assert view.head_hash == log.entries[-1].hash


async def test_log_3_a_run_that_is_called_corrupt_and_is_not_is_found(store: Store) -> None:
    """No record explains the state: the log does not bear it out."""
    log = lived()
    await log.commit_to(store)
    await mark_corrupt(store, log)
    [problem] = (await verify(store, log.run_id, scope=ACME)).problems
    assert (problem.code, problem.column) == ("marked_corrupt", "state")
    assert (problem.found, problem.wanted) == ("corrupt", "settled")


async def test_log_3_a_run_that_is_rightly_called_corrupt_has_one_problem(store: Store) -> None:
    """That of its log."""
    log = lived()
    await log.commit_to(store)
    await append(store, log, type="turn.started", body="no record")
    await mark_corrupt(store, log)
    view = await verify(store, log.run_id, scope=ACME)
    assert found(view) == [("unreadable", 15)]
    assert columns(view) == []


async def test_log_6_after_a_hundred_problems_nobody_looks_further(file: File) -> None:
    """A log in pieces is one, however long it is."""
    log = LogBuilder(system=CountingSystem(), records_per_unit=90)
    log.admit()
    log.claim()
    for _ in range(500):
        log.turn()
    await log.commit_to(file.store)
    file.run("UPDATE record SET body = 'gone'")
    view = await look(file, log, log.header.head_hash)
    assert len(view.problems) >= MAX_PROBLEMS
    assert view.records < len(log.rows)
    assert (view.consistent, view.proven) == (False, False)


class GrowingStore(MemoryStore):
    """Lets a Run go on behind the back of each reader."""

    def __init__(self, log: LogBuilder) -> None:
        super().__init__()
        self._units = log.units()

    async def grow(self) -> None:
        """Commit the next unit, if there is one."""
        if self._units:
            await commit(self, self._units.pop(0))

    async def header(self, tenant: str, run_id: str) -> RunRow:
        await self.grow()
        return await super().header(tenant, run_id)


async def test_log_6_a_run_that_goes_on_meanwhile_is_consistent() -> None:
    """The header is compared with the log as long as it was then."""
    log = lived()
    store = GrowingStore(log)
    await log.put_texts(store)
    await store.grow()
    view = await verify(store, log.run_id, scope=Scope(tenant="acme"))
    assert (view.consistent, view.records) == (True, LAST)


NAMED: Final = (
    ("version", "version", 1),
    ("document", "system prompt", 4),
    ("document", "look", 4),
)
"""What `lived()` names: which table, which text, at which seq."""


@pytest.mark.parametrize(("table", "text", "seq"), NAMED)
async def test_log_6_a_text_that_the_log_names_and_is_gone_is_found(
    file: File, table: str, text: str, seq: int
) -> None:
    """The Version, the system prompt, a tool's definition: at the record that names it first."""
    log = lived()
    await log.commit_to(file.store)
    file.change(f"DELETE FROM {table} WHERE hash = ?", sha256(text))
    view = await look(file, log)
    assert found(view) == [(f"{table}_missing", seq)]
    assert (
        view.problems[0].message == f"the {table} {sha256(text)} that it names is not in the store"
    )
    assert (view.consistent, columns(view)) == (False, [])


@pytest.mark.parametrize(("table", "text", "seq"), NAMED)
async def test_log_6_a_text_that_the_log_names_and_was_changed_is_found(
    file: File, table: str, text: str, seq: int
) -> None:
    """The hash is that of the text as it was published."""
    log = lived()
    await log.commit_to(file.store)
    column = "document" if table == "version" else "text"
    file.change(f"UPDATE {table} SET {column} = ? WHERE hash = ?", "{}", sha256(text))
    view = await look(file, log)
    assert found(view) == [(f"{table}_differs", seq)]
    assert not view.consistent


async def test_log_6_texts_of_another_tenant_are_not_this_ones(store: Store) -> None:
    """Each tenant has its own."""
    log = lived()
    for unit in log.units():
        await commit(store, unit)
    await store.put_version("globex", sha256("version"), "version")
    codes = found(await verify(store, log.run_id, scope=ACME))
    assert codes == [("version_missing", 1), ("document_missing", 4), ("document_missing", 4)]


class AskedStore(MemoryStore):
    """Counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def version(self, tenant: str, hash: str) -> str | None:
        self.asked.append(hash)
        return await super().version(tenant, hash)

    async def document(self, tenant: str, hash: str) -> str | None:
        self.asked.append(hash)
        return await super().document(tenant, hash)


async def test_log_6_each_text_is_read_once_for_a_run() -> None:
    """However often the log names it."""
    log = LogBuilder(system=CountingSystem())
    log.admit()
    log.claim()
    log.turn()
    for names in (["look"], ["charge", "look"], ["charge"]):
        log.offer(*names)
        log.turn()
    store = AskedStore()
    await log.commit_to(store)
    assert (await verify(store, log.run_id, scope=ACME)).consistent
    texts = ("version", "system prompt", "look", "charge")
    assert sorted(store.asked) == sorted(map(sha256, texts))


async def test_log_6_a_header_that_cannot_be_read_is_a_problem_and_its_log_is_judged(
    file: File,
) -> None:
    """What is wrong with the log is found, too; a head is proven."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE run SET head_at = ?", "junk")
    view = await look(file, log, log.header.head_hash)
    assert found(view) == [("corrupt_row", None)]
    assert (view.records, view.consistent, view.proven) == (LAST, False, True)
    file.change("UPDATE record SET content = ? WHERE seq = 1", '"other"')
    assert found(await look(file, log)) == [("content_does_not_fit", 1), ("corrupt_row", None)]


async def test_log_6_a_row_that_cannot_be_read_is_a_problem_and_the_next_ones_are_judged(
    file: File,
) -> None:
    """Its salt is longer than any: the store cannot give it."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE record SET salt = ? WHERE seq = 6", "0" * 33)
    file.change("UPDATE record SET content = ? WHERE seq = 8", '"other"')
    view = await look(file, log)
    assert found(view)[0] == ("corrupt_row", 6)
    assert ("content_does_not_fit", 8) in found(view)
    assert f"the row {log.run_id} 6 of table record cannot be read" in view.problems[0].message
    assert view.records == LAST - 1


async def test_r_11_a_content_that_is_gone_without_a_record_of_it_is_found(file: File) -> None:
    """An erasure says so first; whoever only deletes words does not."""
    log = lived()
    await log.commit_to(file.store)
    file.run("UPDATE record SET content = NULL, salt = NULL")
    view = await look(file, log)
    first = next(row.seq for row in log.rows if row.content is not None)
    assert found(view) == [("erased_without_record", first)]
    assert view.erased == sum(row.content is not None for row in log.rows)
    assert view.problems[0].message.startswith(f"{view.erased} contents are gone from here on")


async def test_r_10_deltas_may_go_without_an_erasure(file: File) -> None:
    """A purge takes them; they are counted."""
    log = LogBuilder(system=CountingSystem())
    log.admit()
    log.claim()
    log.begin_turn()
    call = log.ask()
    log.write(ModelDelta, call=call, channel="text", text="It")
    log.answer(call)
    await log.commit_to(file.store)
    file.change("UPDATE record SET content = NULL, salt = NULL WHERE type = 'model.delta'")
    view = await look(file, log)
    assert (view.problems, view.erased) == ((), 1)


async def test_r_11_a_salt_without_its_content_is_found(file: File) -> None:
    """An erasure takes both: with the salt, words can be guessed."""
    log = lived()
    log.erase()
    await log.commit_to(file.store)
    seq = next(row.seq for row in log.rows if row.type == "model.completed")
    file.change("UPDATE record SET content = NULL WHERE seq = ?", seq)
    assert found(await look(file, log)) == [("salt_without_content", seq)]


async def test_r_11_a_salt_of_a_record_that_never_had_a_content_is_found(file: File) -> None:
    """Nobody writes one."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE record SET salt = ? WHERE seq = 2", "0" * 32)
    assert found(await look(file, log)) == [("salt_without_content", 2)]


async def test_r_11_a_content_whose_salt_is_gone_is_found(file: File) -> None:
    """Its digest cannot be computed any more."""
    log = lived()
    await log.commit_to(file.store)
    file.change("UPDATE record SET salt = NULL WHERE seq = 1")
    assert found(await look(file, log)) == [("content_does_not_fit", 1)]


async def test_r_11_a_content_that_was_written_without_a_salt_is_found(file: File) -> None:
    """Its digest fits: that somebody writes logs who is none of our builds."""
    log = lived()
    last = log.units()[-1].changes[-1].records[-1]
    await log.commit_to(file.store)
    content = last.row.content or '"forged"'
    body = saying(last.row.body, content_digest=sha256(content))
    file.change(
        "UPDATE record SET body = ?, content = ?, salt = NULL WHERE seq = ?", body, content, LAST
    )
    assert ("content_without_salt", LAST) in found(await look(file, log))


@EVERYWHERE
async def test_log_6_what_a_worker_has_done_is_consistent_with_all_texts_that_it_names(
    store: Store,
) -> None:
    """The Version was published and the documents were stored by who names them."""
    registry = ToolRegistry()

    @registry.register(annotations={"read-only"})
    async def look() -> str:
        """Look."""
        return "42"

    model = FakeModel()
    model.turn(tool_calls=[("look", {})])
    model.turn(text="It is 42.")
    spec = AgentSpec(
        name="looker",
        instructions="Look.",
        model=ModelRef(model="any"),
        tools=(CodeTool(name="look"),),
    )
    version = await publish(store, spec, scope=ACME, check=registry)
    run = await dispatch(store, version, scope=ACME, input="What is it?")
    worker = Worker(Runtime(store=store, model=model, registry=registry))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await wait(store, run.run_id, scope=ACME)
        worker.stop()
    view = await verify(store, run.run_id, scope=ACME)
    assert (view.problems, view.consistent, view.erased) == ((), True, 0)


@pytest.mark.parametrize(
    ("table", "column", "code"),
    [
        ("record", "body", ("corrupt_row", 6)),
        ("run", "thread", ("corrupt_row", None)),
        ("version", "document", ("version_differs", 1)),
        ("document", "text", ("document_differs", 4)),
    ],
)
async def test_log_6_a_text_that_is_no_unicode_is_found(
    file: File, table: str, column: str, code: tuple[str, int | None]
) -> None:
    """SQLite cannot give it."""
    log = lived()
    await log.commit_to(file.store)
    where = " WHERE seq = 6" if table == "record" else ""
    file.run(f"UPDATE {table} SET {column} = CAST(x'ff' AS TEXT){where}")
    assert code in found(await look(file, log))
