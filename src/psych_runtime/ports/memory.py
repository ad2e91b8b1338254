"""The port for what agents remember: short texts under keys, of a principal or of a tenant.

A contract suite for adapters is `psych_runtime.memory.contract`.
"""

import json
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from psych_schema.common import Scope

__all__ = [
    "MAX_MEMORY_BYTES",
    "MAX_MEMORY_ENTRIES",
    "MAX_MEMORY_ENTRY_BYTES",
    "MAX_MEMORY_KEY_CHARACTERS",
    "MemoryEntry",
    "MemoryStore",
    "entry_bytes",
]

MAX_MEMORY_KEY_CHARACTERS: Final = 128
MAX_MEMORY_ENTRY_BYTES: Final = 8_000  # as `entry_bytes` counts them
MAX_MEMORY_ENTRIES: Final = 200  # of one owner
MAX_MEMORY_BYTES: Final = 200_000  # of one owner's entries together


class MemoryEntry(NamedTuple):
    """What is remembered under a key; `remembered_at` is by the clock of whoever wrote it."""

    key: str
    value: str
    remembered_at: datetime


class MemoryStore(Protocol):
    """Keeps what agents remember, apart for each owner.

    The owner is the tenant and the principal of a scope; a scope without a principal has the
    tenant's own entries, which no principal sees. Attributes tell nobody apart. Names are any
    Unicode, told apart to the last byte.

    Called on the executor's loop, several calls at a time; a method may await and must not block.
    Every method may raise StoreUnavailable, which promises nothing: the caller repeats, and
    repeating any call is safe. Another StoreError says that the place cannot be used. A text with
    U+0000, or one that is no Unicode, is InvalidPayload. Anything else that is not named is a bug
    of the adapter. Who makes an adapter closes what it is made of.
    """

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        """Keep a text durably, then return; under the same key it takes the old one's place.

        The entry is the newest one then. InvalidPayload: a key has 1 to
        MAX_MEMORY_KEY_CHARACTERS characters. PayloadTooLarge above MAX_MEMORY_ENTRY_BYTES.
        MemoryFull: the owner has as much as may be kept, until something is forgotten. Nothing
        has changed then.
        """

    async def forget(self, scope: Scope, key: str) -> bool:
        """Delete an entry; False when there is none."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        """Return the owner's entries, newest first, at most `limit`.

        Of a query, each word between spaces must occur in the key or in the value, whatever its
        case; no word is a pattern. None, or a query without a word, is all of them.
        InvalidArgument for a limit below 1.
        """


def entry_bytes(key: str, value: str) -> int:
    """Return what an entry counts: the bytes of key and value as JSON texts in UTF-8."""
    return len(json.dumps([key, value], ensure_ascii=False).encode())
