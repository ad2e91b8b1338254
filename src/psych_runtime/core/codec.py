"""Rows and records: what is stored, and how it is read back (R-11).

The body is stored as text and never changes; the content beside it can be erased. Text of a
record = body without its last brace, then the content as its last member.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from psych_runtime.core._recent import Recent
from psych_runtime.core.models import altered, trusted
from psych_runtime.errors import CorruptLog, InvalidPayload, NewerRecord
from psych_runtime.ports.store import Sealed
from psych_schema.base import format_instant, parse_instant
from psych_schema.record import Record
from psych_schema.store import RecordRow
from psych_schema.transitions import TRANSITIONS

__all__ = [
    "MAX_CONTENT_BYTES",
    "SCHEMA_VERSION",
    "Entry",
    "Outline",
    "Position",
    "content_fits",
    "content_text",
    "decode",
    "decode_anew",
    "is_erased",
    "outline",
    "outline_commit",
    "parse_record",
    "record_text",
    "seal",
    "sealing",
    "sha256",
]

SCHEMA_VERSION: Final = 1
"""The minor version of the record schema that this build writes and reads."""

MAX_CONTENT_BYTES: Final = 256 * 1024
"""What one record's content may have in the log (LOG-5)."""

_recent: Final = Recent()  # of a pure function, as functools.cache would be

_MAX_DEPTH: Final = 200  # containers in containers that the parser takes
_MAX_DIGITS: Final = 4300  # of an integer that the parser takes

_FORM: Final = re.compile("[A-Z][0-9]{18}")
"""How a body begins that a store keeps in a form of its own: a schema version, and when."""

_ENVELOPE: Final = frozenset(
    {"v", "run_id", "seq", "at", "type", "id", "commit", "epoch", "prev", "content_digest"}
)
_CONTENT: Final = {kind: row.content for kind, row in TRANSITIONS.items()}
_OUTSIDE_THE_BODY: Final = {
    kind: set(_ENVELOPE | ({row.content} if row.content else set()))
    for kind, row in TRANSITIONS.items()
}


_row: Final = trusted(RecordRow)


class Entry(NamedTuple):
    """A committed record with the hash of its stored body."""

    record: Record
    hash: str


class Outline(NamedTuple):
    """What every version of the schema says of a record."""

    position: "Position"
    epoch: int
    needs_version: int


class Position(NamedTuple):
    """The head of a log: where the next record goes."""

    seq: int = 0
    hash: str | None = None
    at: datetime | None = None


@cache
def _records() -> TypeAdapter[Record]:
    """Return the reader of records; strictness has to be said again for deferred models."""
    return TypeAdapter(Record, config=ConfigDict(strict=True, allow_inf_nan=False))


@cache
def _read() -> Callable[[str], Record]:
    """Return what reads one record's text: a log has many, so each step less counts."""
    return _records().validator.validate_json


def sha256(text: str) -> str:
    """Return the lower-case hexadecimal SHA-256 of `text` in UTF-8."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _digest(salt: str | None, content: str) -> str:
    return sha256((salt or "") + content)


def content_text(record: Record) -> str | None:
    """Return the content as it is stored, None for a record without one.

    Raises InvalidPayload for what could not be read back: text that is not Unicode (a lone
    surrogate), values nested more than 199 deep, integers of more than 4,300 digits.
    """
    name = _CONTENT[record.type]
    value: object = vars(record)[name] if name else None
    if value is None:
        return None
    try:
        if isinstance(value, BaseModel):
            text = value.__pydantic_serializer__.to_json(value).decode()
        else:
            text = to_json(value, inf_nan_mode="strings").decode()
        _check_readable(text, inside=1)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(what=f"{name} of {record.type}", problem=str(error)) from error
    return text


def _check_readable(text: str, *, inside: int) -> None:
    """Raise ValueError when the parser would not take `text`, `inside` so many containers.

    What is short, or has few brackets, needs no look: this is paid for by large values only.
    """
    deep = len(text) > _MAX_DEPTH and text.count("[") + text.count("{") > _MAX_DEPTH - inside
    if deep or len(text) > _MAX_DIGITS:
        from_json("[" * inside + text + "]" * inside)


def seal(
    drafts: Iterable[Record],
    head: Position,
    *,
    tenant: str,
    epoch: int,
    commit_id: str,
    salts: Iterable[str],
) -> list[Sealed]:
    """Put drafts at the positions after `head`: seq, prev, digests, and `at` raised (R-14).

    `salts` gives a fresh one for each content; the first record always takes one, since the
    salt of seq 1 is the Run's. Raises InvalidPayload for what could not be read back.
    """
    pen = sealing(drafts, head, tenant=tenant, epoch=epoch, commit_id=commit_id, salts=salts)
    return list(pen)


def sealing(
    drafts: Iterable[Record],
    head: Position,
    *,
    tenant: str,
    epoch: int,
    commit_id: str,
    salts: Iterable[str],
) -> Iterator[Sealed]:
    """Do the same one by one, for whoever may have enough before the last."""
    fresh = iter(salts)
    for draft in drafts:
        one = _seal(draft, head, tenant, epoch, commit_id, fresh)
        head = Position(one.row.seq, one.hash, one.record.at)
        _recent.add(one.row, Entry(one.record, one.hash))
        yield one


def _seal(
    draft: Record, head: Position, tenant: str, epoch: int, commit_id: str, salts: Iterator[str]
) -> Sealed:
    told = vars(draft)  # of 35 classes, whose attributes Python is slow to find
    run_id, kind, at = told["run_id"], told["type"], told["at"]
    content = content_text(draft)
    seq = head.seq + 1
    salt = next(salts) if content is not None or seq == 1 else None
    digest = None if content is None else _digest(salt, content)
    if head.at is not None and head.at > at:
        at = head.at
    prev = "" if head.hash is None else f',"prev":"{head.hash}"'
    named = "" if digest is None else f',"content_digest":"{digest}"'
    rest = _rest(draft)
    body = (
        f'{{"v":{told["v"]},"run_id":"{run_id}","seq":{seq},"at":"{format_instant(at)}"'
        f',"type":"{kind}","id":"{told["id"]}","commit":"{commit_id}","epoch":{epoch}'
        f"{prev}{named}{'}' if rest == '{}' else ',' + rest[1:]}"
    )
    record: Record = altered(
        draft,
        {
            "seq": seq,
            "at": at,
            "commit": commit_id,
            "epoch": epoch,
            "prev": head.hash,
            "content_digest": digest,
        },
    )
    row = _row(
        run_id=run_id,
        seq=seq,
        tenant=tenant,
        type=kind,
        body=body,
        content=content,
        salt=salt,
    )
    return Sealed(row, record, sha256(body), rest)


def _rest(draft: Record) -> str:
    """Return the body's own fields as a JSON object."""
    try:
        rest = draft.__pydantic_serializer__.to_json(
            draft, exclude=_OUTSIDE_THE_BODY[draft.type], exclude_none=True
        ).decode()
        _check_readable(rest, inside=0)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(what=draft.type, problem=str(error)) from error
    return rest


def record_text(row: RecordRow) -> str:
    """Return the JSON text of a stored record, its content spliced in."""
    name = _CONTENT.get(row.type)
    if row.content is None or name is None:
        return row.body
    body = row.body.removesuffix("}")  # a body that was cut must not become whole by that
    return f'{body},"{name}":{row.content}}}' if body != row.body else row.body


def decode(row: RecordRow) -> Entry:
    """Return the record of `row`; what this process wrote lately it need not parse.

    Raises NewerRecord, CorruptLog as `decode_anew` does.
    """
    return _recent.get(row) or decode_anew(row)


def decode_anew(row: RecordRow) -> Entry:
    """Return the record that the text of `row` says.

    Raises NewerRecord for what a newer build wrote, CorruptLog for what nobody writes: among
    it a content that is not the one the body's digest names, since its text could also say
    other fields anew.
    """
    if row.type not in _CONTENT:
        raise _unread(row)
    body, content = row.body, row.content
    try:
        record = _read()(body if content is None else record_text(row))
    except ValidationError as error:
        raise _unread(row) from error
    told = vars(record)  # of 35 classes, whose attributes Python is slow to find
    if told["seq"] != row.seq or told["run_id"] != row.run_id or told["type"] != row.type:
        raise CorruptLog(reason="row_differs", run_id=row.run_id, seq=row.seq)
    if content is not None and told["content_digest"] != _digest(row.salt, content):
        raise CorruptLog(reason="content_does_not_fit", run_id=row.run_id, seq=row.seq)
    return Entry(record, sha256(body))


def _unread(row: RecordRow) -> NewerRecord | CorruptLog:
    """Return why a row cannot be read: a newer build wrote it, or nobody did."""
    version = outline(row).needs_version
    if version > SCHEMA_VERSION:
        return _newer(row, version)
    return CorruptLog(reason="unreadable", run_id=row.run_id, seq=row.seq)


def _newer(row: RecordRow, version: int) -> NewerRecord:
    return NewerRecord(run_id=row.run_id, seq=row.seq, type=row.type, needs_version=version)


def outline(row: RecordRow) -> Outline:
    """Return what every version of the schema says of a record.

    Enough to write behind a record that this build cannot read (R-16). Raises NewerRecord where
    even its form is of a newer build, which hides all that, CorruptLog where there is nothing.
    """
    try:
        body = from_json(row.body)
        version, epoch, at = body["v"], body["epoch"], parse_instant(body["at"])
    except (ValueError, KeyError, TypeError) as error:
        form = ord(row.body[0]) - ord("A") + 1 if _FORM.match(row.body) else 0
        if form > SCHEMA_VERSION:
            raise _newer(row, form) from error
        raise CorruptLog(reason="unreadable", run_id=row.run_id, seq=row.seq) from error
    if type(version) is not int or type(epoch) is not int:
        raise CorruptLog(reason="unreadable", run_id=row.run_id, seq=row.seq)
    needed = max(version, SCHEMA_VERSION + (row.type not in TRANSITIONS))
    return Outline(Position(row.seq, sha256(row.body), at), epoch, needed)


def outline_commit(row: RecordRow) -> str:
    """Return the id of the unit that wrote a record; "" when the body names none."""
    try:
        body = from_json(row.body)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        return ""
    commit = body.get("commit") if isinstance(body, dict) else None
    return commit if isinstance(commit, str) else ""


def parse_record(text: str | bytes) -> Record:
    """Return the record that JSON text says, as `psych log --json` prints it.

    Raises InvalidPayload when it is none.
    """
    try:
        return _records().validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"/{part}" for part in first["loc"])
        raise InvalidPayload(what="record", problem=f"{where or '/'}: {first['msg']}") from None


def is_erased(record: Record) -> bool:
    """Tell whether the record had a content that is gone."""
    name = TRANSITIONS[record.type].content
    return name is not None and record.content_digest is not None and getattr(record, name) is None


def content_fits(row: RecordRow) -> bool:
    """Tell whether the content is the one that the body's digest names; erased fits."""
    if row.content is None:
        return True
    try:
        body = from_json(row.body)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        return False
    named = body.get("content_digest") if isinstance(body, dict) else None
    return bool(named == _digest(row.salt, row.content))
