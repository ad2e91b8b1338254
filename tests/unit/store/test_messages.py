"""What processes tell one another by NOTIFY (R-1)."""

import pytest

from psych_runtime.store._notices import Hint, News, mark_of
from psych_runtime.store.sql.postgresql._message import Message, is_of, read_message, written

ACME = mark_of("acme")


def test_r_1_what_is_written_is_read() -> None:
    """Heads, ends, headers that were touched, and work; names that look like the format, too."""
    news = News(
        {("acme", "run_1"): 7, ("acme", "a:b"): 9, ("globex", "run_2"): 1},
        {("acme", "run_3"): 4, ("acme", "run_4"): 5},
        frozenset({("acme", "a:b"), ("acme", "run_4")}),
        work=True,
    )
    (text,) = written("me", news)
    assert read_message(text) == Message(
        [
            Hint(ACME, "run_1", 7, over=False, touched=False),
            Hint(ACME, "a:b", 9, over=True, touched=False),
            Hint(mark_of("globex"), "run_2", 1, over=False, touched=False),
            Hint(ACME, "run_3", 4, over=False, touched=True),
            Hint(ACME, "run_4", 5, over=True, touched=True),
        ],
        work=True,
    )
    assert is_of("me", text)
    assert not is_of("m", text)


def test_r_1_no_tenant_is_told() -> None:
    """A mark stands for it, the same in every process."""
    (text,) = written("me", News({("acme", "run_1"): 7}, over=frozenset()))
    assert text == "2 me 0 5db12e4c:7:m:run_1"


def test_r_1_a_message_is_no_longer_than_the_server_takes() -> None:
    """Many Runs are several messages, and none is lost; an id counts by its bytes."""
    heads = {("acme", f"run_{'ü' * 20}{number}"): number for number in range(500)}
    texts = written("me", News(heads, over=frozenset(), work=True))
    assert len(texts) == 4
    assert max(len(text.encode()) for text in texts) <= 7900
    read = [read_message(text) for text in texts]
    hints = [hint for message in read if message is not None for hint in message.hints]
    assert {("acme", hint.run_id): hint.head for hint in hints} == heads


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "2 me",
        "2 me 2",
        "3 me 1",
        "run_1,run_2",
        "2 me 1 ",
        f"2 me 1 {ACME}:7:m",
        f"2 me 1 {ACME}:seven:m:run_1",
        f"2 me 1 {ACME}:7:q:run_1",
    ],
)
def test_r_1_what_another_build_writes_says_nothing(text: str) -> None:
    """It is no error either."""
    assert read_message(text) is None
