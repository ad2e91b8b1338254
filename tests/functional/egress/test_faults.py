"""Servers that stall, drip, lie, flood and say garbage: each ends as a typed error (SEC-1)."""

import asyncio
import gzip
from pathlib import Path

import pytest

from psych_runtime.egress import EgressRules, Outbound, OutboundRequest, Permit
from psych_runtime.errors import EgressFailed
from tests.functional.egress.certificates import Authority
from tests.functional.egress.loopback import (
    ACME,
    LOOPBACK,
    Loopback,
    Names,
    Script,
    drip,
    get,
    raw,
    reply,
    stall,
)

_OK = b"HTTP/1.1 200 OK\r\n"
_NO_HTTP = "the answer is no HTTP, or ended too early"
_BOMB = gzip.compress(b"\0" * 1_000_000)


def _lean(url: str, *, method: str = "GET", seconds: float = 30.0) -> OutboundRequest:
    return OutboundRequest(
        method=method, url=url, total_seconds=seconds, max_response_bytes=1000, max_redirects=0
    )


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (raw(b""), _NO_HTTP),
        (raw(b"\x00\xff garbage\r\n\r\n"), _NO_HTTP),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n"), _NO_HTTP),
        (raw(b"220 mail.test ESMTP\r\n"), _NO_HTTP),
        (raw(b"<html>HTTP/0.9</html>"), _NO_HTTP),
        (raw(b"HTTP/1.1 2000 OK\r\n\r\n"), _NO_HTTP),
        (raw(b"HTTP/1.1 200 OK"), _NO_HTTP),
        (raw(_OK + b"Bad Name: x\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"X: a\x00b\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"X\xff: y\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"X: " + b"a" * 200_000), _NO_HTTP),
        (raw(_OK + b"Content-Length: -1\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"Content-Length: x\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), _NO_HTTP),
        (raw(_OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"), _NO_HTTP),
        (raw(_OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), _NO_HTTP),
        (raw(_OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), _NO_HTTP),
        (raw(_OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n"), _NO_HTTP),
        (raw(_OK + b"Content-Length: 10\r\n\r\nhalf"), _NO_HTTP),
        (reply(b"x" * 1001), "more than 1000 bytes"),
        (reply(b"x", length=5_000_000_000), "more than 1000 bytes"),
        (stall(_OK + b"Content-Length: 5000000000\r\n\r\n"), "more than 1000 bytes"),
        (drip(_OK + b"Content-Length: 5000000000\r\n\r\n", b"x" * 65536), "more than 1000 bytes"),
        (drip(_OK + b"\r\n", b"x" * 65536), "more than 1000 bytes"),
        (
            drip(_OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 100),
            "more than 1000 bytes",
        ),
        (reply(_BOMB[:900], "Content-Encoding: gzip"), "the body is encoded"),
        (reply(_BOMB[:900], "Content-Encoding: br, identity"), "the body is encoded"),
        (reply(b"", "Content-Encoding: GZIP"), "the body is encoded"),
        (raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), _NO_HTTP),
    ],
)
async def test_sec_1_an_answer_that_is_none_fails(script: Script, problem: str) -> None:
    """It may have been acted on: `sent` says so. Its connection is closed."""
    async with Loopback(script) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        with pytest.raises(EgressFailed, match=problem) as caught:
            await outbound.send(ACME, _lean(server.url()))
        await server.until_closed()
        await outbound.aclose()
    assert (caught.value.host, caught.value.sent) == ("127.0.0.1", True)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "script",
    [
        stall(),
        stall(b"HTTP/1.1 200"),
        stall(_OK + b"Content-Length: 10\r\n\r\nhalf"),
        stall(_OK + b"Content-Length: 0\r\nX: y\r\n"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(_OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0;x"),
    ],
)
async def test_sec_1_a_server_that_takes_its_time_is_left(script: Script) -> None:
    """Whatever it does meanwhile: the whole has one bound."""
    async with Loopback(script) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        with pytest.raises(EgressFailed) as caught:
            await outbound.send(ACME, _lean(server.url(), seconds=1.0))
        await server.until_closed()
        await outbound.aclose()
    assert caught.value.sent is True


@pytest.mark.parametrize(
    ("script", "body"),
    [
        (raw(_OK + b"\r\nuntil it hangs up"), b"until it hangs up"),
        (raw(b"HTTP/1.0 200\r\n\r\nold"), b"old"),
        (raw(_OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"), b"ab"),
        (raw(b"HTTP/1.1 103 Early\r\n\r\n" + _OK + b"Content-Length: 1\r\n\r\na"), b"a"),
        (reply(b"x" * 1000), b"x" * 1000),
        (reply(b"\xff\x00", "Content-Encoding: identity"), b"\xff\x00"),
        (reply(b"more than it says", length=4), b"more"),
    ],
)
async def test_sec_1_an_answer_within_the_bounds_is_whole(script: Script, body: bytes) -> None:
    """What comes behind its end is not part of it."""
    async with Loopback(script) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        assert (await outbound.send(ACME, _lean(server.url()))).body == body
        await outbound.aclose()


async def test_mod_5_what_came_behind_an_answer_answers_nothing_else() -> None:
    """A connection that has it is not used again."""
    smuggled = b"ok" + _OK + b"Content-Length: 4\r\n\r\nfake"
    async with Loopback(reply(smuggled, length=2), reply(b"real")) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        bodies = [(await outbound.send(ACME, _lean(server.url()))).body for _ in range(2)]
        await outbound.aclose()
    assert (bodies, server.connections) == ([b"ok", b"real"], 2)


async def test_sec_1_headers_that_are_no_utf_8_are_read_all_the_same() -> None:
    """They are data like any other."""
    said = _OK + b"X-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\nContent-Length: 0\r\n\r\n"
    async with Loopback(stall(said)) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        headers = (await outbound.send(ACME, get(server.url()))).headers
        await outbound.aclose()
    assert (headers["x-latin"], headers["x-utf"]) == ("caf\xe9", "caf\xe9")


async def test_sec_1_a_head_request_has_no_body_to_bound() -> None:
    """What it says of one is only said."""
    said = _OK + b"Content-Length: 5000000000\r\nContent-Encoding: gzip\r\n\r\n"
    async with Loopback(stall(said)) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        answer = await outbound.send(ACME, _lean(server.url(), method="HEAD"))
        await outbound.aclose()
    assert (answer.body, answer.headers["content-length"]) == (b"", "5000000000")


async def test_sec_1_what_was_not_sent_may_be_sent_again() -> None:
    """No name, nobody there, no certificate, a look-up that never ends: `sent` is False."""

    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with Loopback(reply()) as server:
        url = server.url(host="api.test")
    rules = EgressRules(LOOPBACK)
    request = OutboundRequest(method="POST", url=url, body=b"x")
    short = OutboundRequest(method="POST", url=url, body=b"x", connect_seconds=0.05)
    tls = OutboundRequest(method="GET", url=url.replace("http:", "https:"))
    late = OutboundRequest(method="POST", url=url, total_seconds=0.05)
    async with Loopback(reply()) as plain:
        here = Names(api_test=[["127.0.0.1"]])
        wrong = OutboundRequest(
            method="GET",
            url=plain.url(host="api.test").replace("http:", "https:"),
            connect_seconds=0.2,
        )
        for outbound, each, problem in (
            (Outbound(rules, resolve=Names()), request, "the name cannot be looked up here: Name"),
            (Outbound(rules, resolve=here), request, "no connection .nobody answers there"),
            (Outbound(rules, resolve=here), tls, "no connection .nobody answers there"),
            (Outbound(rules, resolve=here), wrong, "no connection"),
            (Outbound(rules, resolve=never), short, "no connection within the time allowed"),
            (Outbound(rules, resolve=never), late, "no whole answer within 0.05 s"),
        ):
            with pytest.raises(EgressFailed, match=problem) as caught:
                await outbound.send(ACME, each)
            assert caught.value.sent is False
            assert caught.value.host == "api.test"
            await outbound.aclose()
    assert plain.asked == []


async def test_sec_1_the_name_is_what_a_certificate_must_be_for() -> None:
    """TLS asks for the name, though the connection goes to an address."""
    authority = Authority("api.test")
    names = Names(api_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    async with Loopback(reply(), tls=authority.server) as server:
        outbound = Outbound(
            EgressRules(Permit(networks=["127.0.0.1/32"])),
            resolve=names,
            ssl_context=authority.client,
        )
        assert (await outbound.send(ACME, get(server.url(host="api.test")))).body == b"ok"
        for host in ("other.test", "127.0.0.1"):
            with pytest.raises(EgressFailed, match="certificate") as caught:
                await outbound.send(ACME, get(server.url(host=host)))
            assert caught.value.sent is False
        await outbound.aclose()
    assert authority.names == ["api.test", "other.test", None]
    assert [asked.headers["host"] for asked in server.asked] == [f"api.test:{server.port}"]


async def test_sec_1_the_environment_says_nothing_of_certificates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a context, the system's own trust counts."""
    authority = Authority("localhost")
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with Loopback(reply(), tls=authority.server) as server:
        outbound = Outbound(EgressRules(Permit(hosts=["localhost"])))
        with pytest.raises(EgressFailed, match="certificate"):
            await outbound.send(ACME, get(server.url(host="localhost")))
        await outbound.aclose()
    assert server.asked == []
