"""What every adapter does with a small value before and beside keeping it."""

import re
from typing import Final

from psych_runtime._system import System
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.ports.store import MAX_VALUE_BYTES, MAX_VALUE_KEY_CHARACTERS
from psych_runtime.store._storable import check_storable
from psych_runtime.store.units import check_limit

__all__ = ["behind_all", "check_range", "check_value", "first_revision"]

_KIND: Final = re.compile(r"[a-z0-9_.-]{1,64}")
_MAX_TENANT_CHARACTERS: Final = 128
_DRAWN_DIGITS: Final = 13  # hexadecimal: what grows from there is a whole number in JSON, too
_LAST_CHARACTER: Final = "\U0010ffff"
_BEFORE_SURROGATES: Final = 0xD7FF
_BEHIND_SURROGATES: Final = 0xE000


def check_value(tenant: str, kind: str, key: str, value: str | None = None) -> None:
    """Refuse a name or a value that is not kept. Raises InvalidPayload, PayloadTooLarge.

    ValueError for a kind: a bug of the caller.
    """
    _check_owner(tenant, kind)
    check_storable(key, value)
    _check_length("the key of a value", key, 1, MAX_VALUE_KEY_CHARACTERS)
    if value is not None:
        size = len(value.encode())
        if size > MAX_VALUE_BYTES:
            what = f"the value {kind} {key[:40]!r}"
            raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=MAX_VALUE_BYTES)


def check_range(tenant: str, kind: str, prefix: str, after: str, limit: int) -> None:
    """Refuse a part of a list that no keys are in.

    InvalidPayload; ValueError for a kind or a limit: a bug of the caller.
    """
    _check_owner(tenant, kind)
    check_limit(limit)
    check_storable(prefix, after)
    for text in (prefix, after):
        what = "the prefix or the place in a list of values"
        _check_length(what, text, 0, MAX_VALUE_KEY_CHARACTERS)


def _check_owner(tenant: str, kind: str) -> None:
    if _KIND.fullmatch(kind) is None:
        raise ValueError(f"{kind!r} is no kind of values")
    check_storable(tenant)
    _check_length("the tenant of a value", tenant, 1, _MAX_TENANT_CHARACTERS)


def _check_length(what: str, text: str, least: int, most: int) -> None:
    if not least <= len(text) <= most:
        problem = f"it has {len(text)} characters, not {least} to {most}"
        raise InvalidPayload(what=what, problem=problem)


def first_revision(system: System) -> int:
    """Return the revision of a new row: one that no row of this key has ever had."""
    return 1 + int(system.salt()[-_DRAWN_DIGITS:], 16)


def behind_all(prefix: str) -> str:
    """Return what sorts behind every key that begins with `prefix`, and before all others."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    if not stem:
        return _LAST_CHARACTER * (MAX_VALUE_KEY_CHARACTERS + 1)
    last = ord(stem[-1])
    following = _BEHIND_SURROGATES if last == _BEFORE_SURROGATES else last + 1
    return stem[:-1] + chr(following)
