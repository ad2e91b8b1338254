"""Judges what callers give, before anything is read or written (LOG-5, R-30)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_json

from psych_runtime.core.codec import MAX_CONTENT_BYTES, sha256
from psych_runtime.errors import InvalidArgument, InvalidPayload, PayloadTooLarge
from psych_schema.common import Scope
from psych_schema.model import BlobPart, JsonPart, ReasoningPart, TextPart

__all__ = [
    "JsonLike",
    "check_actor",
    "check_blob",
    "check_input",
    "check_json",
    "check_key",
    "check_message_parts",
    "check_port",
    "check_scope",
    "check_store",
    "request_digest",
]

_MAX_SCOPE_BYTES: Final = 16 * 1024
_MAX_KEY_CHARACTERS: Final = 256
_RESERVED_KEYS: Final = "next:"

_PROBLEMS: Final = {
    "finite_number": "NaN and infinity are not JSON",
    "string_type": "a key is a text",
}
_MEMBERS: Final[Mapping[str, Sequence[str]]] = {
    kind: tuple(model.model_fields)
    for kind, model in (
        ("text", TextPart),
        ("reasoning", ReasoningPart),
        ("blob", BlobPart),
        ("json", JsonPart),
    )
}
_NOT_JSON: Final = "not JSON: use dict, list, str, int, float, bool or None"


type JsonLike = None | bool | int | float | str | Sequence["JsonLike"] | Mapping[str, "JsonLike"]
"""JSON as callers have it at hand; at run time sequences are lists and mappings are dicts."""


@cache
def _json() -> TypeAdapter[JsonValue]:
    return TypeAdapter(JsonValue, config=ConfigDict(strict=True, allow_inf_nan=False))


def check_json(value: JsonLike, *, what: str) -> JsonValue:
    """Return `value`, which is JSON, or raise InvalidPayload; PayloadTooLarge above the bound."""
    try:
        found = _json().validate_python(value)
    except ValidationError as error:
        raise InvalidPayload(what=what, problem=_problem(error)) from None
    except RecursionError:
        raise InvalidPayload(what=what, problem="too deep") from None
    _check_size(found, what=what, bound_bytes=MAX_CONTENT_BYTES)
    return found


def _problem(error: ValidationError) -> str:
    """Return what is wrong first, and where: of a location every other part is a type."""
    first = error.errors(include_url=False, include_input=False)[0]
    pointer = "".join(f"/{part}" for part in first["loc"][1::2])
    return f"{pointer or '/':.500}: {_PROBLEMS.get(first['type'], _NOT_JSON)}"


def _check_size(value: object, *, what: str, bound_bytes: int) -> None:
    try:
        size = len(to_json(value))
    except (ValueError, RecursionError) as error:  # a lone surrogate, or too deep
        raise InvalidPayload(what=what, problem=str(error)) from None
    if size > bound_bytes:
        raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=bound_bytes, as_json=True)


def check_store(store: object) -> None:
    """Raise InvalidArgument for what is no store, or a class of stores."""
    methods = ("commit", "header", "read")
    if isinstance(store, type) or not all(callable(getattr(store, m, None)) for m in methods):
        given = "None" if store is None else f"a {type(store).__name__}"
        problem = f"pass an open one: `async with open_store(url) as store`; {given:.80} is none"
        raise InvalidArgument(what="store", problem=problem)


def check_port(port: object, methods: tuple[str, ...], *, what: str, remedy: str) -> None:
    """Raise InvalidArgument for what cannot be called as the port says."""
    if isinstance(port, type):
        raise InvalidArgument(
            what=what, problem=f"{port.__name__} is a class: pass {port.__name__}()"
        )
    for method in methods:
        if not callable(getattr(port, method, None)):
            problem = f"a {type(port).__name__} has no {method}(): {remedy}"
            raise InvalidArgument(what=what, problem=problem)


def check_blob(blob: object, *methods: str) -> None:
    """Raise InvalidArgument for what is neither a blob store nor None."""
    if blob is not None:
        check_port(blob, methods, what="blob", remedy="pass a BlobStore")


def check_message_parts(parts: Sequence[JsonValue], *, what: str) -> None:
    """Raise InvalidPayload for a member that no part has: nobody would ever read it."""
    for place, part in enumerate(parts):
        kind = part.get("kind") if isinstance(part, Mapping) else None
        members = _MEMBERS.get(kind) if isinstance(kind, str) else None
        if not isinstance(part, Mapping) or members is None:
            continue  # it is no part at all, which is for others to say
        unknown = next((name for name in part if name not in members), None)
        if unknown is not None:
            known = ", ".join(members)
            problem = f"part {place}: unknown member {unknown!r:.80}; {kind} has {known}"
            raise InvalidPayload(what=what, problem=problem)


def check_input(value: JsonLike) -> JsonValue:
    """Return the input of a Run, which is JSON; of a message in parts each member is known."""
    given = check_json(value, what="input")
    if isinstance(given, dict) and set(given) == {"message"}:
        message = given["message"]
        if isinstance(message, list):
            check_message_parts(message, what="input")
    return given


def check_scope(scope: Scope) -> None:
    """Raise for a Scope that no record takes: its attributes are part of every log."""
    _check_size(scope, what="scope", bound_bytes=_MAX_SCOPE_BYTES)


def check_actor(by: object) -> None:
    """Raise InvalidArgument for a name that no record takes."""
    if by is None:
        return
    if not (isinstance(by, str) and by.strip() and len(by) <= _MAX_KEY_CHARACTERS):
        problem = "a name has 1 to 256 characters, not only white space"
        raise InvalidArgument(what="by", problem=problem)
    _check_size(by, what="by", bound_bytes=MAX_CONTENT_BYTES)


def check_key(key: object, *, what: str) -> None:
    """Raise InvalidArgument for a key that cannot be kept, or that the library uses itself."""
    if key is None:
        return
    text = key if isinstance(key, str) else ""
    if not 1 <= len(text) <= _MAX_KEY_CHARACTERS or text.startswith(_RESERVED_KEYS):
        problem = f"a key has 1 to 256 characters and does not begin with {_RESERVED_KEYS!r}"
        raise InvalidArgument(what=what, problem=problem)
    _check_size(key, what=what, bound_bytes=MAX_CONTENT_BYTES)


def request_digest(*parts: object) -> str:
    """Return what tells a request from another one, of parts that were judged before."""
    return sha256(to_json(parts).decode())
