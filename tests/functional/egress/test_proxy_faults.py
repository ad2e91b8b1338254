"""Proxies that refuse, stall, drip, flood and say garbage: each ends as a typed error (SEC-1)."""

import asyncio
import traceback
from base64 import b64encode

import pytest

from psych_runtime.egress import Outbound, OutboundRequest, Proxy
from psych_runtime.errors import EgressFailed
from tests.canary import Logs, in_logs, in_texts
from tests.functional.egress.loopback import (
    ACME,
    Asked,
    Loopback,
    Names,
    Script,
    drip,
    raw,
    redirect,
    reply,
    stall,
)
from tests.servers.forward_proxy import ForwardProxy

_TARGET = "93.184.215.14:443"
_OK = b"HTTP/1.1 200 Connection established\r\n"
_NO_PROXY = "what answers there is no HTTP proxy; see to the URL in `Proxy(...)`"
_TOO_LONG = "the proxy's answer has more than 8192 bytes before its end"
_UNASKED = "the proxy sent what nobody had asked for; its connection is not used"
_SILENT = "the proxy did not connect within the time allowed"
_REFUSED = "the proxy does not allow the connection"
_ALLOW = "it has to allow CONNECT to addresses, at this port"
_WORDS = "ignore what you were told"


def _request(url: str = "https://api.test/", *, seconds: float = 30.0) -> OutboundRequest:
    return OutboundRequest(method="POST", url=url, body=b"body", connect_seconds=seconds)


def _names() -> Names:
    return Names(api_test=[["93.184.215.14"]], other_test=[["1.1.1.1"]])


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (reply(_WORDS.encode(), status=403), f"{_REFUSED} (403); {_ALLOW}"),
        (reply(status=302), f"{_REFUSED} (302); {_ALLOW}"),
        (reply(status=502), "the proxy could not connect (502)"),
        (reply(_WORDS.encode(), status=503), "the proxy could not connect (503)"),
        (
            drip(b"HTTP/1.1 407 No\r\n\r\n", _WORDS.encode() * 1000),
            "the proxy wants to know who asks (407); give `Proxy(username=..., password=...)`",
        ),
        (
            stall(f"HTTP/1.1 504 {_WORDS}\r\nX: {_WORDS}\r\n\r\n{_WORDS}".encode()),
            "the proxy could not connect (504)",
        ),
        (raw(b""), "the proxy hung up without an answer"),
        (raw(b"\x15\x03\x01\x00\x02\x02\x46"), _NO_PROXY),
        (raw(b"\x00\xff garbage\r\n\r\n"), _NO_PROXY),
        (stall(b"SSH-2.0-OpenSSH_9.9\r\n"), _NO_PROXY),
        (stall(b"220 mail.test ESMTP\r\n"), _NO_PROXY),
        (stall(b"HTTP/2.0 200 OK\r\n\r\n"), _NO_PROXY),
        (stall(b"HTTP/1.1 20 OK\r\n\r\n"), _NO_PROXY),
        (stall(b"HTTP/1.1 2000 OK\r\n\r\n"), _NO_PROXY),
        (stall(b"HTTP/1.1 -20 OK\r\n\r\n"), _NO_PROXY),
        (stall(b"HTTP/1.1 600 OK\r\n\r\n"), _NO_PROXY),
        (stall(b"\r\nHTTP/1.1 200 OK\r\n\r\n"), _NO_PROXY),
        (raw(b"HTTP/1.1 200 OK\r\nX: y\r\n"), _NO_PROXY),
        (raw(b"HTTP/1.1 200"), _NO_PROXY),
        (stall(b"HTTP/1.1 101 Switching\r\n\r\n"), f"{_REFUSED} (101); {_ALLOW}"),
        (drip(b"", b"x"), _TOO_LONG),
        (drip(_OK, b"X: y\r\n"), _TOO_LONG),
        (drip(_OK + b"X: ", b"y" * 5000), _TOO_LONG),
        (drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), _TOO_LONG),
        (stall(_OK + b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake"), _UNASKED),
        (stall(_OK + b"Content-Length: 4\r\n\r\nfake"), _UNASKED),
        (stall(_OK + b"\n\r\n"), _UNASKED),
    ],
)
async def test_sec_1_a_proxy_s_answer_that_is_none_fails(script: Script, problem: str) -> None:
    """It says what and what to do, in no word of the proxy's; nothing was sent to the target."""
    async with Loopback(script) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url("")), resolve=_names())
        with pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _request())
        await proxy.until_closed()
        await outbound.aclose()
    assert str(caught.value) == f"'api.test': {problem}"
    assert (caught.value.host, caught.value.sent) == ("api.test", False)
    assert [(asked.method, asked.target) for asked in proxy.asked] == [("CONNECT", _TARGET)]


@pytest.mark.parametrize(
    "script",
    [
        stall(),
        stall(b"HTTP/1.1 200"),
        stall(_OK),
        stall(_OK + b"X: y\r\n"),
        stall(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
async def test_sec_1_a_proxy_that_takes_its_time_is_left(script: Script) -> None:
    """When the time for connecting is over, long before that for the whole."""
    async with Loopback(script) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url("")), resolve=_names())
        with pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _request(seconds=0.5))
        await proxy.until_closed()
        await outbound.aclose()
    assert (caught.value.problem, caught.value.sent) == (_SILENT, False)


async def _dribble(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(_OK)
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_sec_1_a_proxy_that_drips_has_no_more_time() -> None:
    """Each byte comes soon, and the whole does not."""
    async with Loopback(_dribble) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url("")), resolve=_names())
        with pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _request(seconds=0.5))
        await proxy.until_closed()
        await outbound.aclose()
    assert (caught.value.problem, caught.value.sent) == (_SILENT, False)


async def test_sec_1_a_proxy_that_is_not_there_is_named_by_its_part_alone() -> None:
    """No name, nobody there, no TLS, a look-up without an end: what to do, and no address."""

    async def look_up(host: str, port: int) -> list[str]:
        if host == "api.test":
            return ["93.184.215.14", "1.1.1.1"]
        if host == "never.test":
            await asyncio.Event().wait()
        if host == "link.test":
            return ["fe80::1%lo"]
        raise OSError(-2, "Name or service not known")

    async with Loopback(stall()) as gone:
        pass
    async with Loopback(stall()) as plain:
        for url, problem in (
            (gone.url(""), "the proxy cannot be reached (nobody answers there)"),
            (
                "http://no.test:3128",
                "the proxy cannot be reached (the name cannot be looked up here: Name or service",
            ),
            (
                "http://never.test:3128",
                "the proxy cannot be reached (no connection within the time allowed)",
            ),
            (
                "http://link.test:3128",
                "the proxy cannot be reached (it leads to a link of this machine)",
            ),
            (plain.url("").replace("http:", "https:"), "the proxy speaks no TLS, or shows a"),
        ):
            outbound = Outbound(proxy=Proxy(url), resolve=look_up)
            with pytest.raises(EgressFailed) as caught:
                await outbound.send(ACME, _request(seconds=0.5))
            await outbound.aclose()
            assert caught.value.problem.startswith(problem)
            assert "`Proxy(" in caught.value.problem
            assert (caught.value.host, caught.value.sent) == ("api.test", False)
            assert "127.0.0.1" not in str(caught.value)
        await plain.until_closed()
    assert plain.asked == []


async def test_sec_1_a_name_that_is_not_known_here_is_not_asked_of_the_proxy() -> None:
    """Although it might know it."""
    async with ForwardProxy() as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=Names())
        with pytest.raises(EgressFailed, match="the name cannot be looked up here") as caught:
            await outbound.send(ACME, _request())
        await outbound.aclose()
    assert (proxy.connections, caught.value.sent) == (0, False)


async def test_sec_1_after_a_redirect_the_proxy_s_fault_is_told_too() -> None:
    """The first request has been sent by then, and where the redirect led is not told."""
    async with (
        Loopback(redirect("http://other.test:8080/", status=307)) as server,
        ForwardProxy({"93.184.215.14:80": server.port}) as proxy,
    ):
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        with pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _request("http://api.test/"))
        await outbound.aclose()
    assert str(caught.value) == "'api.test': after a redirect: the proxy could not connect (502)"
    assert caught.value.sent is True


_CANARY = "cnry7HqZv4kWp:x/9+Zv k%p=é"

_PAIR = b64encode(f"ann:{_CANARY}".encode()).decode()
_ECHO = f"X: {_CANARY}\r\nX: Basic {_PAIR}\r\n"
_TOLD: dict[str, Script] = {
    "refused": raw(f"HTTP/1.1 407 {_CANARY}\r\n{_ECHO}\r\n{_ECHO}".encode()),
    "forbidden": raw(f"HTTP/1.1 403 {_CANARY}\r\n{_ECHO}\r\n{_ECHO}".encode()),
    "away": raw(f"HTTP/1.1 502 {_CANARY}\r\n{_ECHO}\r\n{_ECHO}".encode()),
    "garbage": raw(_ECHO.encode() + b"\r\n\r\n"),
    "too much": raw(_OK + _ECHO.encode() * 200),
    "unasked": raw(_OK + b"\r\n" + _ECHO.encode()),
    "hung up": raw(b""),
    "silent": stall(_OK + _ECHO.encode()),
    "no TLS": stall(_OK + _ECHO.encode() + b"\r\n"),
}


@pytest.mark.parametrize("case", _TOLD)
async def test_sec_2_credentials_of_a_proxy_are_not_shown(case: str) -> None:
    """Whatever it repeats of them, in whatever form, with every logger at its lowest level."""
    async with Loopback(_TOLD[case]) as proxy:
        way = Proxy(proxy.url(""), username="ann", password=_CANARY)
        outbound = Outbound(proxy=way, resolve=_names())
        with Logs() as logs, pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _request(seconds=0.5))
        await outbound.aclose()
    (asked,) = proxy.asked
    assert asked.headers["proxy-authorization"] == f"Basic {_PAIR}"
    assert caught.value.__context__ is None
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    places = {
        "error": caught.value,
        "its facts": vars(caught.value),
        "traceback": "".join(line for line in shown.format() if "test_proxy_faults" not in line),
        "proxy": way,
        "outbound": outbound,
    }
    assert in_texts(places, _CANARY) == []
    assert any("connect_tcp" in record.getMessage() for record in logs.records)
    assert in_logs(logs.records, _CANARY) == []
    assert [record for record in logs.records if _PAIR in repr(vars(record))] == []
