"""Logs as nobody writes them: rows altered, and rows placed anew behind what was altered."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.codec import sha256
from psych_schema.store import RecordRow

__all__ = ["altered_rows", "placed_anew"]

type Path = tuple[str | int, ...]

OTHERS: Final[tuple[JsonValue, ...]] = (
    None,
    True,
    -1,
    10**30,
    0.5,
    "",
    "\x00",
    [None],
    {"a": [{}]},
)
"""A value of every type, some of them at the edge."""


class _Gone:
    """The mark of a field that is not there."""


GONE: Final = _Gone()


def paths(value: JsonValue, at: Path = ()) -> Iterator[Path]:
    """Yield the place of every value inside `value`."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield (*at, name)
            yield from paths(one, (*at, name))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield (*at, place)
            yield from paths(one, (*at, place))


def value_at(document: JsonValue, path: Path) -> JsonValue:
    """Return what stands at a place."""
    for step in path:
        if isinstance(document, dict):
            document = document[str(step)]
        elif isinstance(document, list):
            document = document[int(step)]
    return document


def with_value(document: JsonValue, path: Path, value: JsonValue | _Gone) -> JsonValue:
    """Return a copy of `document` with another value, or none, at a place."""
    [step, *rest] = path
    if isinstance(document, dict) and isinstance(step, str):
        members = dict(document)
        if rest:
            members[step] = with_value(members[step], tuple(rest), value)
        elif isinstance(value, _Gone):
            del members[step]
        else:
            members[step] = value
        return members
    assert isinstance(document, list)
    assert isinstance(step, int)
    items = list(document)
    if rest:
        items[step] = with_value(items[step], tuple(rest), value)
    elif isinstance(value, _Gone):
        del items[step]
    else:
        items[step] = value
    return items


def flipped(value: JsonValue) -> Iterator[JsonValue]:
    """Yield values of the same type that say something else."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        yield value - 1
    elif isinstance(value, float):
        yield value + 1.5
    elif isinstance(value, str) and value:
        yield value + "x"
        yield value[:-1]
        yield value[:-1] + ("1" if value[-1] == "0" else "0")
        yield value.swapcase()


def dumped(document: JsonValue) -> str:
    """Return JSON as the codec writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def altered_rows(row: RecordRow) -> Iterator[tuple[str, RecordRow]]:
    """Yield (where, row) with one value anywhere flipped, removed or of another type.

    A content that is altered is that which the body's digest names, so that it is read at all.
    """
    body: JsonValue = json.loads(row.body)
    for path in paths(body):
        for value in _instead_of(value_at(body, path)):
            text = dumped(with_value(body, path, value))
            yield _name(path), row.model_copy(update={"body": text})
    if row.content is None or row.salt is None:
        return
    content: JsonValue = json.loads(row.content)
    for path in ((), *paths(content)):
        for value in _instead_of(value_at(content, path)):
            if isinstance(value, _Gone) and not path:
                continue
            new = value if not path else with_value(content, path, value)
            assert not isinstance(new, _Gone)
            yield "content" + _name(path), with_content(row, dumped(new))


def with_content(row: RecordRow, content: str) -> RecordRow:
    """Return the row with another content, and the digest of it."""
    digest = sha256((row.salt or "") + content)
    body = dumped(with_value(json.loads(row.body), ("content_digest",), digest))
    return row.model_copy(update={"body": body, "content": content})


def _instead_of(value: JsonValue) -> Iterator[JsonValue | _Gone]:
    yield GONE
    yield from (one for one in flipped(value) if one != value)
    yield from (one for one in OTHERS if type(one) is not type(value) or one != value)


def _name(path: Path) -> str:
    return "".join(f"/{step}" for step in path)


def placed_anew(rows: Sequence[RecordRow], first: int = 0) -> list[RecordRow]:
    """Return rows that follow one another: seq, prev and `at` are made to fit from `first` on.

    What cannot be read as an object stays as it is; the epoch, the ids and all else, too.
    """
    placed = list(rows[:first])
    prev = sha256(placed[-1].body) if placed else None
    at = json.loads(placed[-1].body)["at"] if placed else ""
    for seq, row in enumerate(rows[first:], first + 1):
        try:
            body: object = json.loads(row.body)
        except ValueError:
            body = None
        if isinstance(body, dict):
            body |= {"seq": seq, "at": max(at, str(body.get("at")))}
            body |= {} if prev is None else {"prev": prev}
            at = body["at"]
            row = row.model_copy(update={"seq": seq, "body": dumped(body)})
        prev = sha256(row.body)
        placed.append(row)
    return placed
