"""SEC-3: what a log says is data; nothing in it is imported, called or unpickled."""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.codec import decode_anew, outline, outline_commit, parse_record, record_text
from psych_runtime.core.conversation import input_parts
from psych_runtime.errors import CorruptLog, InvalidPayload, NewerRecord
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record, TasksUpdated
from psych_schema.store import RecordRow
from psych_schema.types import RECORD_TYPES
from tests.unit.core.logs import forged, whole_log

CANARY = "this"  # a module of the standard library that nobody imports, and that prints
MARKERS: list[JsonValue] = [
    {"__reduce__": [CANARY, []]},
    {"__reduce_ex__": 4},
    {"__class__": f"{CANARY}.Thing", "__init__": {}},
    {"__module__": CANARY, "__qualname__": "s"},
    {"py/object": f"{CANARY}.s", "py/reduce": [{"py/function": "os.system"}, ["true"]]},
    {"py/type": CANARY},
    {"$type": "System.Diagnostics.Process"},
    {"@type": CANARY, "type": f"{CANARY}.s"},
    f"!!python/object/apply:{CANARY}.s []",
    "!!python/module:" + CANARY,
    f"c{CANARY}\ns\n(tR.",
    "gASVFAAAAAAAAACMBHRoaXOUjAFzlJOULg==",
    f"__import__('{CANARY}')",
    "${jndi:ldap://x}",
    "{0.__class__}",
    "%(x)s",
]
LOG = whole_log()
ONE_OF_EACH = list({row.type: row for row in LOG.rows}.values())


@pytest.fixture(autouse=True)
def nothing_was_imported(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail when a test made Python load a module."""
    assert CANARY not in sys.modules
    before = set(sys.modules)
    yield
    loaded = {name for name in set(sys.modules) - before if not name.startswith("hypothesis")}
    assert loaded == set()
    assert capfd.readouterr() == ("", "")


def readings(row: RecordRow) -> list[Record]:
    """Return what can be read; whatever cannot be is refused with an error of ours."""
    found: list[Record] = []
    with suppress(CorruptLog, NewerRecord):
        found.append(decode_anew(row).record)
    with suppress(CorruptLog):
        outline(row)
    outline_commit(row)
    with suppress(InvalidPayload):
        found.append(parse_record(record_text(row)))
    return found


@pytest.mark.parametrize("marker", MARKERS, ids=range(len(MARKERS)))
def test_sec_3_markers_of_constructors_are_values_in_a_content(marker: JsonValue) -> None:
    """They come back as they were said."""
    log = LogBuilder()
    log.admit(marker)
    log.claim()
    log.write(TasksUpdated, tasks=[marker])
    record = decode_anew(log.rows[-1]).record
    assert isinstance(record, TasksUpdated)
    assert record.tasks == [marker]
    assert [type(part).__name__ for part in input_parts(marker)] == ["TextPart"]


@pytest.mark.parametrize("marker", MARKERS, ids=range(len(MARKERS)))
def test_sec_3_markers_in_a_body_are_refused_or_kept_out_of_the_way(marker: JsonValue) -> None:
    """As an unknown field they are not read; as a known one they do not fit, or are text."""
    unknown = marker if isinstance(marker, dict) else {"x": marker}
    envelope: set[str] = set()
    for row in ONE_OF_EACH:
        expected = decode_anew(row).record
        record_of_both = readings(forged(row, **{k: v for k, v in unknown.items() if k != "type"}))
        assert record_of_both == [expected, expected]
        for field in sorted(set(json.loads(row.body)) - envelope):
            for record in readings(forged(row, **{field: marker})):
                assert type(record) is RECORD_TYPES[record.type]
        envelope |= {"v", "run_id", "seq", "at", "type", "id", "commit", "epoch", "prev"}


@pytest.mark.parametrize(
    "name",
    [
        "psych_schema.record.RunErased",
        "builtins.eval",
        "RunErased",
        "run.erased\x00",
        "__class__",
        "",
        "ABORT.REQUESTED",
        "../run.erased",
    ],
)
def test_sec_3_a_type_is_looked_up_never_imported(name: str) -> None:
    """What the table does not have is a newer build's, not a name to resolve."""
    row = forged(LOG.rows[-1], type=name).model_copy(update={"type": name})
    with pytest.raises(NewerRecord):
        decode_anew(row)
    with pytest.raises(InvalidPayload):
        parse_record(row.body)


TEXT = st.text(max_size=12) | st.sampled_from(["__class__", "py/object", "type", "v", "seq"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(data=st.data())
def test_sec_3_fuzzed_rows_are_read_or_refused_with_an_error_of_ours(data: st.DataObject) -> None:
    """Fields replaced, left out and added; text cut, doubled and overwritten."""
    row = data.draw(st.sampled_from(LOG.rows))
    body = json.loads(row.body)
    for _ in range(data.draw(st.integers(0, 2))):
        body[data.draw(st.sampled_from(sorted(body)) | TEXT)] = data.draw(VALUE)
    if data.draw(st.booleans()):
        body.pop(data.draw(st.sampled_from(sorted(body))))
    text = json.dumps(body)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text)))
        text = (
            text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 3)) :]
        )
    content = data.draw(st.none() | st.just(row.content) | TEXT)
    fuzzed = row.model_copy(update={"body": text, "content": content})
    for record in readings(fuzzed):
        assert type(record) is RECORD_TYPES[record.type]
