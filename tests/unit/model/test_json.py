"""Foreign JSON is bounded and read without trust (SEC-3)."""

import pytest

from psych_runtime.model._json import count_at, mend, object_at, only, parse, text_at


def test_sec_3_depth_64_is_read() -> None:
    """The bound itself is allowed."""
    assert parse("[" * 64 + "]" * 64) is not None


@pytest.mark.parametrize(
    "text", ["[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 100_000]
)
def test_sec_3_deeper_json_is_refused(text: str) -> None:
    """No recursion decides it."""
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse(text)


def test_sec_3_brackets_in_texts_are_no_depth() -> None:
    """Code in an argument has many of them."""
    assert parse('{"code": "' + "[{" * 500 + '\\"[[[["}') == {"code": "[{" * 500 + '"[[[['}


def test_sec_3_many_brackets_beside_one_another_are_no_depth() -> None:
    """A long array is flat."""
    assert parse("[" + "[]," * 500 + "[]]") == [[]] * 501


def test_sec_3_an_endless_text_of_quotes_is_judged_in_one_pass() -> None:
    """A judge that starts anew at each quote would need hours for this."""
    with pytest.raises(ValueError, match="Unterminated string"):
        parse("[" * 64 + '"' + '\\"' * 500_000 + "[" * 100)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_spec_1_constants_that_are_no_json_are_refused(text: str) -> None:
    """As everywhere else."""
    with pytest.raises(ValueError, match="is no JSON"):
        parse(text)


def test_sec_3_an_endless_number_is_refused() -> None:
    """Reading it would take time without bound."""
    with pytest.raises(ValueError, match="limit"):
        parse("1" * 100_000)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (12, 12),
        (12.0, 12),
        (12.5, None),
        (-1, None),
        (True, None),
        ("12", None),
        (None, None),
        (2**53, 2**53),
        (2**53 + 1, None),
        (float("inf"), None),
    ],
)
def test_tok_1_only_a_count_is_a_count(value: object, count: int | None) -> None:
    """What cannot be a number of tokens is unknown."""
    assert count_at({"n": value}, "n") == count


def test_sec_3_wrong_shapes_read_as_nothing() -> None:
    """A reader never meets a type that it did not ask for."""
    assert object_at([1], "a") == {}
    assert object_at({"a": "x"}, "a") == {}
    assert text_at({"a": 1}, "a") == ""


def test_log_5_halves_of_a_character_are_joined_or_replaced() -> None:
    """No lone surrogate passes."""
    assert mend("\ud83d\ude00 ok") == "😀 ok"
    assert mend("a\ud83db") == "a\ufffdb"
    assert mend("\ude00") == "\ufffd"


@pytest.mark.parametrize("value", [None, "", 0, False, [], {}])
def test_mod_5_what_is_empty_is_nothing_of_any_kind(value: object) -> None:
    """Servers write null in many ways."""
    assert only(value, dict) is None
    assert only(value, str) is None


def test_mod_5_what_is_of_the_kind_is_returned() -> None:
    """As it is."""
    assert only({"a": 1}, dict) == {"a": 1}
    assert only("x", str) == "x"
    assert only(7, int) == 7


@pytest.mark.parametrize("kind", [dict, list, str, int])
def test_mod_5_what_is_of_another_kind_is_refused(kind: type[object]) -> None:
    """True is no number."""
    for value in ({"a": 1}, [1], "x", 7, True):
        if type(value) is not kind:
            with pytest.raises(ValueError, match=f"no {kind.__name__}"):
                only(value, kind)
