"""A secret is found in a text however it is written there, and nothing else is (R-24, SEC-2)."""

import base64
import html
import json
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.redaction import Redactor, describe_error
from psych_runtime.core.secret import Secret
from tests.canary import CANARY, forms
from tests.unit.effort import effort

type TraceFunction = Callable[[FrameType, str, object], TraceFunction]

SECRET: Final = Secret("stripe/key", CANARY)
LABEL: Final = "[secret stripe/key]"
PUNCTUATION: Final = "%&+\\;#xu25=/\"'<> \n-_.,"

values = st.one_of(
    st.text(st.sampled_from(f"abcXYZ0189{PUNCTUATION}é€😀"), min_size=6, max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=20),
    st.text(st.sampled_from("%25\\&amp;u"), min_size=6, max_size=12),
).filter(str.strip)
surroundings = st.text(
    st.one_of(
        st.sampled_from(f"abcXYZ0189{PUNCTUATION}"), st.characters(exclude_categories=["Cs"])
    ),
    max_size=12,
)


def is_written_in(text: str, value: str) -> bool:
    """Say whether a value stands in a text, plain or as one of the forms that are read back."""
    raw = value.encode()
    if value in text or raw.hex() in text.lower():
        return True
    for run in re.findall("[A-Za-z0-9+/]+", text.replace("-", "+").replace("_", "/")):
        for start in range(4):
            part = run[start:] + "A" * (-len(run[start:]) % 4)
            if raw in base64.b64decode(part):
                return True
    return False


def partly_quoted(value: str, chosen: list[bool], *, small: bool) -> str:
    """Return a value with the bytes quoted that were chosen."""
    raw = value.encode()
    form = "%{:02x}" if small else "%{:02X}"
    whole = [form.format(byte) for byte in raw]
    if not raw.isascii():
        return "".join(whole)
    pairs = zip(whole, value, chosen, strict=True)
    return "".join(coded if wanted else one for coded, one, wanted in pairs)


def lines_of(run: Callable[[], object], *, function: str | None = None) -> int:
    """Return how many lines of Python a call passes, of one function or of all."""
    passed = 0

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal passed
        passed += event == "line" and function in (None, frame.f_code.co_name)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return passed


WRITERS: Final[dict[str, Callable[[str], str]]] = {
    "plain": lambda value: value,
    "quoted": lambda value: quote(value, safe=""),
    "quoted twice": lambda value: quote(quote(value, safe=""), safe=""),
    "form": lambda value: quote(value, safe="").replace("%20", "+"),
    "json": lambda value: json.dumps(value)[1:-1],
    "json, not in ASCII": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json in json": lambda value: json.dumps(json.dumps(value)[1:-1])[1:-1],
    "html": html.escape,
    "html in html": lambda value: html.escape(html.escape(value)),
    "repr": lambda value: repr(value)[1:-1],
    "repr of bytes": lambda value: repr(value.encode())[2:-1],
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("name", [name for name in forms(CANARY) if "longest word" not in name])
def test_r_24_every_form_of_a_canary_is_replaced(name: str) -> None:
    """Whatever the form is called; base64 stands as part of a longer text."""
    form = forms(CANARY)[name].decode()
    if name.startswith("base64"):
        lead = int(name[-1])
        code = base64.urlsafe_b64encode if "URLs" in name else base64.b64encode
        form = code(b"u:p"[:lead] + CANARY.encode() + b"tail").decode()

    clean = Redactor([SECRET]).redact(f"it said {form}, twice {form}")

    assert clean.count(LABEL) == 2
    assert clean.startswith("it said ")
    assert forms(CANARY)[name].decode() not in clean


@pytest.mark.parametrize("written", sorted(WRITERS))
@effort(60)
@given(value=values, before=surroundings, after=surroundings)
@example(value='4f"bcdef', before="%", after="")
@example(value='ab"c%%%%', before="", after="41")
@example(value="\\\\\\\\\\\\", before="\\", after="\\")
def test_r_24_nothing_around_a_secret_hides_it(
    written: str, value: str, before: str, after: str
) -> None:
    """The same way of writing it is gone, and so are the others."""
    write = WRITERS[written]
    redactor = Redactor([Secret("key", value)])

    clean = redactor.redact(before + write(value) + after)

    assert write(value) not in clean or write(value) in "[secret key]"
    assert not is_written_in(clean, value)
    assert value not in unquote(clean)
    assert redactor.redact(clean) == clean


@effort(200)
@given(
    value=st.text(st.sampled_from("abcXYZ019/+=%&"), min_size=6, max_size=12),
    chosen=st.lists(st.booleans(), min_size=12, max_size=12),
    small=st.booleans(),
    before=surroundings,
    after=surroundings,
)
def test_r_24_any_of_its_characters_may_be_quoted(
    value: str, chosen: list[bool], small: bool, before: str, after: str
) -> None:
    """A client quotes what it thinks must be, in capitals or not."""
    form = partly_quoted(value, chosen[: len(value)], small=small)

    clean = Redactor([Secret("key", value)]).redact(before + form + after)

    assert form not in clean
    assert "[secret key]" in clean


@effort(150)
@given(value=values, user=surroundings, after=surroundings)
def test_r_24_basic_credentials_hold_no_secret(value: str, user: str, after: str) -> None:
    """Wherever the password stands in what is coded, with padding or without, in lines or not."""
    pair = f"{user}:{value}{after}".encode()
    redactor = Redactor([Secret("key", value)])
    for code in (base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes):
        text = code(pair).decode()
        for form in (text, text.rstrip("="), quote(text, safe=""), json.dumps(text)):
            clean = redactor.redact(f"Basic {form}")
            assert "[secret key]" in clean or "[***]" in clean
            assert not is_written_in(unquote(clean).replace("\n", "").replace("\\n", ""), value)


@effort(200)
@given(text=surroundings, value=values)
@example(text="secret [secret key]", value="abcdef")
@example(text="100%25 &amp; \\u0041+b", value="zzzzzz")
def test_r_24_a_text_without_it_is_unchanged(text: str, value: str) -> None:
    """Not a byte: the text comes back itself."""
    assume(not any(value[place : place + 2] in text for place in range(len(value) - 1)))
    assume(not any(one in PUNCTUATION or not one.isascii() for one in value))
    assert Redactor([Secret("key", value)]).redact(text) is text


@pytest.mark.parametrize(
    "text",
    [
        CANARY[:-1],
        CANARY[1:],
        quote(CANARY, safe="")[:-1],
        CANARY.encode().hex()[:-1],
        base64.b64encode(b"u" + CANARY.encode()[:-1]).decode(),
        base64.b64encode(CANARY.encode()[:-1] + b"x").decode(),
        base64.b64encode(b"us" + CANARY.encode()[1:]).decode(),
        base64.b64encode(CANARY.encode()[:-1] + b"\xaa").decode(),
        "",
        "%",
        "\\",
        "&",
        "%2",
        "\\u00",
        "&#;",
        "&#99999999;",
        "\ud800%",
    ],
)
def test_r_24_what_is_not_the_whole_value_stays(text: str) -> None:
    """All but a character of it, and escapes that are none."""
    assert Redactor([SECRET]).redact(text) == text


@pytest.mark.parametrize(
    ("value", "text", "clean"),
    [
        ('ab%61cd"z', "ab%61cd%22z", "[secret key]"),
        ("Abcdef", "100%25 and %2541bcdef", "100%25 and [secret key]"),
        ("Abcdef", "\\\\ and \\\\\\u0041bcdef", "\\\\ and [secret key]"),
        ("abcdef%", "abcde%66%41", "[secret key]41"),
    ],
)
def test_r_24_an_escape_may_mean_several_things(value: str, text: str, clean: str) -> None:
    """Itself, or a character; alone, or with what follows."""
    assert Redactor([Secret("key", value)]).redact(text) == clean


def test_r_24_several_secrets_are_told_apart() -> None:
    """Of two that overlap the longer one gives its name; nothing of either is left."""
    redactor = Redactor([Secret("short", "abcdef"), Secret("long", "xxabcdefyy")])

    assert redactor.redact("abcdef, xxabcdefyy") == "[secret short], [secret long]"
    assert redactor.redact("xxabcdef") == "xx[secret short]"


@pytest.mark.parametrize("value", ["secret", "[secret key]", "secret key", "cret k"])
def test_r_24_a_secret_that_a_label_would_show_gets_another_label(value: str) -> None:
    """It says nothing then."""
    assert Redactor([Secret("key", value)]).redact(f"a {value} b") == "a [***] b"


def test_r_24_labels_make_no_secret_of_what_stands_around() -> None:
    """What is made by replacing is replaced in its turn."""
    redactor = Redactor([Secret("a", "abcdef"), Secret("b", "a]tail")])

    assert "a]tail" not in redactor.redact("abcdeftail")


def test_r_24_bytes_need_be_no_text() -> None:
    """What is around stays as it is."""
    clean = Redactor([SECRET]).redact_bytes(b"\xff\x00" + CANARY.encode() + b"\xfe")
    assert clean == b"\xff\x00" + LABEL.encode() + b"\xfe"


def test_r_24_json_is_searched_in_keys_texts_and_numbers() -> None:
    """Nothing is lost where two keys become one; what is clean stays the same value."""
    redactor = Redactor([SECRET, Secret("pin", "12345678")])
    dirty: JsonValue = {
        CANARY: 1,
        CANARY.encode().hex(): [f"x{CANARY}", None, True, {"n": 12345678}],
    }

    assert redactor.redact_json(dirty) == {
        LABEL: 1,
        f"{LABEL} 2": [f"x{LABEL}", None, True, {"n": "[secret pin]"}],
    }
    clean: JsonValue = {"a": [1.5, 123, "b", False], LABEL: 2}
    assert redactor.redact_json(clean) == clean
    assert redactor.redact_json({CANARY: 1, LABEL: 2}) == {f"{LABEL} 2": 1, LABEL: 2}


def test_r_24_many_keys_may_become_the_same() -> None:
    """Each is numbered at once: a service that knows the secret could send thousands."""
    ways = [[bit == "1" for bit in f"{number:08b}"] for number in range(256)]
    keys = [partly_quoted("abcdefgh", way, small=True) for way in ways]
    redactor = Redactor([Secret("key", "abcdefgh")])

    def lines(count: int) -> int:
        dirty: JsonValue = dict.fromkeys(keys[-count:], 1)
        return lines_of(lambda: redactor.redact_json(dirty), function="_members")

    others = [f"[secret key] {number}" for number in range(2, 257)]
    assert redactor.redact_json(dict.fromkeys(keys, 1)) == dict.fromkeys(
        ["[secret key]", *others], 1
    )
    assert lines(240) < 10 * lines(30)


def test_r_24_a_number_may_be_written_in_more_digits() -> None:
    """It holds the secret all the same."""
    assert Redactor([Secret("pin", "123456")]).redact_json(9123456.5) == "9[secret pin].5"


@pytest.mark.parametrize("characters", range(len(CANARY) * 2))
def test_r_24_cut_texts_keep_no_beginning_of_a_secret(characters: int) -> None:
    """Not one character of what goes on behind the cut."""
    clean = Redactor([SECRET]).redact_start(f"say {CANARY}{CANARY} to all", characters)

    assert clean in f"say {LABEL}{LABEL} to all"[: max(characters, len(clean))]
    assert CANARY[0] not in clean.replace(LABEL, "")[4:5]


def test_r_24_without_secrets_everything_is_unchanged() -> None:
    """Also what looks like one."""
    assert Redactor().redact(CANARY) is CANARY
    assert Redactor().redact_bytes(b"ab") == b"ab"
    assert Redactor().redact_json({CANARY: 1}) == {CANARY: 1}


def test_sec_2_a_redactor_shows_labels_only() -> None:
    """Not what it looks for."""
    redactor = Redactor([SECRET])
    assert repr(redactor) == f"Redactor({LABEL})"
    assert CANARY not in repr([getattr(redactor, name) for name in redactor.__slots__])


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "word " * n,
        lambda n: "%25" * n,
        lambda n: "\\" * n,
        lambda n: "&amp;" * n,
        lambda n: "&amp;amp;#" * n,
        lambda n: "%61" * n,
        lambda n: "a" * n,
        lambda n: "YWFh" * n,
        lambda n: "61" * n,
        lambda n: "YWFh\n" * n,
        lambda n: ("a" * 29 + "%62") * n,
    ],
)
def test_r_24_time_is_linear_in_the_text(make: Callable[[int], str]) -> None:
    """Ten times the text takes ten times the steps, also of a value that repeats itself."""
    redactor = Redactor([Secret("key", "a" * 30 + "b"), Secret("other", "%25\\\\&amp;" * 3)])

    def lines(count: int) -> int:
        text = make(count)
        return lines_of(lambda: redactor.redact(text))

    assert lines(1_000) < 12 * lines(100)


class Odd(Exception):
    """An exception that cannot be shown, nor asked for anything."""

    def __getattr__(self, name: str) -> object:
        raise OSError(CANARY)

    def __str__(self) -> str:
        raise ValueError(CANARY)


def test_r_24_an_exception_is_told_without_secrets() -> None:
    """Its text, notes, causes and what a group holds; type names stay."""
    cause = KeyError(CANARY)
    cause.add_note(f"in {CANARY}")
    error = ExceptionGroup(f"all of {CANARY}", [ValueError(quote(CANARY)), OSError(5, CANARY)])
    error.__cause__ = cause

    told = describe_error(error, Redactor([SECRET]))

    assert told.type_name == "ExceptionGroup"
    assert told.message.startswith(f"all of {LABEL} (2 sub-exceptions)")
    assert f"with ValueError: {LABEL}" in told.message
    assert f"with OSError: [Errno 5] {LABEL}" in told.message
    assert f"caused by KeyError: '{LABEL}'; in {LABEL}" in told.message
    assert not any(form in told.message.encode() for form in forms(CANARY).values())


def test_r_24_the_context_is_told_unless_it_was_suppressed() -> None:
    """`raise ... from None` says that it is of no interest."""
    shown, hidden = ValueError("b"), ValueError("b")
    shown.__context__ = hidden.__context__ = OSError(CANARY)
    hidden.__suppress_context__ = True

    assert describe_error(shown, Redactor([SECRET])).message == f"b; after OSError: {LABEL}"
    assert describe_error(hidden, Redactor([SECRET])).message == "b"


def test_r_24_odd_exceptions_are_told_too() -> None:
    """Without a text, in a circle, with notes of another kind, huge, or named for a secret."""
    redactor = Redactor([SECRET])
    circle = ValueError("a")
    circle.__context__ = OSError("b")
    circle.__context__.__context__ = circle
    noted = ValueError("a")
    noted.__notes__ = [7, "note"]  # type: ignore[list-item]
    named = type(f"X{CANARY}", (Exception,), {})

    assert describe_error(Odd(), redactor) == ("Odd", "(its text cannot be read)")
    assert describe_error(circle, redactor).message == "a; after OSError: b"
    assert describe_error(noted, redactor).message == "a; note"
    assert describe_error(ValueError(), redactor).message == ""
    assert describe_error(named(), redactor).type_name == f"X{LABEL}"
    assert len(describe_error(ValueError("x" * 10_000_000), redactor).message) == 2048
    tight = Redactor([Secret("a-long-name-for-a-short-value", "abcdef")])
    assert len(describe_error(ValueError("abcdef" * 2000), tight).message) == 2048
    many = describe_error(ValueError("x" * 2040 + CANARY), redactor).message
    assert many == "x" * 2040


def test_r_24_a_chain_without_end_is_told_in_part() -> None:
    """A thousand causes make no long text, and no deep stack."""
    error: BaseException = ValueError("0")
    for number in range(1, 2000):
        outer = ValueError(str(number))
        outer.__cause__, error = error, outer

    assert describe_error(error, Redactor([SECRET])).message.count("caused by") == 3
