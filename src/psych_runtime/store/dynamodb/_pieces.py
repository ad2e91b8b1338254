"""How the records of a commit are kept in the log: one item, or several when it is long.

A commit's bodies are one text and its contents another, each cut where an item is full. So a
record may be larger than an item, and its content can be taken off while its body stays.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from psych_runtime.errors import CorruptRow
from psych_runtime.store.dynamodb._names import key_of, piece_key
from psych_runtime.store.dynamodb._wire import (
    Attribute,
    Item,
    binary,
    binary_of,
    has,
    integer_of,
    number,
    text,
    text_of,
)
from psych_schema.dynamodb import record_key
from psych_schema.store import RecordRow

__all__ = ["PIECE_BYTES", "Entry", "decode", "encode", "grouped", "is_whole", "keys_of"]

PIECE_BYTES: Final = 380_000
"""How much text an item takes: DynamoDB's bound is 409,600 bytes with everything."""


class Entry(NamedTuple):
    """What the records of one commit to one Run are kept with.

    Attributes:
        commit_id: whose they are.
        keys: the requests that came with them, by Run and key, to be deleted with the Run.
        edition: how often the entry was written; pieces of two editions do not belong together.
    """

    commit_id: str
    keys: Sequence[tuple[str, str]] = ()
    edition: int = 0


def encode(rows: Sequence[RecordRow], entry: Entry) -> list[dict[str, Attribute]]:
    """Return the items that hold `rows`, which follow one another in one log."""
    last = rows[-1]
    bodies = [row.body.encode() for row in rows]
    contents = [None if row.content is None else row.content.encode() for row in rows]
    first = _first(rows, bodies, contents, entry)
    streams = {"body": b"".join(bodies), "content": b"".join(part for part in contents if part)}
    pieces = _cut(streams, PIECE_BYTES - _meta_bytes(first))
    base = record_key(run_id=last.run_id, last_seq=last.seq)
    items: list[dict[str, Attribute]] = []
    for place, piece in enumerate(pieces):
        item: dict[str, Attribute] = {**key_of(piece_key(base, place))}
        item["edition"] = number(entry.edition)
        item["commit"] = text(entry.commit_id)
        item |= {name: binary(part) for name, part in piece.items()}
        items.append(item)
    items[0] |= first
    items[0]["parts"] = number(len(items))
    return items


def _first(
    rows: Sequence[RecordRow],
    bodies: Sequence[bytes],
    contents: Sequence[bytes | None],
    entry: Entry,
) -> dict[str, Attribute]:
    """Return what only the first piece says: how long each text is, the salts and the keys."""
    first = {
        "tenant": text(rows[-1].tenant),
        "rows": _json([[row.type, len(body)] for row, body in zip(rows, bodies, strict=True)]),
    }
    if any((row.content, row.salt) != (None, None) for row in rows):
        lengths = [None if part is None else len(part) for part in contents]
        pairs = zip(lengths, (row.salt for row in rows), strict=True)
        first["salts"] = _json([list(pair) for pair in pairs])
    if entry.keys:
        first["keys"] = _json([list(pair) for pair in entry.keys])
    return first


def _json(value: object) -> Attribute:
    return text(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _meta_bytes(first: Mapping[str, Attribute]) -> int:
    return min(PIECE_BYTES // 2, sum(len(str(value["S"]).encode()) for value in first.values()))


def _cut(streams: Mapping[str, bytes], room: int) -> list[dict[str, bytes]]:
    """Return the streams cut into pieces; the first has `room`, each at most PIECE_BYTES."""
    pieces: list[dict[str, bytes]] = [{}]
    for name, stream in streams.items():
        at = 0
        while at < len(stream):
            if room <= 0:
                pieces.append({})
                room = PIECE_BYTES
            part = stream[at : at + room]
            pieces[-1][name] = part
            at += len(part)
            room -= len(part)
    return pieces


def grouped(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Give the items of each commit, as they lie in a log."""
    for _, pieces in groupby(items, lambda item: text_of(item, "sk")[:12]):
        yield list(pieces)


def is_whole(pieces: Sequence[Item]) -> bool:
    """Tell whether the pieces of a commit are all there, and of one edition."""
    first = pieces[0]
    if not has(first, "parts") or integer_of(first, "parts") != len(pieces):
        return False
    edition = integer_of(first, "edition")
    return all(integer_of(piece, "edition") == edition for piece in pieces)


def keys_of(first: Item) -> list[tuple[str, str]]:
    """Return the requests that came with a commit, by Run and key."""
    if not has(first, "keys"):
        return []
    pairs: list[list[str]] = json.loads(text_of(first, "keys"))
    return [(run_id, key) for run_id, key in pairs]


def decode(run_id: str, pieces: Sequence[Item]) -> list[RecordRow]:
    """Return the records of a commit whose pieces are whole. Raises CorruptRow."""
    try:
        return _decode(run_id, pieces)
    except (ValueError, TypeError) as error:
        problem = str(error).splitlines()[0]
        seq = text_of(pieces[0], "sk")
        raise CorruptRow(table="record", key=f"{run_id} {seq}", problem=problem) from None


def _decode(run_id: str, pieces: Sequence[Item]) -> list[RecordRow]:
    first = pieces[0]
    rows: list[tuple[str, int]] = json.loads(text_of(first, "rows"))
    bodies, contents = _joined(pieces, "body"), _joined(pieces, "content")
    salts: list[tuple[int | None, str | None]] = [(None, None)] * len(rows)
    if has(first, "salts"):
        salts = json.loads(text_of(first, "salts"))
    tenant = text_of(first, "tenant")
    seq = int(text_of(first, "sk")) - len(rows)
    found: list[RecordRow] = []
    body_at = content_at = 0
    for place, ((kind, body_bytes), (content_bytes, salt)) in enumerate(
        zip(rows, salts, strict=True), 1
    ):
        body = _slice(bodies, body_at, body_bytes)
        content = None if content_bytes is None else _slice(contents, content_at, content_bytes)
        body_at += body_bytes
        content_at += content_bytes or 0
        found.append(
            RecordRow(
                run_id=run_id,
                seq=seq + place,
                tenant=tenant,
                type=kind,
                body=body,
                content=content,
                salt=salt,
            )
        )
    return found


def _joined(pieces: Sequence[Item], name: str) -> bytes:
    return b"".join(binary_of(piece, name) for piece in pieces if has(piece, name))


def _slice(stream: bytes, at: int, size: int) -> str:
    if at + size > len(stream):
        raise ValueError("a text is cut short")
    return stream[at : at + size].decode()
