"""A redirect is a request that a server names: judged, bounded, without secrets (SEC-1)."""

import pytest

from psych_runtime.egress import EgressRules, Outbound, OutboundRequest, Permit
from psych_runtime.errors import EgressDenied, EgressFailed
from tests.functional.egress.certificates import Authority
from tests.functional.egress.loopback import ACME, LOOPBACK, Loopback, Names, get, redirect, reply

_SECRETS = {
    "Authorization": "Bearer canary",
    "Cookie": "a=canary",
    "X-Api-Key": "canary",
    "X-Plain": "y",
}


def _request(url: str, *, method: str = "POST", max_redirects: int = 5) -> OutboundRequest:
    return OutboundRequest(
        method=method,
        url=url,
        headers={**_SECRETS, "Content-Type": "text/plain"},
        credentials=["x-api-key"],
        body=b"body",
        max_redirects=max_redirects,
    )


async def test_sec_1_no_other_origin_gets_a_credential() -> None:
    """Nor does the first one, after another has answered in between."""
    async with Loopback() as first, Loopback() as other:
        first.scripts = [redirect("/b", status=307), redirect(other.url("/c"), status=307), reply()]
        other.scripts = [redirect(first.url("/d"), status=307)]
        outbound = Outbound(EgressRules(LOOPBACK))
        answer = await outbound.send(ACME, _request(first.url("/a")))
        await outbound.aclose()
    assert (answer.status, answer.url) == (200, first.url("/d"))
    chain = [first.asked[0], first.asked[1], other.asked[0], first.asked[2]]
    assert [asked.target for asked in chain] == ["/a", "/b", "/c", "/d"]
    assert [asked.body for asked in chain] == [b"body"] * 4
    assert [asked.headers.get("x-plain") for asked in chain] == ["y"] * 4
    for name in ("authorization", "cookie", "x-api-key"):
        assert [name in asked.headers for asked in chain] == [True, True, False, False]
    assert other.asked[0].headers["host"] == f"127.0.0.1:{other.port}"


@pytest.mark.parametrize("name", ["other.test", "a.api.test", "test"])
async def test_sec_1_another_name_of_the_same_server_is_another_origin(name: str) -> None:
    """As is another scheme, or another port."""
    names = Names(api_test=[["127.0.0.1"]], **{name.replace(".", "_"): [["127.0.0.1"]]})
    async with Loopback() as server:
        server.scripts = [redirect(server.url("/b", host=name)), reply()]
        outbound = Outbound(EgressRules(LOOPBACK), resolve=names)
        await outbound.send(ACME, _request(server.url("/a", host="api.test")))
        await outbound.aclose()
    assert [asked.headers.get("authorization") for asked in server.asked] == ["Bearer canary", None]


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ],
)
async def test_sec_1_a_redirect_asks_as_browsers_do(status: int, method: str, then: str) -> None:
    """A body goes along where the method stays."""
    async with Loopback(redirect("/b", status=status), reply(b"")) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        await outbound.send(ACME, _request(server.url("/a"), method=method))
        await outbound.aclose()
    second = server.asked[1]
    assert second.method == then
    assert (second.body, second.headers.get("content-type")) == (
        (b"body", "text/plain") if method == then else (b"", None)
    )


async def test_sec_1_a_redirect_from_https_to_http_is_refused() -> None:
    """And one from http to https is not."""
    authority = Authority("localhost")
    async with Loopback(reply()) as plain, Loopback(tls=authority.server) as safe:
        safe.scripts = [redirect(plain.url("/x", host="localhost")), reply(b"safe")]
        outbound = Outbound(EgressRules(Permit(hosts=["localhost"])), ssl_context=authority.client)
        with pytest.raises(EgressDenied, match="a redirect leads from https to http") as caught:
            await outbound.send(ACME, get(safe.url(host="localhost")))
        plain.scripts = [redirect(safe.url(host="localhost"))]
        assert (await outbound.send(ACME, get(plain.url(host="localhost")))).body == b"safe"
        await outbound.aclose()
    assert caught.value.sent is True
    assert len(plain.asked) == 1


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_sec_1_a_loop_of_redirects_ends(most: int) -> None:
    """With none allowed, the redirect is the answer."""
    async with Loopback(redirect("/again")) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        request = _request(server.url("/again"), max_redirects=most)
        if most:
            with pytest.raises(EgressFailed, match=f"more than {most} redirects") as caught:
                await outbound.send(ACME, request)
            assert caught.value.sent is True
        else:
            answer = await outbound.send(ACME, request)
            assert (answer.status, answer.headers["location"]) == (302, "/again")
        await outbound.aclose()
    assert len(server.asked) == most + 1


@pytest.mark.parametrize("status", [300, 304, 305, 399])
async def test_sec_1_other_answers_with_a_location_are_answers(status: int) -> None:
    """As is a redirect that leads nowhere."""
    async with Loopback(redirect("/b", status=status), reply(status=302)) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        assert (await outbound.send(ACME, get(server.url("/a")))).status == status
        assert (await outbound.send(ACME, get(server.url("/a")))).status == 302
        await outbound.aclose()
    assert [asked.target for asked in server.asked] == ["/a", "/a"]


async def test_sec_1_a_server_cannot_lead_to_what_the_operator_named() -> None:
    """Only what is named itself may; elsewhere such a redirect is judged like any other."""
    async with Loopback(reply(b"inside"), host="127.0.0.2") as named, Loopback() as public:
        public.scripts = [redirect(named.url("/admin"))]
        outbound = Outbound(EgressRules(LOOPBACK), allowed_origins=[named.url("")])
        with pytest.raises(EgressDenied, match="a redirect is refused: it leads to a loopback"):
            await outbound.send(ACME, get(public.url()))
        assert named.connections == 0
        named.scripts = [redirect("/b"), redirect(public.url("/c")), redirect(named.url("/d"))]
        public.scripts = [redirect(named.url("/admin"))]
        with pytest.raises(EgressDenied, match="a redirect is refused: it leads to a loopback"):
            await outbound.send(ACME, get(named.url("/a")))
        await outbound.aclose()
    assert [asked.target for asked in named.asked] == ["/a", "/b"]


@pytest.mark.parametrize(
    "fields",
    [
        ["Location: http://[::1/"],
        ["Location: http://a b/"],
        ["Location: http://\xff\xfe/"],
        ["Location: http://x.test/", "Location: http://y.test/"],
    ],
)
async def test_sec_1_a_redirect_that_cannot_be_read_is_refused(fields: list[str]) -> None:
    """Nobody guesses where it leads."""
    async with Loopback(reply(b"", *fields, status=302)) as server:
        outbound = Outbound(EgressRules(LOOPBACK))
        with pytest.raises(EgressDenied, match="a redirect") as caught:
            await outbound.send(ACME, get(server.url("/a")))
        await outbound.aclose()
    assert (caught.value.sent, caught.value.host) == (True, "127.0.0.1")
    assert caught.value.__context__ is None


async def test_sec_2_where_a_redirect_failed_is_not_told() -> None:
    """A server may put what it was sent into the name that it leads to."""
    authority = Authority("localhost")
    names = Names(canary_test=[["127.0.0.1"]])
    async with Loopback() as plain, Loopback(reply(), tls=authority.server) as safe:
        plain.scripts = [redirect(safe.url(host="canary.test"))]
        outbound = Outbound(EgressRules(LOOPBACK), resolve=names, ssl_context=authority.client)
        with pytest.raises(EgressFailed, match="after a redirect: no connection") as caught:
            await outbound.send(ACME, get(plain.url()))
        await outbound.aclose()
    assert "canary" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.sent is True
