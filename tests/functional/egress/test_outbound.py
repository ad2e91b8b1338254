"""Requests of tools over real sockets: judged where they are connected to (SEC-1)."""

import asyncio

import pytest

from psych_runtime.egress import Bounds, EgressRules, Outbound, OutboundRequest, Permit
from psych_runtime.errors import EgressDenied, EgressFailed, InvalidArgument
from psych_runtime.ports.egress import Destination, EgressPolicy
from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope
from tests.functional.egress.loopback import (
    ACME,
    GLOBEX,
    LOOPBACK,
    Asked,
    Loopback,
    Names,
    get,
    reply,
    stall,
)


async def test_sec_1_an_allowed_request_is_sent_and_its_answer_is_whole() -> None:
    """Under the name that was asked for."""
    names = Names(api_test=[["127.0.0.1"]])
    async with Loopback(reply(b'{"a": 1}', "X-Id: 7", "X-Id: 8", status=201)) as server:
        outbound = Outbound(EgressRules(LOOPBACK), resolve=names)
        answer = await outbound.send(
            ACME,
            OutboundRequest(
                method="POST",
                url=server.url("/things?q=a%20b#part", host="api.test"),
                headers={"Authorization": "Bearer t", "Content-Type": "application/json"},
                body=b"{}",
            ),
        )
        await outbound.aclose()
    asked = server.asked[0]
    assert (answer.status, answer.body, answer.headers["x-id"]) == (201, b'{"a": 1}', "7, 8")
    assert answer.url == server.url("/things?q=a%20b", host="api.test")
    assert (asked.method, asked.target, asked.body) == ("POST", "/things?q=a%20b", b"{}")
    assert asked.headers["host"] == f"api.test:{server.port}"
    assert asked.headers["authorization"] == "Bearer t"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"].startswith("psych-runtime/")


async def test_sec_1_a_rule_for_one_scope_does_nothing_for_another() -> None:
    """Neither before nor after the first has a connection that is open."""
    rules = EgressRules(Permit(tenant="acme", networks=["127.0.0.0/8"]))
    async with Loopback(reply()) as server:
        outbound = Outbound(rules)
        for _ in range(2):
            assert (await outbound.send(ACME, get(server.url()))).status == 200
            with pytest.raises(EgressDenied, match="loopback address"):
                await outbound.send(GLOBEX, get(server.url()))
        await outbound.aclose()
    assert (len(server.asked), server.connections) == (2, 1)


async def test_sec_1_scopes_share_no_connection() -> None:
    """One scope uses its own again, another opens one."""
    scopes = [ACME, GLOBEX, Scope(tenant="acme", principal="ann"), ACME, GLOBEX]
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        for scope in scopes:
            await outbound.send(scope, get(server.url()))
        await outbound.aclose()
    assert (len(server.asked), server.connections) == (5, 3)


async def test_sec_1_a_name_is_looked_up_once_for_a_connection() -> None:
    """A second answer, to a second question, is never asked for."""
    names = Names(api_test=[["127.0.0.1"], ["127.0.0.2"]])
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), resolve=names)
        for _ in range(3):
            assert (await outbound.send(ACME, get(server.url(host="api.test")))).body == b"ok"
        await outbound.aclose()
    assert (names.looked_up, server.connections) == (["api.test"], 1)


async def test_sec_1_a_name_that_changes_is_judged_anew() -> None:
    """The next connection leads where the name leads then: that is refused, not connected to."""
    names = Names(api_test=[["127.0.0.1"], ["127.0.0.2"]])
    async with (
        Loopback(reply(b"ok", "Connection: close")) as server,
        Loopback(reply(b"secret"), host="127.0.0.2") as inside,
    ):
        outbound = Outbound(EgressRules(LOOPBACK), resolve=names)
        await outbound.send(ACME, get(server.url(host="api.test")))
        with pytest.raises(EgressDenied, match="loopback address"):
            await outbound.send(ACME, get(inside.url(host="api.test")))
        with pytest.raises(EgressDenied, match="loopback address"):
            await outbound.send(ACME, get(server.url(host="api.test")))
        await outbound.aclose()
    assert (server.connections, inside.connections) == (1, 0)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1", "127.0.0.2"],
        ["127.0.0.2", "127.0.0.1"],
        ["127.0.0.1", "10.0.0.1"],
        ["127.0.0.1", "::1"],
        ["127.0.0.1", "fe80::1%lo"],
        ["127.0.0.1", "64:ff9b::a9fe:a9fe"],
        ["127.0.0.1", "no address"],
        ["127.0.0.1"] * 65,
        [],
    ],
)
async def test_sec_1_one_wrong_address_of_a_name_is_enough(addresses: list[str]) -> None:
    """Whichever would be tried first."""
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), resolve=Names(api_test=[addresses]))
        with pytest.raises((EgressDenied, EgressFailed)) as caught:
            await outbound.send(ACME, get(server.url(host="api.test")))
        await outbound.aclose()
    assert server.connections == 0
    assert str(caught.value).count("'api.test': ") == 1
    assert "127.0.0" not in str(caught.value)


async def test_sec_1_the_first_address_that_answers_is_used() -> None:
    """Where several are allowed."""
    rules = EgressRules(Permit(networks=["127.0.0.0/8"]))
    names = Names(api_test=[["127.0.0.9", "127.0.0.2"]])
    async with Loopback(reply(), host="127.0.0.2") as server:
        outbound = Outbound(rules, resolve=names)
        assert (await outbound.send(ACME, get(server.url(host="api.test")))).body == b"ok"
        await outbound.aclose()


class _Switch(EgressPolicy):
    """Allows all, until it does not."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Destination]] = []
        self.answer: Allow | Deny = Allow()

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        self.asked.append((scope.tenant, destination))
        return self.answer if destination.address else Allow()


async def test_sec_1_a_policy_is_asked_before_the_look_up_and_for_each_address() -> None:
    """With scheme, host and port as they are connected to."""
    policy = _Switch()
    names = Names(api_test=[["::ffff:127.0.0.1"]])
    async with Loopback(reply()) as server:
        outbound = Outbound(policy, resolve=names)
        await outbound.send(ACME, get(server.url(host="API.test")))
        await outbound.aclose()
    assert [
        (tenant, scheme, host, port == server.port, str(address))
        for tenant, (scheme, host, port, address) in policy.asked
    ] == [
        ("acme", "http", "api.test", True, "None"),
        ("acme", "http", "api.test", True, "127.0.0.1"),
    ]


async def test_sec_1_a_rule_that_is_gone_closes_what_is_open() -> None:
    """An open connection is judged before it is used again."""
    policy = _Switch()
    async with Loopback(reply()) as server:
        outbound = Outbound(policy)
        await outbound.send(ACME, get(server.url()))
        policy.answer = Deny("not any more")
        with pytest.raises(EgressDenied, match="not any more"):
            await outbound.send(ACME, get(server.url()))
        await server.until_closed()
        await outbound.aclose()
    assert len(server.asked) == 1


class _Broken(EgressPolicy):
    def __init__(self, answer: Exception | object, *, early: bool) -> None:
        self._answer = answer
        self._early = early

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        if self._early or destination.address:
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer  # type: ignore[return-value]  # what a broken policy does
        return Allow()


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("error", [OSError("db"), TimeoutError(), ValueError("x"), KeyError(1)])
async def test_sec_1_what_a_policy_raises_is_its_callers(error: Exception, early: bool) -> None:
    """And nothing is connected to."""
    async with Loopback(reply()) as server:
        outbound = Outbound(_Broken(error, early=early))
        with pytest.raises(type(error)) as caught:
            await outbound.send(ACME, get(server.url()))
        await outbound.aclose()
    assert caught.value is error
    assert server.connections == 0


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("answer", [None, True, "allow"])
async def test_sec_1_only_an_allow_allows(answer: object, early: bool) -> None:
    """What a policy without types returns is no permission."""
    async with Loopback(reply()) as server:
        outbound = Outbound(_Broken(answer, early=early))
        with pytest.raises(EgressDenied, match="the policy does not allow it"):
            await outbound.send(ACME, get(server.url()))
        await outbound.aclose()
    assert server.connections == 0


async def test_sec_1_an_origin_in_code_is_allowed_for_scheme_host_and_port_only() -> None:
    """Every scope reaches it, and nothing beside it."""
    async with Loopback(reply()) as named, Loopback(reply()) as other:
        outbound = Outbound(allowed_origins=[named.url("")])
        assert (await outbound.send(ACME, get(named.url("/a?b")))).status == 200
        assert (await outbound.send(GLOBEX, get(named.url()))).status == 200
        for url in (
            other.url(),
            named.url().replace("http://", "https://"),
            named.url(host="localhost"),
            named.url(host="127.0.0.2"),
        ):
            with pytest.raises(EgressDenied, match="loopback address"):
                await outbound.send(ACME, get(url))
        await outbound.aclose()
    assert (named.connections, other.connections) == (2, 0)


@pytest.mark.parametrize(
    "origin",
    [
        "https://api.test/v1",
        "https://user:s3cret@api.test",
        "https://api.test?key=s3cret",
        "https://api.test#s3cret",
        "ftp://api.test",
        "api.test:443",
        "https://*.api.test",
        "https://api.test:0",
        "https://api.test:99999",
        "",
    ],
)
def test_sec_1_an_origin_that_is_none_is_refused(origin: str) -> None:
    """Without a word of what may be secret in it."""
    with pytest.raises(InvalidArgument, match=r"allowed_origins\[1\]: ") as caught:
        Outbound(allowed_origins=["https://fine.test:8443", origin])
    assert "s3cret" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="pass a list"):
        Outbound(allowed_origins=origin)


async def test_sec_1_proxies_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody who sets a variable can read along."""
    async with Loopback(reply()) as server, Loopback(reply(b"proxied")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        monkeypatch.setenv("no_proxy", "")
        outbound = Outbound(EgressRules(LOOPBACK))
        assert (await outbound.send(ACME, get(server.url()))).body == b"ok"
        await outbound.aclose()
    assert proxy.connections == 0


async def test_sec_1_a_cookie_of_an_answer_is_not_kept() -> None:
    """One answer says nothing to the next request."""
    async with Loopback(reply(b"", "Set-Cookie: a=b; Path=/")) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        for _ in range(2):
            await outbound.send(ACME, get(server.url()))
        await outbound.aclose()
    assert [asked.headers.get("cookie") for asked in server.asked] == [None, None]


async def test_sec_1_idle_connections_are_closed_without_another_request() -> None:
    """A tenant that is gone keeps none."""
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), bounds=Bounds(idle_seconds=0.01))
        await outbound.send(ACME, get(server.url()))
        await server.until_closed()
        await outbound.send(ACME, get(server.url()))
        await outbound.aclose()
    assert server.connections == 2


async def test_sec_1_only_so_many_scopes_keep_connections() -> None:
    """The one that was used longest ago goes first."""
    bounds = Bounds(max_idle_connections=2)
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), bounds=bounds)
        for name in ("a", "b", "a", "c", "a", "b"):
            await outbound.send(Scope(tenant=name), get(server.url()))
        await outbound.aclose()
        await server.until_closed()
    assert server.connections == 4


async def test_sec_1_only_so_many_requests_are_under_way() -> None:
    """The next one is told so, and that nothing was sent."""
    bounds = Bounds(max_connections=1, pool_seconds=0.01)
    async with Loopback(stall()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), bounds=bounds)
        first = asyncio.create_task(outbound.send(ACME, get(server.url())))
        await server.until_asked(1)
        with pytest.raises(EgressFailed, match="every connection is in use") as caught:
            await outbound.send(GLOBEX, get(server.url()))
        first.cancel()
        await asyncio.wait([first])
        request = OutboundRequest(method="GET", url=server.url(), total_seconds=1)
        with pytest.raises(EgressFailed, match="no whole answer within 1 s") as late:
            await outbound.send(GLOBEX, request)
        await outbound.aclose()
    assert (caught.value.sent, late.value.sent) == (False, True)


async def test_sec_1_requests_of_one_scope_are_under_way_together() -> None:
    """None waits for another's answer: here each answer waits for all requests."""
    together = asyncio.Barrier(5)

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        await reply(asked.target.encode())(asked, writer)

    async with Loopback(answer) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        sent = [outbound.send(ACME, get(server.url(f"/{nth}"))) for nth in range(5)]
        answers = await asyncio.gather(*sent)
        await outbound.aclose()
    assert [each.body for each in answers] == [b"/0", b"/1", b"/2", b"/3", b"/4"]
    assert server.connections == 5


async def test_sec_1_who_stops_waiting_leaves_nothing_behind() -> None:
    """The connection is closed, and the next request has its own."""
    async with Loopback(stall(), reply()) as server:
        outbound = Outbound(EgressRules(LOOPBACK), bounds=Bounds(max_connections=1))
        first = asyncio.create_task(outbound.send(ACME, get(server.url())))
        await server.until_asked(1)
        first.cancel()
        await asyncio.wait([first])
        await server.until_closed()
        assert (await outbound.send(ACME, get(server.url()))).body == b"ok"
        await outbound.aclose()
    assert first.cancelled()
    assert server.connections == 2


async def test_sec_1_closing_ends_what_is_under_way() -> None:
    """As an answer that broke off."""
    async with Loopback(stall()) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        first = asyncio.create_task(outbound.send(ACME, get(server.url())))
        await server.until_asked(1)
        await outbound.aclose()
        with pytest.raises(EgressFailed) as caught:
            await first
    assert caught.value.sent is True


def test_sec_1_each_event_loop_has_its_own_connections() -> None:
    """One that works on another loop than it was opened on would hang."""
    outbound = Outbound(EgressRules(LOOPBACK))

    async def one() -> int:
        async with Loopback(reply()) as server:
            for _ in range(2):
                await outbound.send(ACME, get(server.url()))
            await outbound.aclose()
        return server.connections

    assert [asyncio.run(one()) for _ in range(2)] == [1, 1]


async def test_sec_1_a_closed_one_opens_anew() -> None:
    """Closing frees connections; it ends nothing for good."""
    async with Loopback(reply()) as server:
        outbound = Outbound(EgressRules(Permit(hosts=["localhost"])))
        for _ in range(2):
            answer = await outbound.send(ACME, get(server.url(host="localhost")))
            assert answer.body == b"ok"
            await outbound.aclose()
            await server.until_closed()
    assert server.connections == 2
