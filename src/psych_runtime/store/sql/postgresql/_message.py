"""What one process tells the others by NOTIFY: how far Runs are, and whether there is work (R-1).

Who listens may be anybody in the database: a Run's tenant is a mark, and nothing of its log is
told. A message that another build wrote in another way says nothing here.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from psych_runtime.store._notices import Hint, News, mark_of

__all__ = ["Message", "is_of", "read_message", "written"]

_FORMAT: Final = "2"
_MOST_BYTES: Final = 7_900  # of a notification
_KINDS: Final = {
    "m": (False, False),  # moved
    "e": (True, False),  # moved, and is over
    "t": (False, True),  # touched: its header alone has changed
    "x": (True, True),  # touched, and is over
}
_LETTERS: Final = {kind: letter for letter, kind in _KINDS.items()}


class Message(NamedTuple):
    """What a message says; `work`: Runs may have become claimable."""

    hints: list[Hint]
    work: bool


def written(sender: str, news: News) -> list[str]:
    """Return news as messages, as few as will do."""
    first = f"{_FORMAT} {sender} {int(news.work)}"
    messages: list[str] = []
    text, size = first, len(first)
    for part in _parts(news):
        length = len(part.encode()) + 1
        if size + length > _MOST_BYTES and text != first:
            messages.append(text)
            text, size = first, len(first)
        text, size = f"{text} {part}", size + length
    return [*messages, text]


def _parts(news: News) -> Iterator[str]:
    over = news.over or ()
    for touched, heads in ((False, news.heads), (True, news.touched)):
        for name, head in heads.items():
            letter = _LETTERS[name in over, touched]
            yield f"{mark_of(name[0])}:{head}:{letter}:{name[1]}"


def is_of(sender: str, text: str) -> bool:
    """Tell whether a message is the sender's own."""
    return text.startswith(f"{_FORMAT} {sender} ")


def read_message(text: str) -> Message | None:
    """Return what a message says; None: it is none of this format."""
    parts = text.split(" ")
    if len(parts) < 3 or parts[0] != _FORMAT or parts[2] not in ("0", "1"):
        return None
    try:
        return Message([_hint(part) for part in parts[3:]], parts[2] == "1")
    except (ValueError, KeyError):
        return None


def _hint(part: str) -> Hint:
    mark, head, letter, run_id = part.split(":", 3)
    over, touched = _KINDS[letter]
    return Hint(mark, run_id, int(head), over, touched)
