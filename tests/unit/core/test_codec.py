"""Rows and records: what is stored is what was written, and what others wrote is told apart."""

import json

import pytest
from pydantic_core import from_json

from psych_runtime.core.codec import (
    SCHEMA_VERSION,
    Outline,
    Position,
    content_fits,
    decode_anew,
    is_erased,
    outline,
    outline_commit,
    parse_record,
    record_text,
    seal,
    sha256,
)
from psych_runtime.core.fold import fold
from psych_runtime.errors import CorruptLog, InvalidPayload, NewerRecord
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.record import RunAdmitted, TasksUpdated
from psych_schema.store import RecordRow
from psych_schema.transitions import TRANSITIONS
from psych_schema.types import RECORD_TYPES
from tests.unit.core.drafts import draft
from tests.unit.core.logs import erased, forged, whole_log


def row_of(log: LogBuilder, kind: str) -> RecordRow:
    """Return the first row of this type."""
    return next(row for row in log.rows if row.type == kind)


def with_content(row: RecordRow, content: str) -> RecordRow:
    """Return the row with another content beside the same body."""
    return row.model_copy(update={"content": content})


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_r_11_a_sealed_record_is_what_reading_it_back_gives(kind: str) -> None:
    """Not a bit more or less, for every type; a writer never has to read."""
    system = CountingSystem()
    head = Position(7, "a" * 64, system.now())
    [sealed] = seal(
        [draft(LogBuilder(system=system), kind)],
        head,
        tenant="acme",
        epoch=3,
        commit_id=system.new_id("com"),
        salts=[system.salt()],
    )
    entry = decode_anew(sealed.row)
    assert entry.record == sealed.record
    assert type(entry.record) is RECORD_TYPES[kind]
    assert entry.hash == sealed.hash == sha256(sealed.row.body)
    assert (entry.record.seq, entry.record.prev, entry.record.epoch) == (8, "a" * 64, 3)
    assert (sealed.row.content is None) == (entry.record.content_digest is None)
    assert (sealed.row.salt is None) == (sealed.row.content is None)


def test_r_11_rows_decode_to_what_was_written_and_their_contents_fit() -> None:
    """A whole log: every record, every digest."""
    log = whole_log()
    for row, entry in zip(log.rows, log.entries, strict=True):
        assert decode_anew(row) == entry
        assert content_fits(row)
        assert json.loads(row.body)["seq"] == row.seq
        assert not is_erased(entry.record)


def test_r_11_a_row_is_written_like_this() -> None:
    """Envelope first, then the type's own fields, nothing that is null, the content beside it."""
    log = LogBuilder()
    log.admit()
    log.claim()
    log.write(TasksUpdated, tasks={"a": None})
    row = log.rows[-1]
    digest = sha256(f"{row.salt}{row.content}")
    assert row.body == (
        '{"v":1,"run_id":"run_00000000000000000000000001","seq":3,'
        '"at":"2026-11-29T20:00:00.003000Z","type":"tasks.updated",'
        '"id":"rec_00000000000000000000000007","commit":"com_00000000000000000000000008",'
        f'"epoch":1,"prev":"{sha256(log.rows[1].body)}","content_digest":"{digest}"}}'
    )
    assert row.content == '{"a":null}'
    assert record_text(row) == row.body[:-1] + ',"tasks":{"a":null}}'


def test_r_11_bodies_are_kept_as_they_were_written() -> None:
    """Another order of fields, spaces, unknown fields: the hash is that of the stored text."""
    log = whole_log()
    row = row_of(log, "memory.changed")
    fields = dict(reversed(json.loads(row.body).items())) | {"unknown": 1}
    odd = row.model_copy(update={"body": json.dumps(fields, indent=1)})
    assert decode_anew(odd).record == decode_anew(row).record
    assert decode_anew(odd).hash == sha256(odd.body) != decode_anew(row).hash


def test_r_11_content_is_not_in_the_body() -> None:
    """What can be erased is in the content only."""
    for row in whole_log().rows:
        name = TRANSITIONS[row.type].content
        assert name is None or name not in json.loads(row.body)


def test_r_11_a_changed_body_is_found_at_the_next_record() -> None:
    """By `prev`, wherever it stands."""
    log = whole_log()
    for number in range(len(log.rows) - 1):
        rows = list(log.rows)
        rows[number] = rows[number].model_copy(update={"body": rows[number].body[:-1] + " }"})
        with pytest.raises(CorruptLog) as caught:
            fold(map(decode_anew, rows))
        assert (caught.value.reason, caught.value.seq) == ("prev_does_not_fit", number + 2)


def test_r_11_a_changed_content_is_found() -> None:
    """One flipped character, another content, another salt."""
    row = row_of(whole_log(), "tasks.updated")
    assert content_fits(row)
    assert row.content == '["a",null]'
    for other in (
        with_content(row, '["b",null]'),
        with_content(row, '["a", null]'),
        row.model_copy(update={"salt": "0" * 32}),
        row.model_copy(update={"salt": None}),
        row.model_copy(update={"body": "[]"}),
        row.model_copy(update={"body": "{"}),
    ):
        assert not content_fits(other)
        with pytest.raises(CorruptLog):
            decode_anew(other)


@pytest.mark.parametrize(
    "content",
    [
        'null,"progress":9.0',
        '"x","call_id":"call_' + "9" * 26 + '"',
        '"x","type":"run.erased"',
        '"x"}{"a":1',
        '"x","v":99',
    ],
)
def test_r_11_a_content_cannot_say_other_fields_anew(content: str) -> None:
    """The body is chained; what stands beside it must not speak in its name."""
    row = row_of(whole_log(), "tool.progress")
    with pytest.raises(CorruptLog):
        decode_anew(with_content(row, content))


def test_r_11_a_content_without_a_digest_is_nobodys() -> None:
    """Also in a type that has no content in this version."""
    log = whole_log()
    for kind in ("run.admitted", "memory.changed"):
        row = row_of(log, kind)
        body = {k: v for k, v in json.loads(row.body).items() if k != "content_digest"}
        planted = row.model_copy(update={"body": json.dumps(body), "content": '"x"'})
        assert not content_fits(planted)
        with pytest.raises(CorruptLog) as caught:
            decode_anew(planted)
        assert caught.value.reason == "content_does_not_fit"


def test_r_11_an_erased_log_folds_to_the_same_state_and_hashes() -> None:
    """Contents and salts are gone; what happened stays, and can still be proven."""
    log = whole_log()
    entries = [decode_anew(row) for row in erased(log.rows)]
    assert fold(entries) == log.state
    assert [entry.hash for entry in entries] == [entry.hash for entry in log.entries]
    had = {entry.record.seq for entry in log.entries if entry.record.content_digest}
    assert {entry.record.seq for entry in entries if is_erased(entry.record)} == had
    assert len(had) > 30
    assert all(map(content_fits, erased(log.rows)))
    for length in range(len(entries)):
        assert fold(entries[:length]) == fold(log.entries[:length])


def test_r_11_a_half_erased_log_folds_to_the_same_state() -> None:
    """Erasure comes in batches, and readers may meet it anywhere."""
    log = whole_log()
    gone = erased(log.rows)
    for cut in range(0, len(gone), 7):
        assert fold(map(decode_anew, gone[:cut] + log.rows[cut:])) == log.state


def test_r_11_each_content_has_a_salt_of_its_own() -> None:
    """Equal contents have unequal digests; the first record always has a salt."""
    log = LogBuilder()
    log.admit(None)
    assert (log.rows[0].content, log.entries[0].record.content_digest) == (None, None)
    assert log.rows[0].salt is not None
    log.claim()
    assert log.rows[1].salt is None
    first, second = (log.write(TasksUpdated, tasks=["a"]) for _ in range(2))
    assert first.content_digest != second.content_digest


def test_r_14_at_is_raised_to_that_of_the_record_before() -> None:
    """A clock that falls does not make a log that falls."""
    log = LogBuilder()
    late = log.draft(RunAdmitted, **dict(draft(log, "run.admitted")))
    early = log.draft(TasksUpdated, tasks=[], at=late.at.replace(year=2020))
    sealed = seal(
        [late, early],
        Position(),
        tenant="acme",
        epoch=0,
        commit_id=log.system.new_id("com"),
        salts=["0" * 32, "1" * 32],
    )
    assert [one.record.at for one in sealed] == [late.at, late.at]
    assert decode_anew(sealed[1].row).record.at == late.at


def test_log_4_an_unknown_type_is_a_newer_build_s() -> None:
    """Not corrupt: another worker can go on."""
    row = row_of(whole_log(), "memory.changed")
    for version, needed in [(1, 2), (7, 7)]:
        newer = forged(row, type="budget.spent", v=version).model_copy(
            update={"type": "budget.spent"}
        )
        with pytest.raises(NewerRecord) as caught:
            decode_anew(newer)
        assert caught.value.needs_version == needed
        assert (caught.value.type, caught.value.seq) == ("budget.spent", row.seq)


def test_log_4_a_known_type_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    """A minor version adds fields; those are kept out of the way."""
    row = row_of(whole_log(), "memory.changed")
    newer = forged(row, v=SCHEMA_VERSION + 1, weight=5, nested={"a": [None]})
    expected = decode_anew(row).record.model_copy(update={"v": SCHEMA_VERSION + 1})
    assert decode_anew(newer).record == expected


def test_log_4_a_newer_version_that_cannot_be_read_is_newer_not_corrupt() -> None:
    """Where the same in this version would be corrupt."""
    row = row_of(whole_log(), "memory.changed")
    with pytest.raises(NewerRecord) as caught:
        decode_anew(forged(row, v=SCHEMA_VERSION + 3, op="merge"))
    assert caught.value.needs_version == SCHEMA_VERSION + 3
    with pytest.raises(CorruptLog, match="unreadable"):
        decode_anew(forged(row, op="merge"))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "17",
        "{}",
        '{"v":1}',
        "\x00\x01",
        "{'v':1}",
        "[" * 5000,
        '{"a":' * 5000,
        '{"v":true,"epoch":1,"at":"2026-11-29T20:00:00.000000Z"}',
        '{"v":1,"epoch":"1","at":"2026-11-29T20:00:00.000000Z"}',
        '{"v":1,"epoch":1,"at":"yesterday"}',
        '{"v":1,"epoch":1,"at":20261129}',
        '{"v":"\\ud800"}',
    ],
    ids=range(17),
)
def test_log_4_garbage_is_corrupt_whatever_type_the_row_names(body: str) -> None:
    """And nothing but CorruptLog comes out of it."""
    for kind in ("memory.changed", "budget.spent"):
        row = row_of(whole_log(), "memory.changed")
        row = row.model_copy(update={"body": body, "type": kind})
        for read in (decode_anew, outline):
            with pytest.raises(CorruptLog) as caught:
                read(row)
            assert (caught.value.reason, caught.value.seq) == ("unreadable", row.seq)
        assert outline_commit(row) == ""


@pytest.mark.parametrize(
    ("column", "value"),
    [("seq", 7), ("type", "tasks.updated"), ("run_id", "run_" + "9" * 26)],
)
def test_log_4_a_row_whose_columns_differ_from_its_body_is_corrupt(
    column: str, value: object
) -> None:
    """What an index says is what the record says."""
    row = row_of(whole_log(), "memory.changed")
    with pytest.raises(CorruptLog) as caught:
        decode_anew(row.model_copy(update={column: value}))
    assert caught.value.reason == "row_differs"
    decode_anew(row)


def test_r_16_an_outline_tells_what_every_version_says() -> None:
    """Enough to write behind a record that cannot be read."""
    log = whole_log()
    row, entry = log.rows[-1], log.entries[-1]
    record = entry.record
    expected = Outline(Position(record.seq, entry.hash, record.at), 0, SCHEMA_VERSION)
    assert outline(row) == expected
    assert outline_commit(row) == record.commit
    newer = forged(row, type="budget.spent", v=4, epoch=2).model_copy(
        update={"type": "budget.spent"}
    )
    assert outline(newer).needs_version == 4
    assert outline(newer).epoch == 2
    assert outline(newer).position.hash == sha256(newer.body)


def test_r_16_a_body_in_a_form_of_a_newer_build_is_no_corruption() -> None:
    """It tells only which version reads it: no epoch, no hash to write behind."""
    row = row_of(whole_log(), "memory.changed")
    short = row.model_copy(update={"body": "C261130171828208752?" + row.body})
    for read in (decode_anew, outline):
        with pytest.raises(NewerRecord) as caught:
            read(short)
        assert (caught.value.seq, caught.value.needs_version) == (row.seq, 3)
    assert outline_commit(short) == ""


@pytest.mark.parametrize(
    "begin", ["A261130171828208752", "B26113017182820875", "B", "b261130171828208752", "É2611301"]
)
def test_log_4_a_form_of_this_build_that_nobody_could_unpack_is_corrupt(begin: str) -> None:
    """As is what begins like no form at all."""
    row = row_of(whole_log(), "memory.changed")
    odd = row.model_copy(update={"body": begin + row.body})
    for read in (decode_anew, outline):
        with pytest.raises(CorruptLog) as caught:
            read(odd)
        assert caught.value.reason == "unreadable"


def test_log_4_parse_record_reads_what_record_text_says() -> None:
    """For every type, as text and as bytes."""
    for row, entry in zip(whole_log().rows, whole_log().entries, strict=True):
        text = record_text(row)
        assert parse_record(text) == entry.record
        assert parse_record(text.encode()) == entry.record
        assert from_json(text)["type"] == row.type


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Invalid JSON"),
        ("{", "Invalid JSON"),
        ("[]", "Input should be"),
        ('{"type":"budget.spent"}', "budget.spent"),
        ('{"type":"memory.changed"}', "memory.changed/run_id: Field required"),
        (b"\xff\xfe", "Invalid JSON"),
        ("\ud800", "unicode"),
    ],
)
def test_log_4_parse_record_says_what_is_wrong(text: str | bytes, problem: str) -> None:
    """InvalidPayload, with the place."""
    with pytest.raises(InvalidPayload) as caught:
        parse_record(text)
    assert caught.value.what == "record"
    assert problem in caught.value.problem
