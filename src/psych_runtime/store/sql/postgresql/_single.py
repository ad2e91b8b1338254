"""The statement for a unit of its own, with plain parameters: half the price of that for many.

It judges by its conditions alone, at the row that it locks: what it does not write, for whatever
reason, is judged by the statement for many, which alone knows refusals and counts for caps.
"""

import json
from functools import lru_cache
from typing import Final, NamedTuple

from psych_runtime.ports.store import Admit
from psych_runtime.store.sql._batch import Batch, Given
from psych_runtime.store.sql._database import Param
from psych_runtime.store.sql._rows import header_values
from psych_runtime.store.sql._statement import load
from psych_schema.store import KeyRow, RecordRow

__all__ = ["Single", "single", "single_text"]

_PACKAGE: Final = "psych_runtime.store.sql.postgresql"

_LEFT_ALONE: Final[dict[str, Param]] = dict.fromkeys(
    (
        *("fence", "head", "head_hash", "head_at", "newest", "state", "sets_worker", "worker"),
        *("epoch", "crashes", "sets_wake", "wake_at", "wake_after", "sets_deadline"),
        *("deadline_after", "sets_remaining", "keeps_remaining", "abort", "referenced"),
        *("opened", "closed"),
    )
)
"""A change that says nothing."""


class Single(NamedTuple):
    """A statement that answers one row when it has written its unit, and else wrote nothing.

    `moves`: a state changes, which it leaves to the other statement where a cap counts.
    """

    text: str
    values: dict[str, Param]
    tenant: str
    moves: bool


def single(prefix: str, batch: Batch) -> Single | None:
    """Return the statement for a batch of one unit with one change and at most one key."""
    if len(batch.changes) != 1 or len(batch.units) != 1 or len(batch.keys) > 1:
        return None
    change = batch.units[0].changes[0]
    admits, names = isinstance(change, Admit), bool(batch.keys)
    text = single_text(prefix, admits=admits, names=names, several=len(change.records) != 1)
    values = _of_admission(change) if isinstance(change, Admit) else _of_change(batch.changes[0])
    values |= _of_records([row for _, row in batch.records])
    for _, _, key in batch.keys:
        values |= _of_key(key)
    return Single(text, values, batch.units[0].tenant, batch.moves)


@lru_cache(maxsize=32)
def single_text(prefix: str, *, admits: bool, names: bool, several: bool) -> str:
    """Return the statement.

    Args:
        prefix: of the tables.
        admits: whether the change is an admission.
        names: whether there is a key.
        several: whether there are no records, or more than one.
    """
    pieces = load(_PACKAGE, "single.sql", prefix)
    header = pieces["admitted" if admits else "changed"]
    steps = [
        header.replace("\n{unknown}", "\n" + pieces["unknown"] if names else ""),
        pieces["records" if several else "one_record"],
        *([pieces["new_key"]] if names else ()),
    ]
    return "WITH " + ",\n".join(steps) + "\n" + pieces["answer"]


def _of_change(given: Given) -> dict[str, Param]:
    values = dict(_LEFT_ALONE)
    for name, value in given.items():
        values[name] = json.dumps(value) if isinstance(value, dict) else value
    return values


def _of_admission(admit: Admit) -> dict[str, Param]:
    return {**header_values(admit.header), "deadline_after": admit.deadline_seconds}


def _of_records(rows: list[RecordRow]) -> dict[str, Param]:
    if len(rows) == 1:
        row = rows[0]
        return {
            "seq": row.seq,
            "type": row.type,
            "body": row.body,
            "content": row.content,
            "salt": row.salt,
        }
    return {
        "seqs": [row.seq for row in rows],
        "types": [row.type for row in rows],
        "bodies": [row.body for row in rows],
        "contents": [row.content for row in rows],
        "salts": [row.salt for row in rows],
    }


def _of_key(key: KeyRow) -> dict[str, Param]:
    return {
        "key_run_id": key.run_id,
        "key": key.key,
        "digest": key.digest,
        "receipt": key.receipt,
    }
