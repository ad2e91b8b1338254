"""The canonical form of a Spec and its hash, which names the Version (SPEC-1, SPEC-2)."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Final, Literal, NamedTuple, get_args, get_origin

import rfc8785
from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticUndefined

from psych_runtime.core._plain import plain
from psych_runtime.core._redact import shown
from psych_runtime.core.foreign import MAX_DEPTH
from psych_runtime.core.issues import Issue
from psych_runtime.errors import InvalidSpec, PayloadTooLarge
from psych_schema.base import Closed
from psych_schema.sets import SETS
from psych_schema.spec import Spec

__all__ = ["MAX_SPEC_BYTES", "canonical_json", "canonical_text", "spec_hash"]

MAX_SPEC_BYTES: Final = 1024 * 1024
"""What a Spec may have as UTF-8 text (SEC-3)."""


def canonical_text(spec: Spec) -> str:
    """Return the one text of `spec`: RFC 8785, without what equals the schema's defaults.

    Sets are sorted by name and CRLF in texts is LF, so however a Spec was written, it has one
    text, and an optional field that the schema gains later changes no text. Raises InvalidSpec
    for what only an unchecked model can hold (a function, NaN, whole numbers from 2^53 on) and
    PayloadTooLarge.
    """
    given: object = spec
    if not isinstance(given, Closed):
        message = "only a Spec has a canonical form; read_spec makes one"
        raise InvalidSpec([Issue("", message, "wrong_type", shown(given))])
    _json(given)
    text = rfc8785.dumps(_json(_pruned(spec)))
    if len(text) > MAX_SPEC_BYTES:
        raise PayloadTooLarge(what="spec", size_bytes=len(text), bound_bytes=MAX_SPEC_BYTES)
    return text.decode()


def canonical_json(value: JsonValue) -> str:
    """Return the one text of `value`: RFC 8785; sorted JSON where integers exceed a double.

    Raises:
        ValueError: NaN, an infinity or a lone surrogate.
    """
    try:
        return rfc8785.dumps(value).decode()
    except rfc8785.IntegerDomainError:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        text.encode()
        return text


def spec_hash(spec: Spec) -> str:
    """Return the lower-case hexadecimal SHA-256 of the canonical text, the name of its Version."""
    return hashlib.sha256(canonical_text(spec).encode()).hexdigest()


class _Field(NamedTuple):
    name: str
    default: bytes | None  # None: always kept
    sorted_by: str | None


@cache
def _fields(model: type[BaseModel]) -> tuple[_Field, ...]:
    """Return how each field of `model` is written; a constant tag stays, whatever its default."""
    sets = SETS.get(model.__name__, {})
    fields = []
    for name, field in model.model_fields.items():
        constant = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
        default: object = field.default
        kept = constant or default is PydanticUndefined
        fields.append(_Field(name, None if kept else _bytes(default), sets.get(name)))
    return tuple(fields)


def _pruned(value: object) -> object:
    """Return `value` with sets sorted and defaults left out, the innermost first."""
    if isinstance(value, BaseModel):
        given = vars(value)
        members = {}
        for name, default, sorted_by in _fields(type(value)):
            if name not in given:
                continue
            member = _pruned(given[name])
            if sorted_by is not None and isinstance(member, list):
                member.sort(key=partial(_sort_key, sorted_by))
            if default is None or _bytes(member) != default:
                members[name] = member
        return members
    if isinstance(value, Mapping):
        return {name: _pruned(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_pruned(item) for item in value]
    return value


def _sort_key(key: str, item: object) -> str:
    return str(item.get(key, "")) if isinstance(item, dict) else ""


def _bytes(value: object) -> bytes:
    """Return what two values share only if JSON does not tell them apart (True is not 1)."""
    return rfc8785.dumps(_json(_pruned(value)))


def _json(value: object) -> JsonValue:
    # Twice the bound: defaults that are written out count here and are left out later.
    result, issues = plain(value, max_bytes=2 * MAX_SPEC_BYTES, max_depth=MAX_DEPTH)
    if issues:
        raise InvalidSpec(issues)
    return result
