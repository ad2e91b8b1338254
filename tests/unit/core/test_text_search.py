"""Lines are found by a pattern, in a text of any size and in bounded work (TOOL-6, SEC-3)."""

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.core._work import Work
from psych_runtime.core.text_search import Hit, TextSearch
from psych_runtime.errors import InvalidPayload
from tests.unit.effort import effort

LEAST_PIECE: Final = 4097
"""What a caller reads at least: a window, and one byte to see that it is not the last."""

WORDS: Final = ("a", "ab", "b", "é", "ä€", "😀", "1", "22", " ", "\r", "\x00", "x" * 40, '"', "\\")
PATTERNS: Final = (
    *("a", "ab+", "a.b", "^a", "b$", "^$", "^.{3,5}$", "é|1", "[^a]b", "(?:ab|22)+x", "x{41}"),
    *(r"\d{2,3}", r"\bab\b", r"\\", "€😀", "(?i)AB", r"\x00", ".*", "", "zzz", r"\s\S\s"),
)


def whole(data: bytes, size: Callable[[], int], pattern: str, **bounds: int) -> list[Hit]:
    """Return every hit, of as many searches as it takes, each in pieces of such a size."""
    hits: list[Hit] = []
    start = 0
    while True:
        search = TextSearch(pattern, start=start, max_bytes=bounds.get("max_bytes", 1 << 30))
        feed(search, data, size)
        hits += search.hits
        assert len(search.hits) <= 50
        if search.stop == len(data):
            return hits
        assert search.stop > start
        start = search.stop


def feed(search: TextSearch, data: bytes, size: Callable[[], int]) -> None:
    """Give a search the text from where it stands, as its caller does."""
    while not search.is_over:
        stop = min(search.stop + size(), len(data))
        search.look(data[search.stop : stop], is_last=stop == len(data))


def at_once() -> int:
    """Return the size of a piece that is everything."""
    return 1 << 30


def by_line(text: str, pattern: str) -> Iterator[Hit]:
    """Yield what Python's own engine finds; a line ends with LF or CRLF."""
    start = 0
    for whole_line in re.findall(r"[^\n]*\n|[^\n]+", text):
        line = re.sub(r"\r?\n\Z", "", whole_line)
        if re.search(pattern, line):
            yield Hit(start, line)
        start += len(whole_line.encode())


def written(random: Random, *, lines: int, most_words: int) -> str:
    """Return a text of short lines, with or without an end of its last one."""
    made = [
        "".join(random.choices(WORDS, k=random.randrange(most_words)))[:512] for _ in range(lines)
    ]
    return "\n".join(made) + random.choice(("", "\n"))


@given(seed=st.integers(min_value=0, max_value=1 << 32), pattern=st.sampled_from(PATTERNS))
@effort(120)
def test_tool_6_what_is_found_is_what_re_finds_line_by_line(seed: int, pattern: str) -> None:
    """Every line that matches, whole, and the byte that it begins at, in whatever pieces."""
    random = Random(seed)
    text = written(random, lines=random.randrange(300), most_words=random.choice((3, 12, 40)))
    expected = list(by_line(text, pattern))
    data = text.encode()
    assert whole(data, lambda: random.randrange(LEAST_PIECE, 9000), pattern) == expected
    assert whole(data, at_once, pattern, max_bytes=random.randrange(2000)) == expected


def long_line(random: Random, needles: int, gaps: range) -> str:
    """Return one line with a needle behind each gap."""
    filler = random.choice(("é", "😀€a", "x", "ab ", "€"))
    made = ""
    for number in range(needles):
        room = random.choice(gaps)
        made += (filler * room)[: random.randrange(room // 2, room)] + f"<needle-{number:02}>"
    return made + filler * random.randrange(5000)


@given(seed=st.integers(min_value=0, max_value=1 << 32))
@effort(60)
def test_tool_6_in_a_long_line_each_needle_is_found_once(seed: int) -> None:
    """With what stands around it, in pieces of whatever size; its first byte is the one named."""
    random = Random(seed)
    before = written(random, lines=random.randrange(5), most_words=5).replace("<", "")
    text = f"{before}\n{long_line(random, random.randrange(1, 20), range(9000, 16000))}\nshort"
    data = text.encode()
    hits = whole(data, lambda: random.randrange(LEAST_PIECE, 9000), r"<needle-\d\d>")
    found = [one for hit in hits for one in re.findall(r"<needle-\d\d>", hit.text)]
    assert found == re.findall(r"<needle-\d\d>", text)
    for hit in hits:
        assert data[hit.start :].startswith(hit.text.encode())
        assert len(hit.text) <= 512


@given(seed=st.integers(min_value=0, max_value=1 << 32))
@effort(60)
def test_tool_6_a_line_longer_than_what_is_shown_is_shown_around_the_match(seed: int) -> None:
    """One that fits a window is found once; the text behind `start` is what is shown."""
    random = Random(seed)
    room = random.randrange(600, 1000)
    line = "é" * random.randrange(room) + "needle" + "b" * (1200 - room)
    text = f"first\n{line}\nlast"
    [hit] = whole(text.encode(), at_once, "needle")
    assert "needle" in hit.text
    assert text.encode()[hit.start :].startswith(hit.text.encode())


@pytest.mark.parametrize("filler", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("place", [*range(4), 3583, 3584, 3585, 4000, 4085, 4090, 4095, 4096])
def test_tool_6_a_needle_at_the_edge_of_a_window_is_found_once(place: int, filler: str) -> None:
    """Also where the rest of the line is short, or a character would be cut in two."""
    wide = len(filler.encode())
    for rest in (0, 1, 90, 5000):
        text = "y" * (place % wide) + filler * (place // wide) + "<needle>" + filler * rest
        hits = whole(text.encode(), at_once, "<needle>")
        assert len(hits) == 1
        assert "<needle>" in hits[0].text
        assert text.encode()[hits[0].start :].startswith(hits[0].text.encode())


def test_tool_6_what_stands_behind_a_match_in_the_overlap_is_found() -> None:
    """The window behind it begins with a match that is known, and that is not its only one."""
    text = "x" * 3700 + "<one>" + "x" * 1000 + "<two>" + "x" * 6000 + "<three>"
    hits = whole(text.encode(), at_once, "<[a-z]+>")
    assert re.findall("<[a-z]+>", "".join(one.text for one in hits)) == [
        "<one>",
        "<two>",
        "<three>",
    ]


def test_tool_6_a_search_that_goes_on_shows_no_match_twice() -> None:
    """It begins in the overlap, where the last match may stand."""
    text = "".join("x" * 3580 + "<!>" for _ in range(120))
    hits = whole(text.encode(), at_once, "<!>")
    assert len(hits) == 120


def test_tool_6_at_most_fifty_lines_are_shown_at_once() -> None:
    """The search ends behind the last of them."""
    text = "no\n" + "yes\n" * 60
    search = TextSearch("yes", start=0, max_bytes=1 << 30)
    search.look(text.encode(), is_last=True)
    assert (len(search.hits), search.stop) == (50, 3 + 50 * 4)


def test_tool_6_lines_are_shown_up_to_a_bound_of_bytes() -> None:
    """A line costs its bytes and sixteen more; the last may go beyond the bound."""
    text = ("€" * 100 + "\n") * 20
    search = TextSearch("€", start=0, max_bytes=1000)
    search.look(text.encode(), is_last=True)
    assert (len(search.hits), search.stop) == (4, 4 * 301)


def test_tool_6_a_search_begins_anywhere() -> None:
    """In the middle of a line the rest of it is a line."""
    text = "an apple\nan apple"
    search = TextSearch("^apple", start=3, max_bytes=1000)
    search.look(text.encode()[3:], is_last=True)
    assert search.hits == [Hit(3, "apple")]


def test_tool_6_bytes_that_are_no_text_are_seen_to_be_none() -> None:
    """A file may say that it is text and be none; each such byte is a replacement character."""
    data = b"\xff\xfe\x00bad\nfine\n\xc3"
    search = TextSearch("bad|fine", start=0, max_bytes=1000)
    search.look(data, is_last=True)
    assert search.hits == [Hit(0, "\ufffd\ufffd\x00bad"), Hit(7, "fine")]


def test_tool_6_a_line_begins_at_its_byte_behind_bytes_that_are_no_text() -> None:
    """Also of a long one, of which a part is shown."""
    data = b"M\xfcller\r\n" + b"\xe4" * 1000 + b"needle\r\nM\xfcller"
    search = TextSearch("M.ller$|needle$", start=0, max_bytes=10_000)
    search.look(data, is_last=True)
    first, second, third = search.hits
    assert (first, third) == (Hit(0, "M\ufffdller"), Hit(data.rindex(b"M"), "M\ufffdller"))
    assert second.text.endswith("\ufffdneedle")
    assert data[second.start :].startswith(b"\xe4" * second.text.count("\ufffd") + b"needle")


MOST_AT_ONCE: Final = 1_100_000
"""What one look at a window may cost, in which nothing can stop it."""

NESTED: Final = "(" * 200 + "a" + ")" * 200
HOSTILE: Final = {
    "a plus of a plus": "(a+)+$",
    "alternatives that overlap": "(a|aa)+$",
    "stars": "a*" * 100 + "b",
    "counts in counts": "((a{1,40}){1,40}){1,40}",
    "a large count": "a{100000}",
    "more parts than one look may follow": "a{3000}",
    "a count beyond any": "a{99999999999}",
    "a large class": "[" + "".join(chr(0x100 + 2 * one) for one in range(900)) + "]+$",
    "wide classes counted": r"\w{500}\W{500}",
    "many alternatives": "|".join("abc"[one % 3] for one in range(500)),
    "ten thousand alternatives": "|".join(f"w{one}" for one in range(10_000)),
    "look-ahead": "a(?=b)",
    "look-behind": "(?<!a)b",
    "a back-reference": r"(a)\1",
    "a name that nobody has": "(?P=one)",
    "an open bracket": "(a",
    "an open class": "[a",
    "a range upside down": "[z-a]",
    "nothing to repeat": "*a",
    "an open count": "a{2,",
    "a count upside down": "a{3,1}",
    "a lone escape": "a\\",
    "no such property": r"\p{Nothing}",
    "verbose": "(?x) a b",
    "half a pair": "a\ud800",
    "NUL": "\x00+",
    "deep": NESTED,
    "deeper": "(" * 500 + ")" * 500,
    "too long": "a" * 1025,
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE.keys())
def test_sec_3_a_hostile_pattern_is_refused_or_stops(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never fails in another way, and never does more than its steps allow."""
    spent = counted(monkeypatch)
    refusals: list[InvalidPayload] = []
    for text in ("a" * 200_000 + "!", ("a" * 400 + "!\n") * 500, "é" * 100_000):
        data = text.encode()
        try:
            search = TextSearch(pattern, start=0, max_bytes=1 << 30)
        except InvalidPayload as error:
            refusals.append(error)
            continue
        feed(search, data, at_once)
        assert 0 <= search.stop <= len(data)
        assert search.is_over
        assert sum(spent) <= 4_000_000
        assert max(spent) <= MOST_AT_ONCE
        spent.clear()
    assert len(refusals) in (0, 3)
    assert all(one.what == "pattern" and len(one.problem) < 2000 for one in refusals)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what is spent from now on; what a spending refuses was not done."""
    spent: list[int] = []
    spend = Work.spend

    def counting(work: Work, steps: int) -> None:
        spend(work, steps)
        spent.append(steps)

    monkeypatch.setattr(Work, "spend", counting)
    return spent


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(?=b)", "look-around"),
        (r"(a)\1", "backreferences are not supported"),
        ("(a", "unclosed group"),
        ("a" * 1025, "has 1025 characters, the bound is 1024"),
        ("((a{1,40}){1,40}){1,40}", "is too large once its counts are written out"),
    ],
)
def test_sec_3_a_pattern_is_refused_with_the_reason(pattern: str, words: str) -> None:
    """The model can write another one."""
    with pytest.raises(InvalidPayload) as caught:
        TextSearch(pattern, start=0, max_bytes=1000)
    assert caught.value.what == "pattern"
    assert words in caught.value.problem


def test_sec_3_a_search_whose_steps_are_spent_says_where() -> None:
    """Another one goes on there, with as many steps again, up to the end of the text."""
    pattern = "(?:a|b|c|d|e|f|g|h){60}Z"
    data = ("abcdefgh" * 50 + "\n").encode() * 2000
    stops = [0]
    while stops[-1] < len(data):
        search = TextSearch(pattern, start=stops[-1], max_bytes=1000)
        feed(search, data, at_once)
        assert search.stop > stops[-1]
        assert (search.stop - stops[-1]) % 401 == 0
        stops.append(search.stop)
    assert len(stops) > 3
