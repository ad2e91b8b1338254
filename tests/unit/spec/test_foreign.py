"""Foreign JSON enters in one way: bounded, unambiguous, and told where it is wrong (SEC-3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core._json_text import read_json_text
from psych_runtime.core.foreign import MAX_DEPTH, parse_json
from psych_runtime.errors import InvalidPayload, PayloadTooLarge


def parse(text: str | bytes, *, whole_numbers: bool = False) -> JsonValue:
    return parse_json(text, what="body", max_bytes=1_000_000, whole_numbers=whole_numbers)


def refused(text: str | bytes, *, whole_numbers: bool = False) -> InvalidPayload:
    with pytest.raises(InvalidPayload) as caught:
        parse(text, whole_numbers=whole_numbers)
    return caught.value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_sec_3_json_is_read() -> None:
    """What JSON can say comes back, the types told apart."""
    text = '{"a": [1, 1.0, -0.5, 1e3, true, null, "\\u00e9\\ud83d\\ude00"], "b": {}}'
    value = parse(text)
    assert value == {"a": [1, 1.0, -0.5, 1000.0, True, None, "é😀"], "b": {}}
    assert json.dumps(value) == json.dumps(json.loads(text))
    assert parse(text.encode()) == value
    assert parse("\ufeff1") == parse(b"\xef\xbb\xbf1") == 1


@given(JSON, st.sampled_from([None, 2]))
def test_sec_3_both_readers_agree_on_json(value: JsonValue, indent: int | None) -> None:
    """The slow reader, which knows positions, reads what the fast one reads."""
    text = json.dumps(value, indent=indent, ensure_ascii=indent is None)
    document = read_json_text(text, max_depth=MAX_DEPTH, whole=False)
    assert not document.issues
    assert repr(document.value) == repr(parse(text)) == repr(json.loads(text))


@given(st.text('{}[]:,"\\ \n019.eE+-tfnulas', max_size=30))
def test_sec_3_both_readers_refuse_the_same_texts(text: str) -> None:
    """A text is JSON for both readers or for none."""
    document = read_json_text(text, max_depth=MAX_DEPTH, whole=False)
    try:
        value = parse(text)
    except InvalidPayload:
        assert document.issues
    else:
        assert repr(document.value) == repr(value)
        assert not document.issues


@pytest.mark.parametrize(
    ("text", "problem", "line", "column"),
    [
        ('{"a": 1,\n "b": 2, "a": 3}', "this key is there already at /a", 2, 10),
        ('{"a": {"b": 1, "b": 2}}', "this key is there already at /a/b", 1, 16),
        ('{"\\u0061": 1, "a": 2}', "this key is there already at /a", 1, 15),
        ("[1,\n NaN]", "NaN and Infinity are no JSON at /1", 2, 2),
        ("[-Infinity]", "NaN and Infinity are no JSON at /0", 1, 2),
        ("Infinity", "NaN and Infinity are no JSON", 1, 1),
        ("[1e400]", "NaN, infinite and larger numbers cannot be kept at /0", 1, 2),
        ("-1e400", "NaN, infinite and larger numbers cannot be kept", 1, 1),
        ("9" * 5_000, "a number may have 1000 digits", 1, 1),
        ('{"a": "\\ud800"}', "half of a surrogate pair is no character at /a", 1, 7),
        ('{"\\udfff": 1}', "half of a surrogate pair is no character", 1, 2),
        ('["\ud800"]', "half of a surrogate pair is no character at /0", 1, 2),
        ("", "expected a value", 1, 1),
        ("{", "expected a key in double quotes", 1, 2),
        ('{"a"', "expected ':' after the key at /a", 1, 5),
        ('{"a": }', "expected a value at /a", 1, 7),
        ('{"a": 1,}', "a ',' too many before '}'", 1, 9),
        ("[1,]", "a ',' too many before ']' at /1", 1, 4),
        ("[1 2]", "expected ',' or ']' at /1", 1, 4),
        ("[1", "expected ',' or ']' at /1", 1, 3),
        ("[1}", "expected ',' or ']' at /1", 1, 3),
        ("1 2", "the document has ended; something follows", 1, 3),
        ("'a'", "expected a value", 1, 1),
        ("{a: 1}", "expected a key in double quotes", 1, 2),
        ("[01]", "expected a value at /0", 1, 2),
        ("[1.]", "expected a value at /0", 1, 2),
        ("[+1]", "expected a value at /0", 1, 2),
        ("[tru]", "expected a value at /0", 1, 2),
        ("// c\n1", "expected a value", 1, 1),
        ('["a', "this text has no end at /0", 1, 2),
        ('["a\\', "this text has no end at /0", 1, 2),
        ('["a\nb"]', "a line break or control character inside a text; escape it at /0", 1, 4),
        ('["a\\x"]', "no such escape; write \\\\ for a backslash at /0", 1, 4),
        ('["\\u12"]', "\\u needs four hexadecimal digits at /0", 1, 4),
        (b'{"a":\n "\xff"}', "no UTF-8 from here on", 2, 3),
        (b"\xff\xfe{\x00}\x00", "no UTF-8 from here on", 1, 1),
    ],
)
def test_sec_3_what_readers_read_differently_is_refused(
    text: str | bytes, problem: str, line: int, column: int
) -> None:
    """Each with its own words, and where."""
    error = refused(text)
    assert (error.problem, error.line, error.column) == (problem, line, column)
    assert str(error) == f"body: {problem} (line {line}, column {column})"
    assert error.code == "invalid_payload"


def test_sec_3_same_key_in_two_objects_is_fine() -> None:
    """Only one object may not repeat a key."""
    assert parse('[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]


def test_sec_3_words_inside_texts_are_texts() -> None:
    """NaN, brackets and huge numbers count only where values stand."""
    text = json.dumps({"NaN": "1e400 " + "[{" * 200, "x": "9" * 5_000})
    assert parse(text) == json.loads(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_sec_3_depth_is_bounded(opening: str, closing: str) -> None:
    """64 levels are read, 65 are not, and a million are refused as quickly."""

    def nested(depth: int) -> str:
        return opening * depth + "1" + closing * depth

    assert json.dumps(parse(nested(64))) == json.dumps(json.loads(nested(64)))
    assert "nested deeper than 64" in refused(nested(65)).problem
    assert "nested deeper than 64" in refused(opening * 150_000).problem
    assert parse_json("[[1]]", what="body", max_bytes=9, max_depth=2) == [[1]]
    with pytest.raises(InvalidPayload, match="nested deeper than 1"):
        parse_json("[[1]]", what="body", max_bytes=9, max_depth=1)


def test_sec_3_size_is_bounded_in_bytes() -> None:
    """The bound counts UTF-8, and is looked at before anything is parsed."""
    assert parse_json('"é"', what="body", max_bytes=4) == "é"
    for text in ('"éé"', '"éé"'.encode(), "[" * 50_000_000):
        with pytest.raises(PayloadTooLarge) as caught:
            parse_json(text, what="body", max_bytes=5)
        assert caught.value.what == "body"
        assert caught.value.bound_bytes == 5
        assert caught.value.size_bytes == len(text.encode() if isinstance(text, str) else text)


def test_spec_1_whole_numbers_are_read_alike() -> None:
    """In Specs 1.0 is 1; elsewhere a float stays one."""
    text = "[1, 1.0, -0.0, 1e2, 0.5]"
    assert repr(parse(text, whole_numbers=True)) == "[1, 1, 0, 100, 0.5]"
    assert repr(parse(text)) == "[1, 1.0, -0.0, 100.0, 0.5]"


@pytest.mark.parametrize("number", [str(2**53), str(-(2**53)), f"{2**53}.0", "1e20", "1e300"])
def test_spec_1_whole_numbers_from_2_to_the_53_are_refused(number: str) -> None:
    """A reader that knows doubles only would read another number; elsewhere they are kept."""
    error = refused(f'{{"a": {number}}}', whole_numbers=True)
    assert error.problem == "numbers without a fraction end at 9007199254740991 at /a"
    assert parse(number) == json.loads(number)
    assert parse(str(2**53 - 1), whole_numbers=True) == 2**53 - 1


def test_sec_3_hostile_texts_take_linear_time() -> None:
    """Unclosed quotes, escapes and runs of digits are read once, not again for each start."""
    for text in ('"\\"' * 100_000, "[" * 99 + '"' + '\\"' * 100_000, "1" * 300_000, "-" * 300_000):
        refused(text)
