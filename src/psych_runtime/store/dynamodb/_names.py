"""Where items are: the tables under a prefix, and the keys beside the generated ones.

The generated keys escape `#` and `%`, so that two names never share a key. What does not fit
DynamoDB's bounds for keys is refused, never cut.
"""

import zlib
from datetime import datetime
from typing import Final, NamedTuple

from psych_runtime.errors import PayloadTooLarge
from psych_runtime.store.dynamodb._wire import Attribute, text
from psych_schema.dynamodb import kv_key

__all__ = [
    "LAYOUT",
    "META",
    "RUN_SHARDS",
    "Key",
    "Tables",
    "bounded",
    "escaped",
    "fits",
    "holder_key",
    "key_of",
    "month_of",
    "months_key",
    "piece_key",
    "purge_key",
    "shard_of",
    "text_piece_key",
    "unescaped",
    "value_key",
]

type Key = dict[str, Attribute]

LAYOUT: Final = 1  # of the items; another number is another layout
RUN_SHARDS: Final = 4  # over which one tenant's Runs are spread
_PARTITION_BYTES: Final = 2048
_SORT_BYTES: Final = 1024

META: Final = {"pk": "meta", "sk": "-"}
"""Says which layout the tables have, and in how many shards the indexes are."""


class Tables(NamedTuple):
    """The three tables by their names in DynamoDB."""

    run: str
    log: str
    item: str

    @classmethod
    def under(cls, prefix: str) -> "Tables":
        """Return the tables, each named `prefix` + its name."""
        return cls(f"{prefix}run", f"{prefix}log", f"{prefix}item")


def key_of(names: dict[str, str]) -> Key:
    """Return a key. PayloadTooLarge: a part is above DynamoDB's bound."""
    return {name: text(bounded(name, value)) for name, value in names.items()}


def bounded(name: str, value: str) -> str:
    """Return a part of a key, which is named `name`. PayloadTooLarge: it is above the bound."""
    bound = _SORT_BYTES if name.endswith("sk") else _PARTITION_BYTES
    size = len(value.encode())
    if size > bound:
        what = f"a name in the DynamoDB key {name} ({value[:40]}...)"
        raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=bound)
    return value


def fits(run_id: str) -> bool:
    """Tell whether an item could be found under this id: no key is empty, or too long."""
    return 0 < len(escaped(run_id).encode()) <= _SORT_BYTES


def escaped(name: str) -> str:
    """Return a name as the generated keys write it: without `#`."""
    return name.replace("%", "%25").replace("#", "%23")


def unescaped(name: str) -> str:
    """Return the name that `escaped` has written."""
    return name.replace("%23", "#").replace("%25", "%")


def shard_of(tenant: str, run_id: str, shards: int) -> int:
    """Return where a Run is in the sharded indexes: a tenant has four shards of `shards`."""
    groups = max(1, shards // RUN_SHARDS)
    own = min(RUN_SHARDS, shards)
    return zlib.crc32(tenant.encode()) % groups * own + zlib.crc32(run_id.encode()) % own


def month_of(instant: datetime) -> int:
    """Return the months since 1970: a tenant's list is kept a month at a time."""
    return max(0, (instant.year - 1970) * 12 + instant.month - 1)


def piece_key(base: dict[str, str], piece: int) -> dict[str, str]:
    """Return where a piece of a commit is: the first at the commit's key, the others behind."""
    return base if piece == 0 else {**base, "sk": f"{base['sk']}#{piece:03}"}


def text_piece_key(base: dict[str, str], digest: str, piece: int) -> dict[str, str]:
    """Return where a piece of a long text is: beside the item that names it."""
    return {**base, "sk": f"{base['sk']}#{digest}#{piece:04}"}


def holder_key(*, worker: str) -> dict[str, str]:
    """Where it stands that a worker has ever held a Run: its row may be missing."""
    return {"pk": "holder", "sk": escaped(worker)}


def value_key(*, tenant: str, kind: str, key: str) -> dict[str, str]:
    """Where a small value is; nothing stands beside its key, which sorts as it is."""
    return {**kv_key(tenant=tenant, kind=kind, key=""), "sk": key}


def months_key(*, tenant: str) -> dict[str, str]:
    """Where it stands in which months a tenant's Runs were made."""
    return {"pk": f"months#{escaped(tenant)}", "sk": "-"}


def purge_key(*, purge: str) -> dict[str, str]:
    """Where it stands what is left to delete of Runs that are gone."""
    return {"pk": "purge", "sk": purge}
