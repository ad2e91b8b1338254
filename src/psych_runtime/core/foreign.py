"""The one way in which foreign JSON enters: bounded in size and depth, and unambiguous (SEC-3)."""

import json
import re
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from psych_runtime.core._json_text import STRING, read_json_text
from psych_runtime.core._numbers import Refused, read_number
from psych_runtime.core.issues import Issue
from psych_runtime.errors import InvalidPayload, PayloadTooLarge

__all__ = ["MAX_DEPTH", "decode_text", "parse_json"]

MAX_DEPTH: Final = 64
"""How deep lists and mappings may nest, unless the reader says otherwise."""

_BRACKETS: Final = re.compile(rf'{STRING}"?+|[\[\]{{}}]', re.DOTALL)
_LONGEST_POINTER: Final = 120
# Without these no number can be infinite or have too many digits; texts may hold them too.
_ODD_NUMBER: Final = re.compile(r"[0-9][eE][-+0-9]|[0-9]{300}")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class _Doubtful(Exception):
    """The fast reader met what the slow one must look at."""


def parse_json(
    text: str | bytes,
    *,
    what: str,
    max_bytes: int,
    max_depth: int = MAX_DEPTH,
    whole_numbers: bool = False,
) -> JsonValue:
    """Return what JSON text says, if every reader of JSON reads it alike.

    Refused are duplicate keys, NaN, Infinity, 1e400, half surrogate pairs, invalid UTF-8, and
    nesting beyond `max_depth` lists and mappings.

    Args:
        what: names the text in errors ("arguments of tool 'add'").
        max_bytes: of the text in UTF-8; more is refused before it is parsed.
        whole_numbers: 1.0 is read as 1 and whole numbers from 2^53 on are refused (SPEC-1).

    Raises:
        PayloadTooLarge: more than `max_bytes`.
        InvalidPayload: anything else; it says line and column.
    """
    source = decode_text(text, what=what, max_bytes=max_bytes)
    try:
        return _fast(source, max_depth=max_depth, whole=whole_numbers)
    except (_Doubtful, ValueError, RecursionError):
        document = read_json_text(source, max_depth=max_depth, whole=whole_numbers)
    if document.issues:
        raise _invalid(what, document.issues[0])
    return document.value


def decode_text(text: str | bytes, *, what: str, max_bytes: int) -> str:
    """Return text without a byte order mark. Raises PayloadTooLarge, InvalidPayload (no UTF-8)."""
    size = len(text)
    if isinstance(text, str) and size <= max_bytes and not text.isascii():
        size = len(text.encode(errors="surrogatepass"))
    if size > max_bytes:
        raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=max_bytes)
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode(errors="replace")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        raise InvalidPayload(
            what=what, problem="no UTF-8 from here on", line=line, column=column
        ) from None


def _fast(text: str, *, max_depth: int, whole: bool) -> JsonValue:
    """Read with the C reader; whatever is odd is left to the slow one."""
    if _is_deeper(text, max_depth) or _SURROGATE_ESCAPE.search(text) or not _is_unicode(text):
        raise _Doubtful

    read = _numbers(whole=whole) if whole or _ODD_NUMBER.search(text) else None
    value: JsonValue = json.loads(
        text,
        object_pairs_hook=_members,
        parse_float=read,
        parse_int=read,
        parse_constant=_refuse,
    )
    return value


def _numbers(*, whole: bool) -> Callable[[str], int | float]:
    def read(digits: str) -> int | float:
        value = read_number(digits, whole=whole)
        if isinstance(value, Refused):
            raise _Doubtful
        return value

    return read


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Doubtful
    return members


def _refuse(word: str) -> JsonValue:
    raise _Doubtful(word)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_deeper(text: str, bound: int) -> bool:
    """Say whether brackets nest deeper than `bound`, as far as the text is JSON."""
    if text.count("[") + text.count("{") <= bound:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > bound:
                return True
        elif token in "]}":
            depth -= 1
    return False


def _invalid(what: str, issue: Issue) -> InvalidPayload:
    where = f" at {issue.pointer}" if 0 < len(issue.pointer) <= _LONGEST_POINTER else ""
    return InvalidPayload(
        what=what, problem=f"{issue.message}{where}", line=issue.line, column=issue.column
    )
