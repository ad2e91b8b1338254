"""What DynamoDB's items are made of: attributes, each told by its type, and how to read them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from psych_schema.base import format_instant

__all__ = [
    "Attribute",
    "Item",
    "binary",
    "binary_of",
    "boolean",
    "flag_of",
    "has",
    "instant",
    "integer_of",
    "item_of",
    "items_of",
    "number",
    "number_of",
    "size_of",
    "text",
    "text_of",
]

type Attribute = Mapping[str, object]
"""One value: S, N, B, BOOL or NS, and what it holds."""

type Item = Mapping[str, Attribute]


def text(value: str) -> Attribute:
    """Return a text as an attribute."""
    return {"S": value}


def number(value: float) -> Attribute:
    """Return a number as an attribute."""
    return {"N": repr(value)}


def binary(value: bytes) -> Attribute:
    """Return bytes as an attribute."""
    return {"B": value}


def boolean(value: bool) -> Attribute:
    """Return a flag as an attribute."""
    return {"BOOL": value}


def instant(value: datetime) -> Attribute:
    """Return an instant as an attribute: a text that sorts as instants do."""
    return {"S": format_instant(value)}


def has(item: Item, name: str) -> bool:
    """Tell whether an item has an attribute."""
    return name in item


def text_of(item: Item, name: str) -> str:
    """Return a text. ValueError: it is none."""
    value = _value(item, name, "S")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def binary_of(item: Item, name: str) -> bytes:
    """Return bytes. ValueError: it is none."""
    value = _value(item, name, "B")
    if not isinstance(value, bytes):
        raise ValueError(f"{name} is no binary")
    return value


def flag_of(item: Item, name: str) -> bool:
    """Return a flag. ValueError: it is none."""
    value = _value(item, name, "BOOL")
    if not isinstance(value, bool):
        raise ValueError(f"{name} is no flag")
    return value


def integer_of(item: Item, name: str) -> int:
    """Return an integer. ValueError: it is none."""
    value = _value(item, name, "N")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no number")
    return int(value)


def number_of(item: Item, name: str) -> float:
    """Return a number. ValueError: it is none."""
    value = _value(item, name, "N")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no number")
    return float(value)


def _value(item: Item, name: str, kind: str) -> object:
    found = item.get(name)
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} is missing")
    return found.get(kind)


def item_of(value: object) -> Item | None:
    """Return the item of an answer, None when it has none."""
    if not isinstance(value, Mapping) or not value:
        return None
    return value


def items_of(value: object) -> Sequence[Item]:
    """Return the items of an answer."""
    if not isinstance(value, Sequence):
        return ()
    return [item for each in value if (item := item_of(each)) is not None]


def size_of(item: Item) -> int:
    """Return how many bytes an item counts at most: names, and what they hold."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(attribute: Attribute) -> int:
    for value in attribute.values():
        if isinstance(value, bytes):
            return len(value)
        if isinstance(value, str):
            return len(value.encode())
    return 1
