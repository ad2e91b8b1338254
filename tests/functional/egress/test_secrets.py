"""A canary in headers, query, body and echo is in no error, repr or log line (SEC-2)."""

import logging
import traceback
from base64 import b64encode
from urllib.parse import quote

import pytest

from psych_runtime.egress import EgressRules, Outbound, OutboundRequest
from psych_runtime.errors import EgressDenied, EgressFailed
from tests.functional.egress.loopback import (
    ACME,
    LOOPBACK,
    Loopback,
    Script,
    raw,
    redirect,
    reply,
    stall,
)

_KEY = "sk-canary/7f3a+Zq9"
_FORMS = (_KEY, quote(_KEY, safe=""), _KEY.encode().hex(), b64encode(_KEY.encode()).decode())
_ECHO = " ".join(_FORMS)
_HEX = _KEY.encode().hex()

_SCRIPTS: dict[str, Script] = {
    "success": reply(_ECHO.encode(), f"X-Echo: {_ECHO}", f"Set-Cookie: {_ECHO}"),
    "refused": reply(_ECHO.encode(), f"X-Echo: {_ECHO}", status=401),
    "too much": reply(_ECHO.encode() * 100, f"X-Echo: {_ECHO}"),
    "encoded": reply(_ECHO.encode(), f"X-Echo: {_ECHO}", f"Content-Encoding: {_ECHO}"),
    "garbage": raw(_ECHO.encode() + b"\r\n\r\n"),
    "bad header": raw(f"HTTP/1.1 200 {_ECHO}\r\n{_ECHO}\r\n\r\n".encode()),
    "bad length": raw(f"HTTP/1.1 200 {_ECHO}\r\nContent-Length: {_ECHO}\r\n\r\n".encode()),
    "bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + _ECHO.encode()),
    "hung up": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _ECHO.encode()),
    "silent": stall(),
    "stalled": stall(f"HTTP/1.1 200 {_ECHO}\r\nContent-Length: 999\r\n\r\n{_ECHO}".encode()),
    "led inside": redirect(f"http://{_HEX}.127.0.0.1/{_ECHO}".replace(" ", "%20")),
    "led astray": redirect(f"http://{_HEX}/{_ECHO}".replace(" ", "%20")),
    "led to a password": redirect(f"http://{_FORMS[1]}@127.0.0.1/"),
    "led to a scheme": redirect(f"x{_HEX}://{_HEX}/"),
    "led nowhere": redirect(f"http://[{_HEX}/"),
    "led round": redirect(f"/?{_FORMS[1]}"),
}


def _seen_of(failure: BaseException | None, *, variables: bool) -> list[str]:
    """Return every text that a failure and all that it was raised from can show."""
    texts: list[str] = []
    while failure is not None:
        texts += [str(failure), repr(failure), repr(vars(failure)), repr(failure.args)]
        shown = traceback.TracebackException.from_exception(failure, capture_locals=variables)
        texts += [line for line in shown.format() if "_FORMS" not in line and "_KEY" not in line]
        failure = failure.__cause__ or failure.__context__
    return texts


@pytest.mark.parametrize("case", _SCRIPTS)
async def test_sec_2_what_is_sent_and_echoed_is_not_shown(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In plain, quoted, hexadecimal and base64 form, with every logger at DEBUG."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "httpcore2.http11", "httpcore2.connection", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    failure: EgressDenied | EgressFailed | None = None
    async with Loopback(_SCRIPTS[case]) as server:
        outbound = Outbound(EgressRules(LOOPBACK), resolve=_nowhere)
        request = OutboundRequest(
            method="POST",
            url=server.url(f"/?key={_FORMS[1]}"),
            headers={"Authorization": f"Bearer {_KEY}", "X-Key": _KEY},
            credentials=["X-Key"],
            body=_ECHO.encode(),
            total_seconds=1 if case in ("silent", "stalled") else 30,
            max_response_bytes=1000,
        )
        try:
            await outbound.send(ACME, request)
        except (EgressDenied, EgressFailed) as caught:
            failure = caught
        shown = [repr(request), repr(outbound), *_seen_of(failure, variables=True)]
        await outbound.aclose()
    assert (failure is None) == (case in ("success", "refused"))
    assert server.asked[0].headers["authorization"] == f"Bearer {_KEY}"
    shown += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    assert any("send_request_headers" in text for text in caplog.messages)
    leaks = [text for text in shown for form in _FORMS if form in text]
    assert leaks == []


async def _nowhere(host: str, port: int) -> list[str]:
    """Find no name: what a server made up is looked up by nobody."""
    raise OSError(-2, "Name or service not known")
