"""Requests by way of a real forward proxy: it is asked for judged addresses alone (SEC-1)."""

import asyncio
from base64 import b64encode

import pytest

from psych_runtime.egress import Bounds, EgressRules, Outbound, OutboundRequest, Permit, Proxy
from psych_runtime.errors import EgressDenied, EgressFailed
from psych_runtime.ports.egress import Destination, EgressPolicy
from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope
from tests.functional.egress.certificates import Authority
from tests.functional.egress.loopback import (
    ACME,
    GLOBEX,
    LOOPBACK,
    Loopback,
    Names,
    get,
    raw,
    redirect,
    reply,
    stall,
)
from tests.servers.forward_proxy import ForwardProxy

_PUBLIC = "93.184.215.14"
_OTHER = "1.1.1.1"
_SIX = "2606:4700:4700::1111"


def _names(*addresses: str) -> Names:
    return Names(api_test=[addresses or [_PUBLIC]])


def _way(server: Loopback, *, address: str = _PUBLIC, port: int = 80) -> dict[str, int]:
    """Return where a proxy leads that stands between here and the public Internet."""
    return {f"{address}:{port}": server.port}


async def test_sec_1_the_proxy_is_asked_for_the_judged_address_and_no_name() -> None:
    """Also for http; the request itself is for the target alone, whole and under its name."""
    async with Loopback(reply(b"there")) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        request = OutboundRequest(
            method="POST", url="http://api.test/a?b", headers={"X-Id": "7"}, body=b"body"
        )
        assert (await outbound.send(ACME, request)).body == b"there"
        await outbound.aclose()
    (connect,) = proxy.asked
    assert connect.line == f"CONNECT {_PUBLIC}:80 HTTP/1.1"
    assert connect.headers.pop("user-agent").startswith("psych-runtime/")
    assert connect.headers == {"host": f"{_PUBLIC}:80"}
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/a?b", b"body")
    assert (asked.headers["host"], asked.headers["x-id"]) == ("api.test", "7")
    assert not [name for name in asked.headers if name.startswith("proxy-")]


@pytest.mark.parametrize("is_https", [False, True])
async def test_sec_1_tls_is_with_the_target_under_its_name(is_https: bool) -> None:
    """Through either kind of proxy, on a connection that is kept open."""
    target, middle = Authority("api.test"), Authority("proxy.test")
    names = Names(api_test=[[_PUBLIC]], proxy_test=[["127.0.0.1"]])
    tls = middle.server if is_https else None
    async with Loopback(reply(b"secret"), tls=target.server) as server:
        routes = _way(server, port=443)
        async with ForwardProxy(routes, tls=tls) as proxy:
            url = proxy.url.replace("127.0.0.1", "proxy.test")
            outbound = Outbound(
                proxy=Proxy(url, ssl_context=middle.client),
                resolve=names,
                ssl_context=target.client,
            )
            for _ in range(3):
                assert (await outbound.send(ACME, get("https://api.test/"))).body == b"secret"
            await outbound.aclose()
            await proxy.until_closed()
    assert (proxy.targets, len(server.asked)) == ([f"{_PUBLIC}:443"], 3)
    assert (target.names, middle.names) == (["api.test"], ["proxy.test"] if is_https else [])
    assert b"GET / HTTP" not in proxy.sent
    assert names.looked_up.count("api.test") == 1


async def test_sec_1_another_name_s_certificate_is_refused_through_the_proxy() -> None:
    """Whoever leads the connection elsewhere gets no request."""
    authority = Authority("other.test")
    async with (
        Loopback(reply(), tls=authority.server) as server,
        ForwardProxy(_way(server, port=443)) as proxy,
    ):
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names(), ssl_context=authority.client)
        with pytest.raises(EgressFailed, match="certificate") as caught:
            await outbound.send(ACME, get("https://api.test/"))
        await proxy.until_closed()
        await outbound.aclose()
    assert (caught.value.sent, server.asked) == (False, [])


async def test_sec_1_another_name_s_certificate_of_the_proxy_is_refused() -> None:
    """It is told nothing: neither whereto nor who asks."""
    authority = Authority("other.test")
    async with ForwardProxy(tls=authority.server) as proxy:
        way = Proxy(proxy.url, username="ann", password="x", ssl_context=authority.client)
        outbound = Outbound(proxy=way, resolve=_names())
        with pytest.raises(EgressFailed, match="shows a certificate that nobody") as caught:
            await outbound.send(ACME, get("https://api.test/"))
        await proxy.until_closed()
        await outbound.aclose()
    assert (caught.value.sent, proxy.asked) == (False, [])
    assert "127.0.0.1" not in str(caught.value)


async def test_sec_1_an_ipv6_address_is_asked_for_in_brackets() -> None:
    """With the port of the URL."""
    async with (
        Loopback(reply(b"six")) as server,
        ForwardProxy(_way(server, address=f"[{_SIX}]", port=8080)) as proxy,
    ):
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names(_SIX))
        for host in ("api.test", f"[{_SIX}]"):
            assert (await outbound.send(ACME, get(f"http://{host}:8080/"))).body == b"six"
        await outbound.aclose()
    assert proxy.targets == [f"[{_SIX}]:8080"] * 2
    assert {connect.headers["host"] for connect in proxy.asked} == {f"[{_SIX}]:8080"}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://2130706433/",
        "http://inside.test/",
        "http://mixed.test/",
        "https://inside.test:8443/",
        "http://public.test:25/",
        "http://localhost/",
    ],
)
async def test_sec_1_what_nobody_allows_is_not_even_told_to_the_proxy(url: str) -> None:
    """Although that could reach more than this machine can."""
    names = Names(
        inside_test=[["10.0.0.1"]],
        mixed_test=[[_PUBLIC, "10.0.0.1"]],
        public_test=[[_PUBLIC]],
        localhost=[["127.0.0.1"]],
    )
    async with ForwardProxy() as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=names)
        with pytest.raises(EgressDenied) as caught:
            await outbound.send(ACME, get(url))
        await outbound.aclose()
    assert (proxy.connections, caught.value.sent) == (0, False)


async def test_sec_1_the_proxy_itself_is_no_target() -> None:
    """Its address is exempt as a proxy only, whoever names it."""
    async with ForwardProxy() as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names("127.0.0.1"))
        for url in (proxy.url, f"http://api.test:{proxy.port}/"):
            with pytest.raises(EgressDenied, match="loopback address"):
                await outbound.send(ACME, get(url))
        await outbound.aclose()
    assert proxy.connections == 0


async def test_sec_1_a_name_that_changes_is_judged_anew_before_the_proxy_is_asked() -> None:
    """It is looked up once for a tunnel: what the proxy makes of the name does not count."""
    names = Names(api_test=[[_PUBLIC], ["10.0.0.1"]])
    answer = reply(b"ok", "Connection: close")
    async with Loopback(answer) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=names)
        await outbound.send(ACME, get("http://api.test/"))
        with pytest.raises(EgressDenied, match="private address"):
            await outbound.send(ACME, get("http://api.test/"))
        await outbound.aclose()
    assert (proxy.targets, names.looked_up) == ([f"{_PUBLIC}:80"], ["api.test", "api.test"])


async def test_sec_1_a_redirect_is_judged_anew_before_the_proxy_is_asked() -> None:
    """One leads to another public address, the next one inside."""
    names = Names(api_test=[[_PUBLIC]], other_test=[[_OTHER]], inside_test=[["10.0.0.1"]])
    async with Loopback() as server, ForwardProxy() as proxy:
        proxy.routes = _way(server) | _way(server, address=_OTHER, port=8080)
        server.scripts = [
            redirect("http://other.test:8080/b"),
            redirect("http://inside.test/c"),
        ]
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=names)
        with pytest.raises(EgressDenied, match="a redirect is refused: it leads to a") as caught:
            await outbound.send(ACME, get("http://api.test/a"))
        await outbound.aclose()
    assert proxy.targets == [f"{_PUBLIC}:80", f"{_OTHER}:8080"]
    assert [asked.target for asked in server.asked] == ["/a", "/b"]
    assert (caught.value.host, caught.value.sent) == ("api.test", True)


async def test_sec_1_what_the_operator_named_goes_through_the_proxy_too() -> None:
    """Unjudged, and still by the address that it has here."""
    async with (
        Loopback(reply(b"ok")) as server,
        ForwardProxy(_way(server, address="10.0.0.1")) as proxy,
    ):
        outbound = Outbound(
            proxy=Proxy(proxy.url),
            allowed_origins=["http://api.test"],
            resolve=_names("10.0.0.1"),
        )
        assert (await outbound.send(ACME, get("http://api.test/"))).body == b"ok"
        await outbound.aclose()
    assert proxy.targets == ["10.0.0.1:80"]


async def test_sec_1_scopes_share_no_tunnel() -> None:
    """One scope uses its own again, another opens one."""
    scopes = [ACME, GLOBEX, Scope(tenant="acme", principal="ann"), ACME, GLOBEX]
    async with Loopback(reply()) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        for scope in scopes:
            await outbound.send(scope, get("http://api.test/"))
        await outbound.aclose()
        await proxy.until_closed()
    assert (len(server.asked), len(proxy.asked), server.connections) == (5, 3, 3)


async def test_sec_1_idle_tunnels_are_closed_without_another_request() -> None:
    """As connections are."""
    async with Loopback(reply()) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(
            proxy=Proxy(proxy.url), resolve=_names(), bounds=Bounds(idle_seconds=0.01)
        )
        await outbound.send(ACME, get("http://api.test/"))
        await proxy.until_closed()
        await server.until_closed()
        await outbound.aclose()


class _Switch(EgressPolicy):
    """Allows every address, until it does not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Allow | Deny = Allow()

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        self.asked.append(f"{destination.scheme}://{destination.host} {destination.address}")
        return self.answer if destination.address else Allow()


async def test_sec_1_a_rule_that_is_gone_closes_a_tunnel() -> None:
    """It is judged before it is used again, by where it leads; nobody asks about the proxy."""
    policy = _Switch()
    async with Loopback(reply()) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(policy, proxy=Proxy(proxy.url), resolve=_names())
        await outbound.send(ACME, get("http://api.test/"))
        policy.answer = Deny("not any more")
        with pytest.raises(EgressDenied, match="not any more"):
            await outbound.send(ACME, get("http://api.test/"))
        await proxy.until_closed()
        await outbound.aclose()
    assert len(server.asked) == 1
    first, judged = "http://api.test None", f"http://api.test {_PUBLIC}"
    assert policy.asked == [first, judged, first, judged, judged]


async def test_mod_5_what_came_behind_an_answer_ends_a_tunnel() -> None:
    """It answers nobody else."""
    smuggled = b"okHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake"
    async with (
        Loopback(reply(smuggled, length=2), reply(b"real")) as server,
        ForwardProxy(_way(server)) as proxy,
    ):
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        url = "http://api.test/"
        bodies = [(await outbound.send(ACME, get(url))).body for _ in range(2)]
        await outbound.aclose()
    assert (bodies, len(proxy.asked)) == ([b"ok", b"real"], 2)


@pytest.mark.parametrize(
    ("no_proxy", "targets"),
    [
        (["api.test"], []),
        (["*.test"], []),
        (["127.0.0.0/8"], []),
        (["127.0.0.1"], []),
        (["test", "10.0.0.0/8"], ["127.0.0.1:{port}"]),
        ([], ["127.0.0.1:{port}"]),
    ],
)
async def test_sec_1_no_proxy_says_what_is_reached_directly(
    no_proxy: list[str], targets: list[str]
) -> None:
    """And allows nothing by it."""
    async with Loopback(reply(b"ok")) as server, ForwardProxy() as proxy:
        proxy.routes = _way(server, address="127.0.0.1", port=server.port)
        way = Proxy(proxy.url, no_proxy=no_proxy)
        outbound = Outbound(EgressRules(LOOPBACK), proxy=way, resolve=_names("127.0.0.1"))
        assert (await outbound.send(ACME, get(server.url(host="api.test")))).body == b"ok"
        await outbound.aclose()
        outbound = Outbound(proxy=way, resolve=_names("127.0.0.1"))
        with pytest.raises(EgressDenied, match="loopback address"):
            await outbound.send(ACME, get(server.url(host="api.test")))
        await outbound.aclose()
    assert proxy.targets == [target.format(port=server.port) for target in targets]


_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "WS_PROXY")


@pytest.mark.parametrize("has_proxy", [False, True])
async def test_sec_1_the_environment_names_no_proxy_and_no_exception(
    monkeypatch: pytest.MonkeyPatch, has_proxy: bool
) -> None:
    """Neither for http nor for https, in capitals or not, with or without a proxy in code."""
    authority = Authority("localhost")
    async with (
        Loopback(reply(b"plain")) as plain,
        Loopback(reply(b"safe"), tls=authority.server) as safe,
        ForwardProxy() as proxy,
        ForwardProxy() as planted,
    ):
        for variable in _VARIABLES:
            monkeypatch.setenv(variable, "*" if variable == "NO_PROXY" else planted.url)
            monkeypatch.setenv(variable.lower(), "*" if variable == "NO_PROXY" else planted.url)
        proxy.routes = {f"127.0.0.1:{each.port}": each.port for each in (plain, safe)}
        outbound = Outbound(
            EgressRules(Permit(hosts=["localhost"])),
            proxy=Proxy(proxy.url) if has_proxy else None,
            resolve=Names(localhost=[["127.0.0.1"]]),
            ssl_context=authority.client,
        )
        for server, body in ((plain, b"plain"), (safe, b"safe")):
            answer = await outbound.send(ACME, get(server.url(host="localhost")))
            assert answer.body == body
        await outbound.aclose()
    assert planted.connections == 0
    assert len(proxy.targets) == (2 if has_proxy else 0)


def _basic(username: str, password: str) -> str:
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


async def test_sec_2_credentials_of_the_proxy_are_for_the_proxy() -> None:
    """With each CONNECT, and with nothing that the target gets."""
    authorization = _basic("ann", "pass:word é")
    async with (
        Loopback(reply(b"ok", "Connection: close")) as server,
        ForwardProxy(_way(server), authorization=authorization) as proxy,
    ):
        way = Proxy(proxy.url, username="ann", password="pass:word é")
        outbound = Outbound(proxy=way, resolve=_names())
        for _ in range(2):
            await outbound.send(ACME, get("http://api.test/"))
        await outbound.aclose()
    sent = [connect.headers["proxy-authorization"] for connect in proxy.asked]
    assert sent == [authorization] * 2
    assert authorization.encode() not in proxy.sent
    assert not [name for asked in server.asked for name in asked.headers if "auth" in name]


@pytest.mark.parametrize(
    ("password", "problem"),
    [
        (None, r"the proxy wants to know who asks \(407\); give `Proxy\(username="),
        ("wrong", r"the proxy does not take these credentials, or not as Basic \(407\); see to"),
    ],
)
async def test_sec_1_a_proxy_that_asks_who_it_is_is_asked_once(
    password: str | None, problem: str
) -> None:
    """However many addresses a name has: wrong credentials may lock the account."""
    async with ForwardProxy(authorization=_basic("ann", "right")) as proxy:
        way = Proxy(proxy.url, username=password and "ann", password=password)
        outbound = Outbound(proxy=way, resolve=_names(_PUBLIC, _OTHER, _SIX))
        with pytest.raises(EgressFailed, match=problem) as caught:
            await outbound.send(ACME, get("http://api.test/"))
        await proxy.until_closed()
        await outbound.aclose()
    assert (proxy.targets, caught.value.sent) == ([f"{_PUBLIC}:80"], False)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("status", [302, 400, 403, 404, 405, 429, 500, 502, 503, 504])
async def test_sec_1_an_address_that_the_proxy_does_not_reach_is_followed_by_the_next(
    status: int,
) -> None:
    """All of them are judged before the first."""
    async with Loopback(reply(b"ok")) as server:
        statuses = {f"{_OTHER}:80": status}
        async with ForwardProxy(_way(server), statuses=statuses) as proxy:
            outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names(_OTHER, _PUBLIC))
            assert (await outbound.send(ACME, get("http://api.test/"))).body == b"ok"
            await outbound.aclose()
    assert proxy.targets == [f"{_OTHER}:80", f"{_PUBLIC}:80"]


async def test_sec_1_a_proxy_that_does_not_connect_leaves_time_for_the_next_address() -> None:
    """Silence about one address is no silence about all."""
    async with Loopback(stall(), stall(b"HTTP/1.1 200 OK\r\n\r\n")) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url("")), resolve=_names(_OTHER, _PUBLIC))
        request = OutboundRequest(method="GET", url="http://api.test/", connect_seconds=2)
        sending = asyncio.create_task(outbound.send(ACME, request))
        third = asyncio.create_task(proxy.until_asked(3))  # what is meant for the target
        await asyncio.wait([sending, third], return_when=asyncio.FIRST_COMPLETED)
        await outbound.aclose()
        with pytest.raises(EgressFailed, match="the connection broke"):
            await sending
        third.cancel()
    assert [asked.target for asked in proxy.asked] == [f"{_OTHER}:80", f"{_PUBLIC}:80", "/"]


async def test_sec_1_a_tunnel_that_breaks_may_have_carried_the_request() -> None:
    """What the proxy refused has not, what it took may have."""
    async with Loopback(raw(b"")) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        with pytest.raises(EgressFailed, match="the answer is no HTTP, or ended") as caught:
            await outbound.send(ACME, get("http://api.test/"))
        await proxy.until_closed()
        await outbound.aclose()
    assert (caught.value.sent, len(server.asked)) == (True, 1)


async def test_sec_1_who_stops_waiting_for_the_proxy_leaves_nothing_behind() -> None:
    """The connection is closed, and the next request has its own."""
    async with Loopback(stall()) as proxy:
        outbound = Outbound(
            proxy=Proxy(proxy.url("")), resolve=_names(), bounds=Bounds(max_connections=1)
        )
        for count in (1, 2):
            sending = asyncio.create_task(outbound.send(ACME, get("http://api.test/")))
            await proxy.until_asked(count)
            sending.cancel()
            await asyncio.wait([sending])
            await proxy.until_closed()
            assert sending.cancelled()
        await outbound.aclose()


async def test_sec_1_requests_open_their_tunnels_together() -> None:
    """None waits for another's."""
    together = asyncio.Barrier(5)

    async def answer(asked: object, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with Loopback(answer) as server, ForwardProxy(_way(server)) as proxy:
        outbound = Outbound(proxy=Proxy(proxy.url), resolve=_names())
        sent = [outbound.send(ACME, get(f"http://api.test/{nth}")) for nth in range(5)]
        assert [each.status for each in await asyncio.gather(*sent)] == [200] * 5
        await outbound.aclose()
    assert len(proxy.asked) == 5
