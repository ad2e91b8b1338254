"""What a tool returned, as parts that every store keeps alike (LOG-5, TOOL-7).

Text becomes a text part, anything else one JSON part. Kept losslessly, as text where JSON has no
such type: Decimal exactly, datetime, date, time and timedelta as ISO 8601, UUID, paths, addresses
and URLs as they are written, an Enum as its value, a tuple as an array, a dataclass or pydantic
model as an object, integers exactly up to 308 digits, NUL and emoji. Refused as an error that
says what to return instead: sets, bytes, NaN and infinities, lone surrogates, keys that are not
text, what contains itself, what is nested deeper than 64, and any other object.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Final
from uuid import UUID

from pydantic import AnyUrl, BaseModel, JsonValue
from pydantic_core import MultiHostUrl, Url, to_json

from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.core.foreign import MAX_DEPTH
from psych_runtime.core.models import trusted
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools._json import is_kept_exactly
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.text import clip
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import ToolResult

__all__ = ["MAX_RESULT_BYTES", "json_size", "to_result"]

MAX_RESULT_BYTES: Final = MAX_CONTENT_BYTES
_NULL: Final = b"null"
_MOST_ATTACHMENTS: Final = 64  # of one result: the log has their names
_PATH_CHARACTERS: Final = 200

_json_part: Final = trusted(JsonPart)


def to_result(tool: str, value: object, *, max_bytes: int = MAX_RESULT_BYTES) -> ToolResult:
    """Return what tool `tool` returned as a result; at most `max_bytes` as JSON.

    An attachment becomes a part that names it; a list or tuple with one in it, a part of each.

    Raises:
        InvalidPayload: it cannot be stored; says where, and what to return instead.
        PayloadTooLarge: its JSON, or already a part of it, exceeds the bound.
    """
    encoder = _Encoder(f"the result of {tool}", max_bytes)
    if isinstance(value, list | tuple) and any(isinstance(one, Attachment) for one in value):
        encoder.check_count(sum(isinstance(one, Attachment) for one in value))
        parts = tuple(_part(encoder, one, f"result[{place}]") for place, one in enumerate(value))
    else:
        parts = (_part(encoder, value, "result"),)
    result = ToolResult(parts=parts)
    encoder.check(json_size(parts))
    return result


def json_size(parts: Sequence[Part]) -> int:
    """Return how many bytes a result of these parts has as JSON.

    Values are written apart: as fields of a model they take a call of Python each.
    """
    values = [to_json(one.value) for one in parts if isinstance(one, JsonPart)]
    shell = tuple(_json_part(value=None) if isinstance(one, JsonPart) else one for one in parts)
    nulls = len(_NULL) * len(values)
    return len(to_json(ToolResult(parts=shell))) + sum(map(len, values)) - nulls


def _part(encoder: "_Encoder", value: object, path: str) -> Part:
    if isinstance(value, Attachment):
        return BlobPart(blob=value.ref, name=value.name)
    if isinstance(value, str) and not isinstance(value, Enum):
        return TextPart(text=encoder.text(value, path))
    return JsonPart(value=encoder.value(value, path, 1))


class _Encoder:
    """One walk over a value, given up as soon as its JSON must exceed the bound."""

    def __init__(self, what: str, max_bytes: int) -> None:
        self._what = what
        self._max_bytes = max_bytes
        self._size = 0
        self._open: set[int] = set()  # ids of the containers around the current value

    def value(self, value: object, path: str, depth: int) -> JsonValue:
        """Return the JSON form of `value`."""
        if value is None or isinstance(value, bool):
            self._spend(4)
            return value
        if isinstance(value, Enum):
            return self.value(value.value, path, depth)
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, int | float):
            return self._number(value, path)
        if isinstance(value, Decimal) and not value.is_finite():
            raise self._refused(path, f"Decimal {value}", "None, or a text that says it")
        written = _as_text(value)
        if written is not None:
            return self.text(written, path)
        return self._container(value, path, depth)

    def text(self, text: str, path: str) -> str:
        """Return `text`, when it can be stored."""
        self._spend(len(text) + 2)
        plain = str.__str__(text)
        if not plain.isascii():
            try:
                plain.encode()
            except UnicodeEncodeError as error:
                raise self._refused(
                    path,
                    f"a lone surrogate at character {error.start}",
                    "text that is valid Unicode, e.g. text.encode(errors='replace').decode()",
                ) from None
        return plain

    def _number(self, value: float, path: str) -> JsonValue:
        if isinstance(value, int):
            number = int(value)
            if not is_kept_exactly(number):
                raise self._refused(path, "an integer of more than 308 digits", "it as text")
            self._spend(max(1, number.bit_length() * 3 // 10))
            return number
        if not math.isfinite(value):
            raise self._refused(path, f"the number {value!r}", "None, or a text that says it")
        self._spend(3)
        return float(value)

    def _container(self, value: object, path: str, depth: int) -> JsonValue:
        if id(value) in self._open:
            raise self._refused(path, "an object that contains itself", "a tree")
        if depth > MAX_DEPTH:
            raise self._refused(path, f"nested deeper than {MAX_DEPTH} levels", "a flatter value")
        self._open.add(id(value))
        try:
            if isinstance(value, list | tuple):
                return self._array(value, path, depth)
            if isinstance(value, BaseModel):
                return self.value(self._dumped(value, path), path, depth + 1)
            return self._object(self._fields(value, path), path, depth)
        finally:
            self._open.discard(id(value))

    def _array(self, values: Iterable[object], path: str, depth: int) -> JsonValue:
        self._spend(2)
        found: list[JsonValue] = []
        for index, one in enumerate(values):
            self._spend(1)
            found.append(self.value(one, _below(path, f"[{index}]"), depth + 1))
        return found

    def _object(self, fields: Mapping[object, object], path: str, depth: int) -> JsonValue:
        self._spend(2)
        found: dict[str, JsonValue] = {}
        for key, one in fields.items():
            if not isinstance(key, str):
                raise self._refused(
                    path, f"a key of type {type(key).__name__}", "keys that are strings"
                )
            self._spend(2)
            name = self.text(key, path)
            found[name] = self.value(one, _below(path, f".{name}"), depth + 1)
        return found

    def _dumped(self, model: BaseModel, path: str) -> object:
        try:
            dumped: object = model.model_dump(warnings="none")
        except Exception as error:  # serializers are foreign code
            raise self._refused(
                path, f"a {_name(model)} that cannot be dumped ({_name(error)})", "a dict"
            ) from error
        return dumped

    def _fields(self, value: object, path: str) -> Mapping[object, object]:
        """Return the members of an object, or refuse what is none."""
        if isinstance(value, Mapping):
            return value
        if isinstance(value, Attachment):
            raise self._refused(path, "an Attachment inside a value", "it alone, or in a list")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        if isinstance(value, set | frozenset):
            raise self._refused(path, "a set, whose order is chance", "sorted(...) of it")
        if isinstance(value, bytes | bytearray | memoryview):
            raise self._refused(path, "bytes", "an Attachment(data, media_type), or text")
        raise self._refused(
            path,
            f"an object of type {_name(value)}",
            "text, numbers, lists, dicts, a dataclass or a pydantic model",
        )

    def check(self, size: int) -> None:
        """Raise PayloadTooLarge for what is above the bound."""
        if size > self._max_bytes:
            raise PayloadTooLarge(what=self._what, size_bytes=size, bound_bytes=self._max_bytes)

    def check_count(self, count: int) -> None:
        """Raise InvalidPayload for too many attachments."""
        if count > _MOST_ATTACHMENTS:
            instead = f"at most {_MOST_ATTACHMENTS} of them"
            raise self._refused("result", f"{count} attachments", instead)

    def _spend(self, size: int) -> None:
        self._size += size
        self.check(self._size)

    def _refused(self, path: str, problem: str, instead: str) -> InvalidPayload:
        where = clip(path, _PATH_CHARACTERS)
        return InvalidPayload(
            what=self._what,
            problem=f"{where} is {problem}, which cannot be stored; return {instead}",
        )


def _below(path: str, step: str) -> str:
    """Return the path of a child; the head of a long one is enough."""
    return path if len(path) > _PATH_CHARACTERS else path + step[:80]


def _name(value: object) -> str:
    return clip(type(value).__name__, 80)


def _as_text(value: object) -> str | None:
    """Return the exact textual form of a type that has one, else None."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    return str(value) if isinstance(value, _WRITTEN_AS_THEY_ARE) else None


def _duration(value: timedelta) -> str:
    """Return ISO 8601 in days and seconds: years and months have no fixed length."""
    sign, length = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{length.seconds}.{length.microseconds:06d}".rstrip("0").rstrip(".")
    return f"{sign}P{length.days}DT{seconds}S"


_WRITTEN_AS_THEY_ARE: Final = (
    Decimal,
    UUID,
    PurePath,
    IPv4Address,
    IPv6Address,
    IPv4Network,
    IPv6Network,
    AnyUrl,
    MultiHostUrl,
    Url,
)
