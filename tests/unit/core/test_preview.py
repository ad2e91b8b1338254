"""What a model is shown of a large result, and what all of it is (TOOL-6)."""

import json
import re
from random import Random
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.preview import compact_text_of, file_line, is_text, preview, text_of
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, TextPart
from psych_schema.record import ToolCompleted, ToolResult
from tests.unit.core.logs import started
from tests.unit.effort import effort

NASTY: Final = 'aé€😀\x00\n\r\\"\u2028\ufeff\u0301\ufffd'
TEXTS: Final = st.text(alphabet=NASTY, min_size=1, max_size=80)
NUMBERS: Final = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**307), max_value=10**307),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES: Final[st.SearchStrategy[JsonValue]] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(alphabet=NASTY, max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(alphabet=NASTY, max_size=3), inner, max_size=4),
    ),
    max_leaves=12,
)
SAID: Final = re.compile(
    r"\n\[Bytes ([0-9]+) to ([0-9]+) of ([0-9]+) are left out here\. Read them with read_result, "
    r'or look for something with search_result: result="call_1"\]\n'
)


class Shown(NamedTuple):
    """A preview taken apart."""

    head: bytes
    start: int
    stop: int
    size: int
    tail: bytes


def shown(text: str, shown_bytes: int) -> Shown:
    """Return what a preview has of a text, and what it says is left out."""
    made = preview(text, shown_bytes, result="call_1")
    [said] = SAID.finditer(made)
    start, stop, size = map(int, said.groups())
    return Shown(made[: said.start()].encode(), start, stop, size, made[said.end() :].encode())


@given(text=TEXTS, part=st.floats(min_value=0, max_value=1, exclude_max=True))
@effort(150)
def test_tool_6_a_preview_is_the_beginning_and_the_end(text: str, part: float) -> None:
    """At most so many bytes, no character cut in two, and the bytes left out are those named."""
    data = text.encode()
    shown_bytes = int(len(data) * part)
    found = shown(text, shown_bytes)
    assert found.head == data[: found.start]
    assert found.tail == data[found.stop :]
    assert found.size == len(data)
    assert len(found.head) + len(found.tail) <= shown_bytes
    assert found.start + (found.size - found.stop) > shown_bytes - 8  # less than two characters
    found.head.decode()
    found.tail.decode()


def test_tool_6_a_preview_shows_more_of_the_beginning() -> None:
    """Two thirds, and one third of the end; what stands in the middle is left out."""
    text = "b" * 6000 + "m" * 4000 + "e" * 3000
    found = shown(text, 9000)
    assert found == (b"b" * 6000, 6000, 10_000, 13_000, b"e" * 3000)


@pytest.mark.parametrize("shown_bytes", range(8))
def test_tool_6_a_preview_of_wide_characters_has_whole_ones(shown_bytes: int) -> None:
    """Where not even one has room, there is none."""
    found = shown("😀" * 3, shown_bytes)
    assert found.head == "😀".encode() * (shown_bytes * 2 // 3 // 4)
    assert found.tail == "😀".encode() * (shown_bytes // 3 // 4)


def shuffled(value: JsonValue, random: Random) -> JsonValue:
    """Return an equal value whose keys came in another order."""
    match value:
        case dict():
            names = random.sample(sorted(value), len(value))
            return {name: shuffled(value[name], random) for name in names}
        case list():
            return [shuffled(one, random) for one in value]
        case _:
            return value


@given(value=VALUES, seed=st.integers(min_value=0, max_value=1000))
@effort(60)
def test_mod_9_what_is_shown_whole_does_not_depend_on_its_keys_order(
    value: JsonValue, seed: int
) -> None:
    """As in a message that has it from the log."""
    parts = (TextPart(text="first"), JsonPart(value=value))
    other = (TextPart(text="first"), JsonPart(value=shuffled(value, Random(seed))))
    assert compact_text_of(parts) == compact_text_of(other)


@given(value=VALUES, text=TEXTS)
@effort(60)
def test_tool_6_the_text_is_the_same_after_it_was_stored(value: JsonValue, text: str) -> None:
    """What the worker showed is what the next one shows, and where each byte stands."""
    parts = (JsonPart(value=value), TextPart(text=text), JsonPart(value=[value]))
    log, call = started()
    log.finish(call, result=ToolResult(parts=parts))
    record = decode_anew(log.rows[-1]).record
    assert isinstance(record, ToolCompleted)
    assert record.result is not None
    assert text_of(record.result.parts) == text_of(parts)
    assert compact_text_of(record.result.parts) == compact_text_of(parts)


@given(value=VALUES)
@effort(30)
def test_tool_6_the_text_of_a_value_is_the_value(value: JsonValue) -> None:
    """Either form reads back as what it was, to the last digit."""
    parts = (JsonPart(value=value),)
    assert json.loads(text_of(parts)) == value
    assert json.loads(compact_text_of(parts)) == value


def test_tool_6_a_value_has_lines_of_its_own() -> None:
    """So that a pattern finds a member, and a range ends between two."""
    parts = (
        TextPart(text="Two orders."),
        JsonPart(value={"b": [1, {"d": None, "c": "x"}], "a": {}}),
        BlobPart(blob=BlobRef(hash="0" * 64, bytes=3, media_type="image/png")),
        TextPart(text="That is all."),
    )
    lines = [line.strip() for line in text_of(parts).splitlines()]
    assert lines == [
        *("Two orders.", "{", '"b": [', "1,", "{", '"d": null,', '"c": "x"', "}", "],"),
        *('"a": {}', "}", "That is all."),
    ]
    assert compact_text_of(parts) == (
        'Two orders.\n{"a":{},"b":[1,{"c":"x","d":null}]}\nThat is all.'
    )


def test_sec_3_the_lines_of_a_value_are_not_many_times_its_size() -> None:
    """However deep the lists are in which its numbers stand."""
    value: JsonValue = [0] * 10_000
    for _ in range(60):
        value = [value]
    parts = (JsonPart(value=value),)
    assert len(text_of(parts)) < 3 * len(compact_text_of(parts))


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/plain", True),
        ("TEXT/CSV; charset=utf-8", True),
        ("application/json", True),
        ("application/problem+json; charset=utf-8", True),
        ("image/png", False),
        ("application/octet-stream", False),
        ("application/jsonp", False),
        ("", False),
    ],
)
def test_tool_6_which_files_are_text(media_type: str, expected: bool) -> None:
    """By their type alone."""
    assert is_text(media_type) is expected


@pytest.mark.parametrize(("name", "called"), [("a.csv", "a.csv"), (None, "a file")])
def test_tool_6_a_file_that_is_not_shown_is_named(name: str | None, called: str) -> None:
    """What it is, how large, and by which name it is read."""
    part = BlobPart(blob=BlobRef(hash="0" * 64, bytes=40_000, media_type="text/csv"), name=name)
    assert file_line(part, result="call_1.2") == (
        f"[{called}, text/csv, 40000 bytes, is not shown here. Read it with read_result, or look "
        'for something with search_result: result="call_1.2"]'
    )
