"""Where a Run's blobs are: names of tenants and Runs as parts of a path that every place keeps.

A part is made of `a-z 0-9 _ -` alone and has at most 202 characters: no place folds, normalises,
reserves or shortens it, and it is never `.`, `..` or empty. A name of such characters stays
readable, behind `n-`. Any other is the base32 of its UTF-8, cut into parts behind `m-` (more
follows) and `e-` (the end). Each name has one form, so that two never meet, and each form says
where it ends, so that a path is read back without looking anything up.
"""

import base64
import re
from collections.abc import Iterator
from typing import Final

from psych_runtime.ports.blob import BlobOwner

__all__ = ["ends_name", "is_hash", "owner_of", "parts_of"]

_PLAIN: Final = re.compile(r"[a-z0-9_-]{1,100}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_PART_CHARACTERS: Final = 200
_PADDING: Final = 8  # base32 counts in groups of eight characters


def is_hash(text: str) -> bool:
    """Tell whether a blob may have this name."""
    return _HASH.fullmatch(text) is not None


def parts_of(owner: BlobOwner) -> tuple[str, ...]:
    """Return the path of an owner's blobs, part by part."""
    return (*_encoded(owner.tenant), *_encoded(owner.run_id))


def ends_name(part: str) -> bool:
    """Tell whether a name ends with this part of a path."""
    return part.startswith(("n-", "e-"))


def owner_of(parts: tuple[str, ...]) -> BlobOwner | None:
    """Return whose path this is; None: not one that `parts_of` gives."""
    names = list(_decoded(parts))
    if len(names) != 2:
        return None
    owner = BlobOwner(*names)
    return owner if parts_of(owner) == parts else None


def _encoded(name: str) -> Iterator[str]:
    if _PLAIN.fullmatch(name):
        yield f"n-{name}"
        return
    text = base64.b32encode(name.encode()).decode("ascii").rstrip("=").lower()
    while len(text) > _PART_CHARACTERS:
        yield f"m-{text[:_PART_CHARACTERS]}"
        text = text[_PART_CHARACTERS:]
    yield f"e-{text}"


def _decoded(parts: tuple[str, ...]) -> Iterator[str]:
    text = ""
    for part in parts:
        mark, rest = part[:2], part[2:]
        if mark == "n-":
            yield rest if _PLAIN.fullmatch(rest) else ""
        elif mark == "e-":
            yield _plain_text(text + rest)
            text = ""
        else:
            text += rest


def _plain_text(text: str) -> str:
    padding = "=" * (-len(text) % _PADDING)
    try:
        return base64.b32decode(text.upper() + padding).decode()
    except ValueError:
        return ""  # whose own path is another one
