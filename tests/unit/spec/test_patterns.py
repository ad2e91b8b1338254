"""Patterns of schemas are matched in bounded time, or not at all (SEC-3)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.core._patterns import BadPattern, Patterns
from psych_runtime.core._work import TooMuchWork, Work

LETTERS = "abA0 -_"


def is_in(pattern: str, text: str) -> bool:
    """Match with all the steps that one check has."""
    work = Work()
    return Patterns(work).matcher(pattern).is_in(text, work)


def simple_patterns() -> st.SearchStrategy[str]:
    """Patterns that every engine reads alike: no classes of Unicode, no line ends."""
    part = st.sampled_from(["a", "b", "A", "0", " ", "_", r"\-", ".", "[ab]", "[^a]", "[a-z0-9]"])
    return st.recursive(
        part,
        lambda inner: st.one_of(
            st.builds("({})".format, inner),
            st.builds("(?:{}|{})".format, inner, inner),
            st.builds("{}{}".format, inner, inner),
            st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{0,3}"])),
            st.builds("^(?:{})".format, inner),
            st.builds("(?:{})$".format, inner),
        ),
        max_leaves=6,
    )


@given(simple_patterns(), st.text(LETTERS, max_size=12))
def test_sec_3_a_simple_pattern_means_what_it_means_in_python(pattern: str, text: str) -> None:
    """It is searched for, as JSON Schema has it, and not compared with the whole text."""
    assert is_in(pattern, text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("", "", True),
        ("a$", "a\n", False),
        (r"^\d+$", "12", True),
        (r"\p{Lu}", "aÄ", True),
        ("[[:alpha:]]", "1a", True),
        ("[]a]", "]", True),
    ],
)
def test_pub_1_a_pattern_is_searched_for(pattern: str, text: str, found: bool) -> None:
    """`$` is the end of the text, also before a line end."""
    assert is_in(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "unclosed group"),
        ("(?=a)", "say it without, as two patterns in allOf or with not"),
        ("(?<!a)b", "say it without, as two patterns in allOf or with not"),
        (r"(a)\1", "say it without: no later part can repeat an earlier one"),
        ("(a{1000}){1000}", "write smaller counts and fewer of them, or use maxLength"),
        (r"\w{1000}", "write smaller counts and fewer of them, or use maxLength"),
        ("a" * 1_000_000, "write smaller counts and fewer of them, or use maxLength"),
        ("(?x)a # [", "write the pattern without blanks and remarks"),
        ("(?i-s:(?sx)a)", "write the pattern without blanks and remarks"),
    ],
)
def test_sec_3_a_pattern_that_cannot_be_bounded_is_refused(pattern: str, reason: str) -> None:
    """It says why and what to do; again when it is asked for again."""
    patterns = Patterns(Work())
    for _ in range(2):
        with pytest.raises(BadPattern) as caught:
            patterns.matcher(pattern)
        assert str(caught.value).endswith(reason)
        assert caught.value.pattern == pattern


def test_sec_3_a_pattern_that_explodes_elsewhere_is_matched() -> None:
    """The text is as long as a payload can be."""
    assert not is_in("^([a-z]+)+$", "a" * 262_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a", 1),
        ("^[0-9a-f]{8}-[0-9a-f]{4}$", 15),
        ("[a-z]{0,5000}x", 5001),
        ("(a{10}){20}", 220),
        ("a{10}{20}", 200),
        ("(?:a|b){00000000000100}", 500),
        (r"\{9}\x{41}\p{L}", 5),
        (r"[\]{9}]{3}", 3),
        ("[[a]{9}]{3}", 3),
        ("[]{9}]{3}", 3),
        ("[^]{9}]{3}", 3),
        ("[(]{3}", 3),
        ("a{7,}", 7),
        ("a{2,7}?", 7),
    ],
)
def test_sec_3_a_patterns_counts_are_written_out(pattern: str, parts: int) -> None:
    """What looks like a count in a class or an escape is none."""
    assert Patterns(Work()).matcher(pattern).parts == parts


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("[a-z]{0,5000}x", "a" * 262_000), (r"\w{0,90}!", "\N{CJK UNIFIED IDEOGRAPH-6F22}" * 87_000)],
)
def test_sec_3_a_long_text_and_a_pattern_with_counts_are_too_much(pattern: str, text: str) -> None:
    """Without going back it would still take minutes; a shorter text is matched."""
    with pytest.raises(TooMuchWork):
        is_in(pattern, text)
    assert not is_in(pattern, text[:1000])


def test_sec_3_patterns_are_charged_before_they_are_made_ready() -> None:
    """A thousand large ones are too much, though none of them is."""
    patterns = Patterns(Work())
    ready = (patterns.matcher(rf"a{index}\w{{90}}") for index in range(1000))
    with pytest.raises(TooMuchWork):
        list(ready)


def test_sec_3_a_pattern_is_charged_once() -> None:
    """However often one check asks for it."""
    patterns = Patterns(Work(100_000))
    for _ in range(100):
        patterns.matcher(r"\w{80}")
