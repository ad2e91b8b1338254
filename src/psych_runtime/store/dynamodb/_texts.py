"""Texts that are kept once, by their hash: Versions and documents.

One that is longer than an item is cut into pieces. They are written first, and the item that names
them last, where none stands: whoever finds that item finds them all. Pieces stand under a digest of
their own text, so two texts that are given one hash never mix. Nothing ever removes a Version or a
document; pieces that nobody named are named when their text is kept again.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

from psych_runtime.errors import CorruptRow
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._names import Key, key_of, text_piece_key
from psych_runtime.store.dynamodb._pieces import PIECE_BYTES
from psych_runtime.store.dynamodb._wire import (
    Attribute,
    Item,
    binary,
    binary_of,
    has,
    instant,
    integer_of,
    number,
    size_of,
    text,
    text_of,
)
from psych_schema.dynamodb import document_key, version_key

__all__ = ["keep_text", "read_text"]

_ITEM_BYTES: Final = 400_000
_COLUMNS: Final = {"version": "document", "document": "text"}

type _Kind = Literal["version", "document"]


async def keep_text(
    ask: Ask, kind: _Kind, tenant: str, hash: str, value: str, columns: Mapping[str, str | datetime]
) -> None:
    """Keep a text by its hash, once."""
    more = [each for each in columns.values() if isinstance(each, str)]
    check_storable(tenant, hash, value, *more)
    item: dict[str, Attribute] = {"tenant": text(tenant), "hash": text(hash)}
    item |= {
        name: text(each) if isinstance(each, str) else instant(each)
        for name, each in columns.items()
    }
    base = _base(kind, tenant, hash)
    item |= key_of(base)
    whole = {**item, _COLUMNS[kind]: text(value)}
    if size_of(whole) <= _ITEM_BYTES:
        await ask.put_new(ask.tables.item, whole)
    elif await ask.get(ask.tables.item, key_of(base)) is None:
        await _keep_pieces(ask, base, item, value.encode())


async def _keep_pieces(
    ask: Ask, base: dict[str, str], item: Mapping[str, Attribute], data: bytes
) -> None:
    parts = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    digest = sha256(data).hexdigest()
    keys = _piece_keys(base, digest, len(parts))
    table = ask.tables.item
    await asyncio.gather(
        *[
            ask.put(table, {**key, "part": binary(part)})
            for key, part in zip(keys, parts, strict=True)
        ]
    )
    named = {**item, "parts": number(len(parts)), "digest": text(digest)}
    if not await ask.put_new(table, named):
        there = await ask.get(table, key_of(base))
        if there is None or there.get("digest") != text(digest):  # another text came first
            await ask.delete_many((table, key) for key in keys)


async def read_text(ask: Ask, kind: _Kind, tenant: str, hash: str) -> str | None:
    """Return a text by its hash. Raises CorruptRow."""
    check_storable(tenant, hash)
    base = _base(kind, tenant, hash)
    item = await ask.get(ask.tables.item, key_of(base))
    if item is None:
        return None
    try:
        if has(item, "parts"):
            return await _read_pieces(ask, base, item)
        return text_of(item, _COLUMNS[kind])
    except ValueError as error:
        raise CorruptRow(table=kind, key=hash, problem=str(error)) from None


async def _read_pieces(ask: Ask, base: dict[str, str], item: Item) -> str:
    digest = text_of(item, "digest")
    keys = _piece_keys(base, digest, integer_of(item, "parts"))
    found = await ask.get_many((ask.tables.item, key) for key in keys)
    pieces = sorted(found.get(ask.tables.item, ()), key=lambda piece: text_of(piece, "sk"))
    data = b"".join(binary_of(piece, "part") for piece in pieces)
    if sha256(data).hexdigest() != digest:
        raise ValueError("a piece of its text is missing")
    return data.decode()


def _base(kind: _Kind, tenant: str, hash: str) -> dict[str, str]:
    named = version_key if kind == "version" else document_key
    return named(tenant=tenant, hash=hash)


def _piece_keys(base: dict[str, str], digest: str, count: int) -> list[Key]:
    return [key_of(text_piece_key(base, digest, place)) for place in range(count)]
