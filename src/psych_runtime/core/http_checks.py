"""What is wrong with an HTTP tool beside the shape of its document (PUB-1, TOOL-4)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core._locate import pointer_of, segments_of
from psych_runtime.core._redact import REDACTED, is_secret_name, shown, shown_in
from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.http_template import (
    BadTemplate,
    Slot,
    Template,
    body_templates,
    read_template,
    read_url,
)
from psych_runtime.core.issues import Issue
from psych_runtime.core.json_schema import Work, check_instance, check_json_schema
from psych_runtime.core.near import nearest
from psych_runtime.errors import InvalidPayload
from psych_schema.spec import BasicCredential, HeaderCredential, HttpLookup, HttpTool

__all__ = ["KEY", "OWN_FIELDS", "http_issues", "http_schema_issues"]

OWN_FIELDS: Final = frozenset(
    {
        *("accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "host", "idempotency-key", "keep-alive"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding"),
        "upgrade",
    }
)
"""Header fields that no Spec sets: they frame the request, or carry what only a secret may."""

KEY: Final = "idempotency_key"
"""What stands for a call's own key in the request that asks about it."""

_FRAMING: Final = OWN_FIELDS - {"authorization", "cookie"}
_FIELD: Final = re.compile(r"[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_ARGUMENT: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MOST_FIELDS: Final = 64
_MAX_DEFINITION_BYTES: Final = 256 * 1024
_REST_IN_QUERY: Final = frozenset({"DELETE", "GET", "HEAD"})
_NO_TEXT: Final = frozenset({"array", "null", "object"})
_OPENING: Final = ("additionalProperties", "patternProperties", "unevaluatedProperties")


def http_issues(tool: HttpTool, pointer: str) -> Iterator[Issue]:
    """Yield what is wrong with `tool`, which stands at `pointer`; its schemas are judged apart."""
    used: list[_Use] = []
    if not tool.description.strip():
        yield Issue(f"{pointer}/description", "is blank: the model knows a tool by it", "blank")
    yield from _of_templates(tool, pointer, used)
    yield from _of_credential(tool, pointer)
    yield from _of_method(tool, pointer)
    yield from _of_input(tool, pointer, used)
    if tool.reconcile is not None:
        yield from _of_lookup(tool, tool.reconcile, f"{pointer}/reconcile")


def _of_templates(request: "_Request", pointer: str, used: list["_Use"]) -> Iterator[Issue]:
    """Find templates that are none; what the others use is added to `used`."""
    for at, text, where in _texts(request):
        try:
            pieces = read_template(text)
        except BadTemplate as error:
            yield Issue(pointer + at, str(error), "invalid_template", shown(text))
            continue
        used += [_Use(one.name, pointer + at, where, len(pieces) == 1) for one in _slots(pieces)]
    try:
        url = read_url(request.url)
    except BadTemplate as error:
        yield Issue(f"{pointer}/url", str(error), "invalid_url", shown(request.url))
    else:
        names = [one.name for segment in url.segments for one in _slots(segment)]
        used += [_Use(name, f"{pointer}/url", "path", False) for name in names]
    yield from _of_fields(request, pointer)
    yield from _of_secrets(request, pointer)


def _of_lookup(tool: HttpTool, lookup: HttpLookup, pointer: str) -> Iterator[Issue]:
    """Find what is wrong with the request that asks whether a call happened."""
    if tool.safe_to_retry or (tool.safe_to_retry is None and tool.method in ("GET", "HEAD")):
        message = "is never asked: a call that is safe to retry runs again; take it out"
        yield Issue(pointer, message, "contradiction")
    used: list[_Use] = []
    issues = [*_of_templates(lookup, pointer, used)]
    yield from issues
    if not used and not issues:
        message = f"asks the same about every call; name {{{KEY}}}, or an argument"
        yield Issue(pointer, message, "unused_argument")
    schema = tool.input_schema if isinstance(tool.input_schema, Mapping) else {}
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return
    if KEY in properties and any(one.name == KEY for one in used):
        message = "is an argument of the tool, too, so that nobody knows which is meant"
        yield Issue(pointer, message, "doubled_name", shown(KEY))
    yield from _of_uses(used, {**properties, KEY: {"type": "string"}}, [*required, KEY])
    credential = tool.credential
    names = {name.lower() for name in lookup.headers}
    if isinstance(credential, HeaderCredential) and credential.header.lower() in names:
        message = "is the credential's; keep one of them"
        yield Issue(f"{pointer}/headers", message, "doubled_name", shown(credential.header))


def http_schema_issues(tool: HttpTool, pointer: str, work: Work) -> Iterator[Issue]:
    """Yield what is wrong with the schemas of `tool`, and defaults that do not fit their own."""
    if tool.output_schema is not None:
        yield from check_json_schema(tool.output_schema, f"{pointer}/output_schema", work=work)
    at, schema = f"{pointer}/input_schema", tool.input_schema
    if not isinstance(schema, Mapping):
        return  # none, or refused already
    issues = check_json_schema(schema, at, work=work)
    yield from issues
    properties = schema.get("properties") if not issues else None
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(one, Mapping) and "default" in one:
            try:
                check_instance(one["default"], {"$defs": schema.get("$defs", {}), **one}, what=name)
            except InvalidPayload as error:
                message = f"does not fit its own schema: {error.problem}"
                yield Issue(at + pointer_of(("properties", name, "default")), message, "misfit")


class _Use(NamedTuple):
    """One place where an argument is used."""

    name: str
    at: str
    where: str  # path, header, query or body
    whole: bool  # nothing else stands there

    @property
    def is_text(self) -> bool:
        """Whether the argument becomes a piece of text there."""
        return self.where in ("path", "header") or not self.whole


type _Request = HttpTool | HttpLookup


def _texts(request: _Request) -> Iterator[tuple[str, str, str]]:
    """Yield each template but the URL: where it stands, itself, and what it is for."""
    for name, text in request.headers.items():
        yield pointer_of(("headers", name)), text, "header"
    for name, text in request.query.items():
        yield pointer_of(("query", name)), text, "query"
    body = request.body if isinstance(request, HttpTool) else None
    for path, text in body_templates(body):
        yield pointer_of(("body", *path)), text, "body"


def _slots(pieces: Template) -> list[Slot]:
    return [one for one in pieces if isinstance(one, Slot)]


def _of_fields(request: _Request, pointer: str) -> Iterator[Issue]:
    for field, fields in (("headers", request.headers), ("query", request.query)):
        if len(fields) > _MOST_FIELDS:
            message = f"has {len(fields)} fields; {_MOST_FIELDS} are the most"
            yield Issue(f"{pointer}/{field}", message, "too_long")
    seen: dict[str, str] = {}
    for name, text in request.headers.items():
        at = pointer + pointer_of(("headers", name))
        if not _FIELD.fullmatch(name):
            yield Issue(at, "is no name of a header field", "invalid_header", shown(name))
        elif name.lower() in OWN_FIELDS:
            message = "is set by the runtime"
            if name.lower() not in _FRAMING:
                message = "carries a secret; write a credential"
            yield Issue(at, message, "reserved_header", shown(name))
        elif (first := seen.setdefault(name.lower(), name)) != name:
            message = f"is {first!r} again: case counts for nothing"
            yield Issue(at, message, "doubled_name", shown(name))
        if not _VALUE.fullmatch(text):
            message = "has a character that no header carries; printable ASCII only"
            yield Issue(at, message, "invalid_header", shown_in((name,), text))


def _of_secrets(request: _Request, pointer: str) -> Iterator[Issue]:
    """Find fixed texts under names of secrets: everybody who reads the Spec would have them."""
    for at, text, _ in _texts(request):
        name = segments_of(at)[-1]
        if text and "{" not in text and is_secret_name(name) and name.lower() not in OWN_FIELDS:
            message = "looks like a secret, and a Spec is no place for one; write a credential"
            yield Issue(pointer + at, message, "secret_in_spec", REDACTED)


def _of_credential(tool: HttpTool, pointer: str) -> Iterator[Issue]:
    credential, at = tool.credential, f"{pointer}/credential"
    if isinstance(credential, HeaderCredential):
        if credential.header.lower() in _FRAMING:
            message = "is set by the runtime; no secret goes there"
            yield Issue(f"{at}/header", message, "reserved_header", shown(credential.header))
        if credential.header.lower() in {name.lower() for name in tool.headers}:
            message = "is among the headers, too; keep one of them"
            yield Issue(f"{at}/header", message, "doubled_name", shown(credential.header))
    if isinstance(credential, BasicCredential) and not (credential.username or "").isprintable():
        yield Issue(f"{at}/username", "has a character that cannot be seen", "invalid_header")


def _of_method(tool: HttpTool, pointer: str) -> Iterator[Issue]:
    if tool.body is not None and tool.method in ("GET", "HEAD"):
        message = f"a {tool.method} request has none; use query, or another method"
        yield Issue(f"{pointer}/body", message, "body_not_allowed")
    if tool.output_schema is not None and tool.method == "HEAD":
        message = "a HEAD request brings nothing to judge; take it out"
        yield Issue(f"{pointer}/output_schema", message, "body_not_allowed")
    if tool.output_schema is False:
        message = "no answer fits it; write what one looks like, or take it out"
        yield Issue(f"{pointer}/output_schema", message, "contradiction")
    if tool.method == "HEAD" and tool.risk is not None and tool.risk != "read_only":
        message = "a HEAD request only reads"
        yield Issue(f"{pointer}/risk", message, "contradiction", shown(tool.risk))


def _of_input(tool: HttpTool, pointer: str, used: list[_Use]) -> Iterator[Issue]:
    """Find arguments that are used and not declared, declared and not used, or do not fit."""
    at = f"{pointer}/input_schema"
    schema = {} if tool.input_schema is None else tool.input_schema
    if not isinstance(schema, Mapping):
        message = "must be a JSON Schema of an object: a mapping"
        yield Issue(at, message, "invalid_json_schema", shown(schema))
        return
    if schema and schema.get("type") != "object":
        message = "arguments are an object; write type: object"
        yield Issue(f"{at}/type", message, "invalid_json_schema", shown(schema.get("type")))
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return  # the meta-schema says so
    if len(canonical_json(schema).encode()) > _MAX_DEFINITION_BYTES:
        yield Issue(at, f"is larger than {_MAX_DEFINITION_BYTES} bytes; shorten it", "too_long")
    for name in properties:
        if not _ARGUMENT.fullmatch(name):
            message = "providers take names of at most 64 letters, digits, _, . and -"
            yield Issue(at + pointer_of(("properties", name)), message, "invalid_name", shown(name))
    yield from _of_uses(used, properties, required)
    named = {one.name for one in used}
    if tool.body is not None:
        yield from _unused(schema, properties, named, at)
    elif tool.method in _REST_IN_QUERY:
        for name in sorted({*properties, *map(str, required)} & tool.query.keys() - named):
            message = "is a query field that the tool sets itself; name {argument} there instead"
            yield Issue(at + pointer_of(("properties", name)), message, "doubled_name", shown(name))
    for needed in required:
        if needed not in properties and not any(word in schema for word in _OPENING):
            message = "is required, and no property of this name is declared: no call could fit"
            yield Issue(f"{at}/required", message, "unknown_argument", shown(needed))


def _of_uses(
    used: list[_Use], properties: Mapping[str, JsonValue], required: list[JsonValue]
) -> Iterator[Issue]:
    told: set[tuple[str, str]] = set()
    for one in used:
        if (one.name, one.at) not in told:
            told.add((one.name, one.at))
            yield from _of_use(one, properties, required)


def _of_use(
    use: _Use, properties: Mapping[str, JsonValue], required: list[JsonValue]
) -> Iterator[Issue]:
    if use.name not in properties:
        message = "no argument has this name; declare it in the input_schema's properties"
        near = nearest(use.name, properties)
        yield Issue(use.at, message, "unknown_argument", shown(use.name), near)
        return
    if use.where == "path" and use.name not in required:
        message = "stands in the path, so it must be required by the input_schema"
        yield Issue(use.at, message, "optional_in_path", shown(use.name))
    schema = properties[use.name]
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    if kinds and use.is_text and all(one in _NO_TEXT for one in kinds):
        message = f"is {' or '.join(map(str, kinds))}, which cannot be a piece of text"
        yield Issue(use.at, message, "no_text", shown(use.name))


def _unused(
    schema: Mapping[str, JsonValue],
    properties: Mapping[str, JsonValue],
    used: set[str],
    at: str,
) -> Iterator[Issue]:
    """With a body of its own, a request has no place for what it does not name."""
    for name in properties:
        if name not in used:
            message = "is used nowhere; put it into the body, or take it out"
            yield Issue(at + pointer_of(("properties", name)), message, "unused_argument")
    for word in _OPENING:
        if schema.get(word, False) is not False:
            message = "lets arguments in that the body does not name; take it out"
            yield Issue(f"{at}/{word}", message, "unused_argument")
