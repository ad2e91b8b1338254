"""What this process wrote lately is not parsed again, and nothing else is taken for it."""

import pytest

from psych_runtime.core import codec
from psych_runtime.core._recent import Recent
from psych_runtime.core.codec import Entry, decode, decode_anew
from psych_runtime.errors import CorruptLog
from psych_schema.store import RecordRow
from tests.unit.core.logs import forged, whole_log


def row_of(kind: str) -> RecordRow:
    """Return the first row of this type."""
    return next(row for row in whole_log().rows if row.type == kind)


def test_what_was_written_here_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is the same as its text says."""
    row = row_of("tool.completed")
    monkeypatch.setattr(codec, "_recent", Recent())
    expected = decode_anew(row)
    assert decode(row) == expected
    codec._recent.add(row, expected)
    assert decode(row.model_copy()) is expected


def test_log_5_an_erased_or_changed_row_is_another_one() -> None:
    """Whatever differs, be it in one column, is read from its text."""
    row = row_of("tool.completed")
    known = Recent()
    known.add(row, decode_anew(row))
    for column, value in (
        ("content", None),
        ("content", "{}"),
        ("salt", "0" * 32),
        ("run_id", "run_" + "9" * 26),
        ("seq", row.seq + 1),
        ("tenant", "globex"),
        ("type", "tool.refused"),
        ("body", row.body[:-1] + " }"),
    ):
        assert known.get(row.model_copy(update={column: value})) is None
    with pytest.raises(CorruptLog):
        decode(row.model_copy(update={"content": '{"message":"another"}'}))


def test_only_what_is_recent_and_short_is_kept() -> None:
    """So that a process holds a bounded part of what it wrote."""
    row = row_of("turn.started")
    entry = decode_anew(row)
    rows = [forged(row, id=f"rec_{number:026}") for number in range(3000)]
    known = Recent()
    for one in rows:
        known.add(one, Entry(entry.record, one.body))
    kept = [one for one in rows if known.get(one)]
    assert kept == rows[-len(kept) :]
    assert 1024 <= len(kept) <= 2048
    long = row.model_copy(update={"content": "x" * 5000})
    known.add(long, entry)
    assert known.get(long) is None


def test_r_11_a_whole_log_is_known_as_it_is_read() -> None:
    """Sealing remembers what reading gives."""
    for row in whole_log().rows:
        assert decode(row) == decode_anew(row)
