"""What a service's answer means for the call: data, text, or an error in words (TOOL-4, TOOL-7)."""

import re
from collections.abc import Mapping
from datetime import datetime
from email.message import Message
from http import HTTPStatus
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core.foreign import parse_json
from psych_runtime.core.http_dates import read_http_date
from psych_runtime.core.json_schema import check_instance
from psych_runtime.core.redaction import Redactor
from psych_runtime.errors import InvalidArgument, InvalidPayload, PayloadTooLarge
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.executed import RAN, Executed, failed
from psych_runtime.tools.returned import TOO_LARGE
from psych_runtime.tools.text import clip, ended, quote
from psych_schema.record import ToolResult
from psych_schema.spec import HttpTool

__all__ = ["PERHAPS", "Read", "Reply", "is_again", "judge", "retry_after_seconds"]

_PIECE_BYTES: Final = 1024
_LONG_CHARACTERS: Final = 16 * 1024
_TYPE_CHARACTERS: Final = 512
_MAX_TEXT_BYTES: Final = 16 * 1024 * 1024  # more as a result is kept by nobody
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\u2028\u2029]+")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
PERHAPS: Final = "It may or may not have taken effect: find out before you repeat it."
"""What a model is told of a call that may have been done, and must not be done twice."""

_AGAIN: Final = frozenset({408, 425, 429, 502, 503, 504})
_CHARSETS: Final = frozenset({"iso-8859-1", "us-ascii", "utf-16", "utf-8", "windows-1252"})
_TEXTS: Final = frozenset(
    {"application/javascript", "application/x-www-form-urlencoded", "application/xml"}
    | {"application/graphql", "application/toml", "application/x-ndjson", "application/yaml"}
)
_HEAD_FIELDS: Final = ("content-length", "content-type", "etag", "last-modified", "location")
_ADVICE: Final[Mapping[int, str]] = {
    400: "Correct the arguments before you call it again.",
    401: "The service refuses the credential; the same call will fail again.",
    403: "The service refuses this action; the same call will fail again.",
    404: "There is nothing under these arguments.",
    405: "The service takes no such request; the same call will fail again.",
    409: "It conflicts with what is there now; look at that first.",
    410: "There is nothing under these arguments any more.",
    412: "It conflicts with what is there now; look at that first.",
    422: "Correct the arguments before you call it again.",
    429: "There were too many requests; wait before you call it again.",
}


class Reply(NamedTuple):
    """An answer, whole and within its bound."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Read(NamedTuple):
    """What an answer says, as JSON or text that was read from it and can be kept."""

    value: JsonValue


def judge(
    tool: HttpTool,
    reply: Reply,
    *,
    redactor: Redactor,
    is_safe: bool,
    after_seconds: float | None = None,
) -> object:
    """Return what the call brought: its value, or an Executed where there is none.

    `redactor` takes secrets out of everything that came back; `is_safe` says that a repetition
    harms nothing, `after_seconds` how long the service asks to wait with one.
    """
    if not 200 <= reply.status < 300:
        wait = "" if after_seconds is None else f" The service asks to wait {after_seconds:.0f} s."
        return _refused(tool, reply, redactor, is_safe=is_safe, wait=wait)
    if tool.method == "HEAD":
        fields: dict[str, JsonValue] = {
            name: redactor.redact(reply.headers[name])
            for name in _HEAD_FIELDS
            if name in reply.headers
        }
        return Read({"status": reply.status, "headers": fields})
    try:
        return _checked(tool, _content(tool, reply, redactor))
    except _Unreadable as error:
        return failed(error.code, f"{tool.name}: {ended(str(error))} {RAN}", status=reply.status)


class _Unreadable(ValueError):
    """An answer that is no data; its text says why."""

    def __init__(self, code: str, problem: str) -> None:
        self.code = code
        super().__init__(problem)


class _Nothing(NamedTuple):
    """An answer without a body."""

    status: int


def _content(tool: HttpTool, reply: Reply, redactor: Redactor) -> Attachment | JsonValue | _Nothing:
    kind, charset = _content_type(reply.headers, redactor)
    if not reply.body:
        return _Nothing(reply.status)
    if kind == "application/json" or kind.endswith("+json"):
        return _json(tool, _decoded(reply.body, charset), redactor)
    if not kind:
        return _guessed(tool, reply, redactor)
    if kind.startswith("text/") or kind.endswith("+xml") or kind in _TEXTS:
        text = redactor.redact(_decoded(reply.body, charset))
        if tool.output_schema is None:
            return text
        wanted = "not JSON, which its output schema asks for"
        raise _Unreadable("answer_no_json", f"the service answered {quote(kind)}, {wanted}")
    return _attachment(tool, reply, redactor, kind)


def _attachment(tool: HttpTool, reply: Reply, redactor: Redactor, kind: str) -> Attachment:
    """Return an image or file as it is: of one with a secret in it nothing can be taken out."""
    size = f"the service answered {len(reply.body)} bytes of {quote(kind)}"
    if tool.output_schema is not None:
        raise _Unreadable("answer_no_json", f"{size}, not JSON, which its output schema asks for")
    if redactor.redact_bytes(reply.body) is not reply.body:
        raise _Unreadable("answer_unsupported", f"{size}, with a secret in it")
    try:
        return Attachment(reply.body, kind)
    except InvalidArgument:
        raise _Unreadable("answer_unsupported", f"{size}, which is no media type") from None


def _guessed(tool: HttpTool, reply: Reply, redactor: Redactor) -> JsonValue:
    """Return what a body without a type is: JSON if it can be, else text."""
    text = _decoded(reply.body, "utf-8")
    try:
        return _json(tool, text, redactor)
    except _Unreadable:
        if tool.output_schema is not None:
            raise
    return redactor.redact(text)


def _json(tool: HttpTool, text: str, redactor: Redactor) -> JsonValue:
    bound = 4 * _MAX_TEXT_BYTES  # the body is bounded already, in its own encoding
    try:
        value = parse_json(text, what="the answer", max_bytes=bound)
    except (InvalidPayload, PayloadTooLarge) as error:
        problem = redactor.redact(getattr(error, "problem", str(error)))
        raise _Unreadable(
            "answer_unreadable", f"the service's answer is not readable as JSON: {problem}"
        ) from None
    if len(text) > _LONG_CHARACTERS and redactor.redact(text) is text:
        return value  # a look at each value of a long answer takes seconds
    return redactor.redact_json(value)


def _checked(tool: HttpTool, value: Attachment | JsonValue | _Nothing) -> object:
    if isinstance(value, Attachment):
        return value
    if isinstance(value, _Nothing):
        if tool.output_schema is not None:
            problem = "the service answered nothing, which its output schema does not allow"
            raise _Unreadable("result_invalid", problem)
        said = f"The service answered {_phrase(value.status)}, without content."
        return Executed("ok", ToolResult(message=said))
    if tool.output_schema is not None:
        try:
            check_instance(value, tool.output_schema, what="the answer")
        except InvalidPayload as error:
            problem = f"the answer does not fit its output schema: {error.problem}"
            raise _Unreadable("result_invalid", problem) from None
    return Read(value)


def _content_type(headers: Mapping[str, str], redactor: Redactor) -> tuple[str, str]:
    """Return the media type in lower case and the charset; `` is none, UTF-8 unless said.

    Secrets go first: in small letters nothing finds them any more.
    """
    field = redactor.redact_start(headers.get("content-type", ""), _TYPE_CHARACTERS)
    parsed = Message()
    parsed["content-type"] = field
    charset = parsed.get_param("charset", "utf-8")
    kind = field.partition(";")[0].strip().lower()
    return kind, charset.lower() if isinstance(charset, str) else "utf-8"


def _decoded(body: bytes, charset: str) -> str:
    if len(body) > _MAX_TEXT_BYTES:
        sizes = f"{len(body)} bytes of text, the bound is {_MAX_TEXT_BYTES}"
        raise _Unreadable(TOO_LARGE, f"the service answered {sizes}; ask for less")
    charset = {"utf8": "utf-8", "latin-1": "iso-8859-1", "ascii": "us-ascii"}.get(charset, charset)
    if charset not in _CHARSETS:
        problem = f"the service answered text in {quote(charset)}, which is not read here"
        raise _Unreadable("answer_unreadable", problem)
    try:
        return body.decode("utf-8-sig" if charset == "utf-8" else charset)
    except UnicodeDecodeError as error:
        problem = f"the service's answer is no {charset.upper()} from byte {error.start} on"
        raise _Unreadable("answer_unreadable", problem) from None


def _refused(
    tool: HttpTool, reply: Reply, redactor: Redactor, *, is_safe: bool, wait: str
) -> Executed:
    said = f"{tool.name}: the service answered {_phrase(reply.status)}"
    piece = _piece(reply, redactor)
    advice = _ADVICE.get(reply.status, "The same call will probably fail again.")
    if 300 <= reply.status < 400:
        advice = f"It was not followed. {PERHAPS}"
        if is_safe:
            advice = "It was not followed; the tool's URL has to be another."
    elif reply.status >= 500 or reply.status in (408, 425):
        advice = "It may work later; do not repeat it at once." if is_safe else PERHAPS
    text = f"{said}: {piece}" if piece else said
    message = f"{ended(text)} {advice}{wait}"
    return failed("http_status", message, status=reply.status, transient=is_again(reply.status))


def _piece(reply: Reply, redactor: Redactor) -> str:
    """Return the beginning of an error's body; of what is no text, what it is."""
    kind, charset = _content_type(reply.headers, redactor)
    is_text = kind.startswith("text/") or kind.endswith(("json", "xml")) or kind in _TEXTS
    if reply.body and kind and not is_text:
        return f"{len(reply.body)} bytes of {quote(kind)}"
    body = reply.body.decode(charset if charset in _CHARSETS else "utf-8", errors="replace")
    text = redactor.redact_start(body, _PIECE_BYTES)
    return clip(_UNPRINTABLE.sub(" ", text).strip(), _PIECE_BYTES)


def _phrase(status: int) -> str:
    """Return the status with its name; the server's own words say nothing more."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def is_again(status: int) -> bool:
    """Tell whether the same request may be answered otherwise after a while."""
    return status in _AGAIN


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how long a service asks to wait, None when it does not say or nobody can read it."""
    field = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(field):
        return float(field)
    until = read_http_date(field)
    return None if until is None else max(0.0, (until - now).total_seconds())
