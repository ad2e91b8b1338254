"""A service on loopback that says back, in every way it has, what it was sent: the secret, too."""

import asyncio
import gzip
import html
import json
from base64 import b64decode, b64encode, encodebytes, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus, unquote

__all__ = [
    "PROXY_WAYS",
    "SECRET_FIELD",
    "SLOW_WAYS",
    "WAYS",
    "WRITTEN",
    "Heard",
    "Hostile",
    "hostile",
]

SECRET_FIELD: Final = "x-key"
"""The header with a secret where it is not in Authorization."""


class Heard(NamedTuple):
    """A request; `nth` counts those of this tool and way before it."""

    tool: str
    way: str
    fields: Mapping[str, str]
    nth: int

    @property
    def words(self) -> Sequence[str]:
        """Each header's value, and what is secret in it by itself; that is the last."""
        carried = self.fields.get("authorization") or self.fields.get("proxy-authorization", "")
        scheme, _, value = carried.partition(" ")
        pair = b64decode(value).decode() if scheme == "Basic" else ""
        secret = self.fields.get(SECRET_FIELD) or pair.partition(":")[2] or value
        return [one for one in (*self.fields.values(), pair, secret) if one]

    @property
    def line(self) -> str:
        """All of them on one line."""
        return ", ".join(self.words)

    @property
    def json(self) -> str:
        """All of them in one document, as keys and as values at any depth."""
        return json.dumps(
            {"fields": dict(self.fields), "words": self.words, self.line: {self.line: self.line}},
            ensure_ascii=False,
        )


type Piece = bytes | None
"""Sent by itself; None: nothing more comes until the service ends."""

type Way = Callable[[Heard], Iterable[Piece]]
type Written = Callable[[str], str]


class Hostile:
    """Answers `/tool/way` in that way, what is led elsewhere in JSON; `asked` has all requests.

    As a proxy it answers in PROXY_WAYS, one after the other.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Heard] = []
        self.over = asyncio.Event()
        self._count: Counter[tuple[str, str]] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close."""
        try:
            heard = await self._read(reader)
            for piece in _ANY.get(heard.way, WAYS["json"])(heard):
                if piece is None:
                    await self.over.wait()
                else:
                    writer.write(piece)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def count(self, tool: str, way: str) -> int:
        """Return how often a tool asked for a way."""
        return self._count[tool, way]

    async def _read(self, reader: asyncio.StreamReader) -> Heard:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        await reader.readexactly(int(fields.get("content-length", "0")))
        method, target, _ = first.split(" ")
        if method == "CONNECT":
            tool, way = method, PROXY_WAYS[len(self.asked) % len(PROXY_WAYS)]
        else:
            _, tool, way, *_ = unquote(target).split("/")
        heard = Heard(tool, way, fields, self._count[tool, way])
        self._count[tool, way] += 1
        self.asked.append(heard)
        return heard


@asynccontextmanager
async def hostile() -> AsyncIterator[Hostile]:
    """Serve on a free port of loopback."""
    made = Hostile()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.over.set()
        server.close()
        await server.wait_closed()


def _head(status: int | str, *fields: str, reason: str = "Words") -> bytes:
    lines = [f"HTTP/1.1 {status} {reason}", *fields, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def _reply(
    body: str | bytes = b"",
    kind: str | None = "text/plain",
    *fields: str,
    status: int = 200,
    reason: str = "Words",
) -> list[Piece]:
    data = body.encode() if isinstance(body, str) else body
    named = [] if kind is None else [f"Content-Type: {kind}"]
    length = f"Content-Length: {len(data)}"
    return [_head(status, *named, *fields, length, reason=reason), data]


def _chunked(data: bytes, size: int, *trailers: str) -> list[Piece]:
    parts = [data[place : place + size] for place in range(0, len(data), size)]
    framed = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    end = "\r\n".join(["0", *trailers, "", ""]).encode()
    head = _head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
    return [head, *framed, end]


_JSON: Final = "application/json"

WRITTEN: Final[Mapping[str, Written]] = {
    "plain": str,
    "quoted": lambda text: quote(text, safe=""),
    "quoted_twice": lambda text: quote(quote(text, safe=""), safe=""),
    "quoted_in_a_form": quote_plus,
    "quoted_in_bytes": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "json": json.dumps,
    "json_in_json": lambda text: json.dumps(json.dumps(text)),
    "json_in_characters": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "html": html.escape,
    "html_in_numbers": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "python": repr,
    "hex": lambda text: text.encode().hex(),
    "hex_in_capitals": lambda text: text.encode().hex().upper(),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64_for_urls": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "base64_in_lines": lambda text: encodebytes(text.encode()).decode(),
    "base64_quoted": lambda text: quote(b64encode(text.encode()), safe=""),
}
"""How a text may be written, by name."""

_STATUSES: Final = (400, 401, 403, 404, 407, 409, 422, 429, 500, 501, 799)

_BINARY: Final = ("image/png", "image/svg+xml", "application/octet-stream", "application/pdf")

_TEXTS: Final = ("application/xml", "application/x-ndjson", "application/problem+json", "text/html")

_FIELDS: Final = ("X-Echo", "Set-Cookie", "ETag", "WWW-Authenticate", "Location", "Last-Modified")


def _texts(write: Written) -> Way:
    return lambda heard: _reply("\n".join(map(write, (*heard.words, heard.line))))


def _typed(kind: str) -> Way:
    return lambda heard: _reply(heard.json, kind)


def _binary(kind: str) -> Way:
    return lambda heard: _reply(b"\x89PNG\r\n\x1a\n" + heard.json.encode() + b"\xff\0", kind)


def _refusing(status: int) -> dict[str, Way]:
    return {
        f"{status}": lambda heard: _reply(heard.line, status=status),
        f"{status}_in_json": lambda heard: _reply(heard.json, _JSON, status=status),
    }


def _echoed(heard: Heard) -> list[str]:
    return [f"{name}: {heard.line}" for name in _FIELDS]


def _doubled(heard: Heard) -> list[Piece]:
    """Name a member twice."""
    key = json.dumps(heard.line)
    return _reply(f"{{{key}: 1, {key}: 2}}", _JSON)


def _again(heard: Heard) -> list[Piece]:
    """Fail, and then not."""
    return _reply(heard.json, _JSON, *_echoed(heard), status=200 if heard.nth else 503)


def _held(heard: Heard) -> list[Piece]:
    """Answer whoever asked first last."""
    return [*([] if heard.nth else [None]), *_reply(heard.json, _JSON)]


def _round(heard: Heard) -> list[Piece]:
    """Lead to the same again, by an address that has the secret."""
    there = f"/{heard.tool}/redirected_round/{quote(heard.line, safe='')}"
    return _reply(heard.line, None, f"Location: {there}", status=302)


def _led(where: Callable[[Heard], str]) -> Way:
    return lambda heard: _reply(heard.line, None, f"Location: {where(heard)}", status=307)


WAYS: Final[Mapping[str, Way]] = {
    **{f"text_{name}": _texts(write) for name, write in WRITTEN.items()},
    **{way: made for status in _STATUSES for way, made in _refusing(status).items()},
    **{kind.replace("/", "_"): _binary(kind) for kind in _BINARY},
    **{kind.replace("/", "_"): _typed(kind) for kind in _TEXTS},
    "json": lambda heard: _reply(heard.json, _JSON),
    "json_escaped": lambda heard: _reply(json.dumps(json.loads(heard.json)), _JSON),
    "json_long": lambda heard: _reply(f'[{heard.json}, "{"x" * 20_000}"]', _JSON),
    "json_very_long": lambda heard: _reply(f'["{"x" * 70_000}", {heard.json}]', _JSON),
    "json_broken": lambda heard: _reply(heard.json[:-1], _JSON),
    "json_doubled": _doubled,
    "json_number": lambda heard: _reply(f"[1, {heard.line}]", _JSON),
    "json_of_no_type": lambda heard: _reply(heard.json, None),
    "text_of_no_type": lambda heard: _reply(heard.line, None),
    "utf_16": lambda heard: _reply(heard.line.encode("utf-16"), "text/plain; charset=utf-16"),
    "refused_at_the_edge": lambda heard: _reply("x" * 1000 + heard.line, status=400),
    "utf_16_refused": lambda heard: _reply(
        heard.line.encode("utf-16"), "text/plain; charset=utf-16", status=400
    ),
    "refused_as_image": lambda heard: _reply(heard.line, "image/png", status=500),
    "refused_in_base64": lambda heard: _reply(b64encode(heard.line.encode()), status=500),
    "refused_in_html": lambda heard: _reply(html.escape(heard.line), "text/html", status=401),
    "reason": lambda heard: _reply(heard.json, _JSON, reason=heard.line),
    "reason_refused": lambda heard: _reply(b"", status=401, reason=heard.line),
    "fields": lambda heard: _reply(heard.json, _JSON, *_echoed(heard)),
    "fields_alone": lambda heard: [_head(204, *_echoed(heard))],
    "type": lambda heard: _reply("x", heard.line),
    "type_long": lambda heard: _reply("x", f"a/{'b' * 490}{heard.line}"),
    "type_refused": lambda heard: _reply("x", heard.line, status=400),
    "charset": lambda heard: _reply("x", f'text/plain; charset="{heard.words[-1]}"'),
    "charset_in_hex": lambda heard: _reply(
        "x", f"text/plain; charset={heard.words[-1].encode().hex()}"
    ),
    "encoding": lambda heard: _reply(heard.json, _JSON, f"Content-Encoding: {heard.line}"),
    "gzip": lambda heard: _reply(
        gzip.compress(heard.json.encode()), _JSON, "Content-Encoding: gzip"
    ),
    "length": lambda heard: [_head(200, f"Content-Length: {heard.line}"), heard.line.encode()],
    "framing": lambda heard: [_head(200, f"Transfer-Encoding: {heard.line}"), b"x"],
    "later": lambda heard: _reply(b"", None, f"Retry-After: {heard.line}", status=429),
    "chunks": lambda heard: _chunked(heard.json.encode(), 3),
    "trailers": lambda heard: _chunked(heard.json.encode(), 500, *_echoed(heard)),
    "bad_chunk": lambda heard: [_head(200, "Transfer-Encoding: chunked"), heard.line.encode()],
    "early": lambda heard: [
        f"HTTP/1.1 103 Hints\r\nLink: {heard.line}\r\n\r\n".encode(),
        *_reply(heard.json, _JSON),
    ],
    "more_behind": lambda heard: [*_reply(heard.json, _JSON), heard.line.encode()],
    "garbage": lambda heard: [f"{heard.line}\r\n\r\n".encode()],
    "bad_field": lambda heard: [f"HTTP/1.1 200 OK\r\n{heard.line}\r\n\r\n".encode()],
    "hung_up": lambda heard: [_head(200, "Content-Length: 99999"), heard.line.encode()],
    "too_much": lambda heard: _reply(heard.json + "x" * 300_000, _JSON, *_echoed(heard)),
    "redirected": _led(lambda heard: f"/{heard.tool}/json/{quote(heard.line, safe='')}"),
    "redirected_round": _round,
    "redirected_to_metadata": _led(
        lambda heard: f"http://169.254.169.254/{quote(heard.line, safe='')}"
    ),
    "redirected_to_a_password": _led(lambda heard: f"http://{quote(heard.line)}@127.0.0.1/"),
    "redirected_nowhere": _led(lambda heard: f"http://[{heard.line}/"),
    "redirected_elsewhere": _led(lambda heard: f"{heard.words[-1].encode().hex()}:{heard.line}"),
    "again": _again,
    "held": _held,
}
"""How it answers, by name."""

SLOW_WAYS: Final[Mapping[str, Way]] = {
    "silent": lambda heard: [None],
    "stalled": lambda heard: [_head(200, "Content-Length: 99999"), heard.line.encode(), None],
}
"""Ways of never ending an answer."""

PROXY_WAYS: Final = (
    *("401", "403_in_json", "407", "407_in_json", "429", "500", "799", "json", "text_base64"),
    *("bad_field", "early", "fields", "fields_alone", "framing", "garbage", "hung_up", "later"),
    *("length", "more_behind", "reason", "reason_refused", "redirected", "too_much"),
)
"""How a proxy answers CONNECT."""

_ANY: Final[Mapping[str, Way]] = {**WAYS, **SLOW_WAYS}
