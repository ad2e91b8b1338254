"""Python values as plain JSON: no callable, class or object can enter a Spec (SPEC-3)."""

import re
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MappingProxyType,
    MethodType,
)
from typing import Final, TypeGuard

from pydantic import JsonValue

from psych_runtime.core._locate import pointer_of
from psych_runtime.core._numbers import Refused, safe_number
from psych_runtime.core._redact import printable, shown, shown_in
from psych_runtime.core.issues import Issue
from psych_runtime.errors import PayloadTooLarge
from psych_schema.base import Closed, Open

__all__ = ["is_a", "plain"]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ELEMENT_BYTES: Final = 2  # a digit and a comma: the least that a part takes in JSON
_NAMED: Final = (FunctionType, BuiltinFunctionType, BuiltinMethodType, MethodType)


def plain(value: object, *, max_bytes: int, max_depth: int) -> tuple[JsonValue, list[Issue]]:
    """Return `value` as JSON, and what in it is none; that becomes null.

    Models become mappings, tuples lists, CRLF in texts LF, 1.0 becomes 1 (SPEC-1). Nothing of
    a foreign object is called. Raises PayloadTooLarge as soon as `max_bytes` are passed, so
    that neither a cycle nor a list that holds itself many times takes long.
    """
    walk = _Walk(max_bytes=max_bytes, max_depth=max_depth)
    try:
        return walk.value(value), walk.issues
    except _TooDeep:
        return None, walk.issues


class _TooDeep(Exception):
    """Nested beyond the bound: nothing below was looked at."""


class _Walk:
    def __init__(self, *, max_bytes: int, max_depth: int) -> None:
        self.issues: list[Issue] = []
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._size_bytes = 0
        self._path: list[str | int] = []

    def value(self, value: object) -> JsonValue:
        self._count(_ELEMENT_BYTES)
        if value is None or isinstance(value, bool):
            return value
        if is_a(value, str):
            return self._text(str.__str__(value))
        if is_a(value, dict):
            return self._mapping(dict.items(value))
        if is_a(value, list) or is_a(value, tuple):
            return self._list(value)
        if is_a(value, int):
            return self._number(int.__index__(value))
        if is_a(value, float):
            return self._number(float.__float__(value))
        if is_a(value, Closed) or is_a(value, Open):
            return self._mapping(vars(value).items())
        if is_a(value, MappingProxyType):
            return self._mapping(value.items())
        self._object(value)
        return None

    def _mapping(self, members: Iterable[tuple[object, object]]) -> JsonValue:
        self._enter()
        result: dict[str, JsonValue] = {}
        for key, inner in members:
            if not is_a(key, str):
                self._fault("not_text_key", "a key must be a text", shown(key))
                continue
            name = str.__str__(key)
            self._count(len(name))
            if _SURROGATE.search(name):
                self._fault("not_unicode", "a key holds half of a surrogate pair", None)
                continue
            self._path.append(name)
            result[name] = self.value(inner)
            self._path.pop()
        return result

    def _list(self, items: Iterable[object]) -> JsonValue:
        self._enter()
        result: list[JsonValue] = []
        for index, inner in enumerate(items):
            self._path.append(index)
            result.append(self.value(inner))
            self._path.pop()
        return result

    def _text(self, text: str) -> JsonValue:
        self._count(len(text))
        if _SURROGATE.search(text):
            self._fault("not_unicode", "half of a surrogate pair is no character", None)
            return None
        return text.replace("\r\n", "\n")

    def _number(self, value: int | float) -> JsonValue:
        number = safe_number(value)
        if isinstance(number, Refused):
            path = [part for part in self._path if isinstance(part, str)]
            self._fault(number.code, number.message, shown_in(path, value))
            return None
        return number

    def _object(self, value: object) -> None:
        kind = type(value)
        name = printable(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))[:80]
        if isinstance(value, _NAMED):
            called = printable(value.__name__)[:80]
            message = "a function cannot be in a Spec; register it and write its name"
            self._fault("foreign_object", message, f"function {called}")
        elif isinstance(value, type):
            called = printable(value.__qualname__)[:80]
            message = "a class cannot be in a Spec; write a name"
            self._fault("foreign_object", message, f"class {called}")
        elif isinstance(value, set | frozenset):
            message = "a set has no order of its own; write a list"
            self._fault("foreign_object", message, name)
        elif isinstance(value, bytes | bytearray | memoryview):
            message = "bytes cannot be in a Spec; decode them to a text"
            self._fault("foreign_object", message, name)
        else:
            message = "an object cannot be in a Spec; write the text or number that it stands for"
            self._fault("foreign_object", message, f"a {name}")

    def _enter(self) -> None:
        if len(self._path) >= self._max_depth:
            self._fault("too_deep", f"nested deeper than {self._max_depth}, or within itself", None)
            raise _TooDeep

    def _count(self, size_bytes: int) -> None:
        self._size_bytes += size_bytes
        if self._size_bytes > self._max_bytes:
            raise PayloadTooLarge(
                what="spec", size_bytes=self._size_bytes, bound_bytes=self._max_bytes
            )

    def _fault(self, code: str, message: str, value: str | None) -> None:
        self.issues.append(Issue(pointer_of(self._path), message, code, value))


def is_a[T](value: object, kind: type[T]) -> TypeGuard[T]:
    """Tell by the real type; what `isinstance` asks, an object may lie about."""
    return issubclass(type(value), kind)
