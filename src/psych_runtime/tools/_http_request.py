"""Makes the request of an HTTP tool out of a call's arguments (TOOL-4).

An argument can change one piece of text and nothing around it: in the path it is quoted, and may
not lead elsewhere; a header takes no line break; the query and the body are built, not pasted.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from pydantic import JsonValue

from psych_runtime.core.http_template import Slot, Template, body_templates, read_template, read_url
from psych_runtime.tools.text import quote as quoted
from psych_schema.spec import HttpTool

__all__ = ["HttpRequest", "RequestPlan", "Unfit"]

_MAX_FIELD_CHARACTERS: Final = 8 * 1024
_MAX_URL_CHARACTERS: Final = 16 * 1024
_MAX_BODY_BYTES: Final = 1024 * 1024
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_STEPS: Final = re.compile(r"[/\\]")
_HEADER: Final = re.compile(r"[\t\x20-\x7e]*")
_WITHOUT_BODY: Final = frozenset({"DELETE", "GET", "HEAD"})
_ABSENT: Final = object()


class Unfit(ValueError):
    """Arguments that fit the schema, and that no such request can carry; says why."""


class HttpRequest(NamedTuple):
    """What is to be sent, but for the credential."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None


class RequestPlan:
    """The templates of one tool, read once; `named` are the arguments that they name."""

    def __init__(self, tool: HttpTool) -> None:
        self._url = read_url(tool.url)
        self._headers = {name: read_template(text) for name, text in tool.headers.items()}
        self._query = {name: read_template(text) for name, text in tool.query.items()}
        self._body = tool.body
        used = [*self._headers.values(), *self._query.values(), *self._url.segments]
        used += [read_template(text) for _, text in body_templates(tool.body)]
        self.named = {one.name for pieces in used for one in pieces if isinstance(one, Slot)}
        self._rest_in_query = tool.method in _WITHOUT_BODY or tool.body is not None
        self._takes_more = _takes_more(tool.input_schema, self.named)

    def request(self, arguments: Mapping[str, object]) -> HttpRequest:
        """Return the request of a call. Unfit: no request can carry these arguments."""
        rest = {name: one for name, one in arguments.items() if name not in self.named}
        fields = [*self._query_fields(arguments)]
        body: object = _ABSENT
        if self._rest_in_query:
            for name in self._query.keys() & rest.keys():
                raise Unfit(f"{quoted(name)} is a query field that the tool itself sets")
            fields += [pair for name, one in rest.items() for pair in _fields(name, one)]
        elif rest or self._takes_more:
            body = rest
        if self._body is not None:
            body = _Filling(arguments).value(self._body)
        query = "&".join(f"{quote(name, safe='')}={quote(one, safe='')}" for name, one in fields)
        url = self._path(arguments) + (f"?{query}" if query else "")
        if len(url) > _MAX_URL_CHARACTERS:
            raise Unfit(f"the URL would have {len(url)} characters; give less")
        headers = {
            name: _header(name, text)
            for name, pieces in self._headers.items()
            if (text := _text(pieces, arguments, f"the header {name}")) is not None
        }
        if body is _ABSENT:
            return HttpRequest(url, headers, None)
        return HttpRequest(url, headers | {"Content-Type": "application/json"}, _encoded(body))

    def _path(self, arguments: Mapping[str, object]) -> str:
        segments = [_segment(pieces, arguments) for pieces in self._url.segments]
        return "/".join((self._url.origin, *segments)) if segments else f"{self._url.origin}/"

    def _query_fields(self, arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        for name, pieces in self._query.items():
            match pieces:
                case [Slot(argument)]:
                    yield from _fields(name, arguments.get(argument))
                case _:
                    text = _text(pieces, arguments, f"the query field {name}")
                    if text is not None:
                        yield name, text


def _takes_more(schema: JsonValue, used: set[str]) -> bool:
    """Tell whether a call may bring arguments that nothing else uses."""
    if not isinstance(schema, Mapping):
        return False
    properties = schema.get("properties")
    names = set(properties) if isinstance(properties, Mapping) else set()
    return bool(names - used) or schema.get("additionalProperties", False) is not False


def _segment(pieces: Template, arguments: Mapping[str, object]) -> str:
    """Return one segment of a path; its own texts are quoted already."""
    made = ""
    for one in pieces:
        if isinstance(one, str):
            made += one
            continue
        text = _scalar(arguments.get(one.name), one.name)
        if not text:
            raise Unfit(f"{one.name} stands in the path, where it may not be empty")
        if _CONTROL.search(text):
            raise Unfit(f"{one.name} stands in the path, where no control character may be")
        if any(step in (".", "..") for step in _steps(text)):
            raise Unfit(f"{one.name} stands in the path, where . and .. may not be a step")
        made += quote(text, safe="")
    return made


def _steps(text: str) -> Iterator[str]:
    """Yield the steps that a server may see in a text, also one that unquotes twice."""
    for one in _STEPS.split(unquote(text)):
        yield one.partition(";")[0]


def _text(pieces: Template, arguments: Mapping[str, object], what: str) -> str | None:
    """Return a text with its arguments; None: one of them was left out, or is null."""
    made = ""
    for one in pieces:
        if isinstance(one, str):
            made += one
            continue
        value = arguments.get(one.name)
        if value is None:
            return None
        made += _scalar(value, one.name)
        if len(made) > _MAX_FIELD_CHARACTERS:
            raise Unfit(f"{what} would have more than {_MAX_FIELD_CHARACTERS} characters")
    return made


def _fields(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the query fields that an argument becomes: none of null, one for each of a list."""
    if value is None:
        return
    for one in value if isinstance(value, list) else [value]:
        yield name, _scalar(one, name)


def _scalar(value: object, name: str) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            kind = "null" if value is None else "a list" if isinstance(value, list) else "an object"
            raise Unfit(f"{quoted(name)} is {kind} where a text, a number or a boolean can stand")


def _header(name: str, text: str) -> str:
    if not _HEADER.fullmatch(text):
        raise Unfit(f"the header {name} takes printable ASCII only, on one line")
    return text.strip()


class _Filling:
    """One walk over a body's template."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._arguments = arguments
        self._left = _MAX_BODY_BYTES

    def value(self, template: JsonValue) -> object:
        """Return what the template says, _ABSENT where its argument was left out."""
        match template:
            case str():
                return self._of_text(read_template(template))
            case list():
                found = map(self.value, template)
                return [one for one in found if one is not _ABSENT]
            case Mapping():
                made = ((name, self.value(one)) for name, one in template.items())
                return {name: one for name, one in made if one is not _ABSENT}
            case _:
                return template

    def _of_text(self, pieces: Template) -> object:
        match pieces:
            case [Slot(name)]:
                if name not in self._arguments:
                    return _ABSENT
                value = self._arguments[name]
                self._spend(len(json.dumps(value)))
                return value
            case _:
                text = _text(pieces, self._arguments, "a text of the body")
                self._spend(0 if text is None else len(text))
                return _ABSENT if text is None else text

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Unfit(f"the body would have more than {_MAX_BODY_BYTES} bytes; give less")


def _encoded(body: object) -> bytes:
    data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(data) > _MAX_BODY_BYTES:
        raise Unfit(f"the body would have {len(data)} bytes; {_MAX_BODY_BYTES} are the most")
    return data
