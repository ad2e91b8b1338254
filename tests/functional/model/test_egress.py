"""The egress seam over real sockets: what is not allowed is not connected to (SEC-1)."""

import ssl

import httpx2
import pytest

from psych_runtime.egress import Bounds, Endpoint, OneOrigin, make_client
from psych_runtime.errors import EgressDenied, EgressFailed
from tests.servers.openai_server import OpenAIServer, Stop, answer


async def test_sec_1_another_address_is_not_connected_to() -> None:
    """The judgement comes before the connection."""
    async with OpenAIServer(answer(b"ok")) as ours, OpenAIServer(answer(b"ok")) as other:
        client = make_client(OneOrigin(ours.base_url))
        with pytest.raises(EgressDenied) as caught:
            await client.get(other.base_url)
        assert (await client.get(ours.base_url)).text == "ok"
        await client.aclose()
    assert caught.value.host == "127.0.0.1"
    assert (ours.connections, other.connections) == (1, 0)


async def test_sec_1_a_redirect_is_not_followed_by_itself() -> None:
    """It is an answer like another."""
    async with OpenAIServer() as other, OpenAIServer() as ours:
        ours.replies.append(answer(status=302, headers={"Location": other.base_url}))
        async with make_client(OneOrigin(ours.base_url)) as client:
            assert (await client.get(ours.base_url)).status_code == 302
    assert (len(ours.seen), other.connections) == (1, 0)


async def test_sec_1_each_redirect_is_judged_again() -> None:
    """A hop on the same origin is allowed, the next one elsewhere is not."""
    async with OpenAIServer() as other, OpenAIServer() as ours:
        ours.replies += [
            answer(status=307, headers={"Location": "/v2"}),
            answer(status=307, headers={"Location": other.base_url}),
        ]
        async with make_client(OneOrigin(ours.base_url)) as client:
            with pytest.raises(EgressDenied):
                await client.post(ours.base_url, content=b"x", follow_redirects=True)
    assert [seen.path for seen in ours.seen] == ["/v1", "/v2"]
    assert other.connections == 0


async def test_sec_1_proxies_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody who sets a variable can read along."""
    async with OpenAIServer(answer(b"ok")) as ours, OpenAIServer(answer(b"proxied")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        async with make_client(OneOrigin(ours.base_url)) as client:
            assert (await client.get(ours.base_url)).text == "ok"
    assert proxy.connections == 0


async def test_sec_1_the_user_agent_names_the_library() -> None:
    """An operator finds it in the logs of the other side."""
    async with OpenAIServer(answer(b"ok")) as server:
        client = make_client(OneOrigin(server.base_url))
        await client.get(server.base_url)
        await client.aclose()
    assert server.seen[0].headers["user-agent"].startswith("psych-runtime/")


async def test_an_endpoint_sends_json_and_reads_the_body_in_pieces() -> None:
    """Headers and status are there before the body."""
    async with OpenAIServer(answer(b"one", b"two", headers={"X-Id": "7"})) as server:
        endpoint = Endpoint(server.base_url + "/")
        reply = await endpoint.post("a/b", b"{}", accept="text/plain", silence_seconds=5)
        assert (reply.status, reply.headers["x-id"]) == (200, "7")
        assert [piece async for piece in reply.chunks()] == [b"one", b"two"]
        await reply.aclose()
        await endpoint.aclose()
    seen = server.seen[0]
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/a/b", b"{}")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept"] == "text/plain"
    assert seen.headers["accept-encoding"] == "identity"


async def test_an_endpoint_sends_plain_headers_below_secret_ones() -> None:
    """And below those that each request has."""
    plain = {"X-One": "plain", "X-Two": "plain", "accept": "no/such"}
    async with OpenAIServer(answer(b"ok")) as server:
        endpoint = Endpoint(server.base_url, headers={"x-two": "secret"}, plain_headers=plain)
        reply = await endpoint.post("x", b"{}", accept="text/plain", silence_seconds=5)
        assert await reply.read(bound_bytes=10, seconds=5) == b"ok"
        await reply.aclose()
        await endpoint.aclose()
    sent = server.seen[0].headers
    assert (sent["x-one"], sent["x-two"], sent["accept"]) == ("plain", "secret", "text/plain")


async def test_an_endpoint_says_whether_something_was_sent() -> None:
    """Nobody there: nothing was. A connection that breaks: it may have arrived."""
    async with OpenAIServer(answer(Stop.HANG_UP, status=200)) as server:
        url = server.base_url
        endpoint = Endpoint(url)
        reply = await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
        with pytest.raises(EgressFailed) as broken:
            _ = [piece async for piece in reply.chunks()]
        await endpoint.aclose()
    with pytest.raises(EgressFailed) as unreachable:
        await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
    assert broken.value.sent is True
    assert unreachable.value.sent is False
    assert unreachable.value.problem.startswith("no connection")


async def test_an_endpoint_gives_up_on_silence_and_on_a_full_pool() -> None:
    """Both are bounded, and told apart."""
    bounds = Bounds(max_connections=1, pool_seconds=0.05)
    async with OpenAIServer(answer(b"x", Stop.STALL)) as server:
        endpoint = Endpoint(server.base_url, bounds=bounds)
        reply = await endpoint.post("x", b"{}", accept="*/*", silence_seconds=1)
        with pytest.raises(EgressFailed, match="every connection is in use") as full:
            await endpoint.post("x", b"{}", accept="*/*", silence_seconds=1)
        with pytest.raises(EgressFailed, match="silence for longer than allowed"):
            _ = [piece async for piece in reply.chunks()]
        await endpoint.aclose()
    assert full.value.sent is False


async def test_an_error_body_is_read_within_bounds() -> None:
    """In size and in time; what has come is given."""
    async with OpenAIServer(answer(b"x" * 5000), answer(b"part", Stop.STALL)) as server:
        endpoint = Endpoint(server.base_url)
        long = await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
        assert await long.read(bound_bytes=1000, seconds=5) == b"x" * 1000
        slow = await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
        assert await slow.read(bound_bytes=1000, seconds=0.05) == b"part"
        await endpoint.aclose()


async def test_sec_1_an_unknown_certificate_is_no_connection() -> None:
    """https to a server without one fails before anything is sent."""
    async with OpenAIServer(answer(b"ok")) as server:
        endpoint = Endpoint(
            server.base_url.replace("http://", "https://"),
            ssl_context=ssl.create_default_context(),
        )
        with pytest.raises(EgressFailed) as caught:
            await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
        await endpoint.aclose()
    assert caught.value.sent is False
    assert server.seen == []


async def test_a_closed_endpoint_opens_anew() -> None:
    """Closing frees connections; it ends nothing for good."""
    async with OpenAIServer(answer(b"ok")) as server:
        endpoint = Endpoint(server.base_url)
        for _ in range(2):
            reply = await endpoint.post("x", b"{}", accept="*/*", silence_seconds=5)
            assert await reply.read(bound_bytes=10, seconds=5) == b"ok"
            await endpoint.aclose()
    assert server.connections == 2


async def test_sec_1_a_client_is_an_ordinary_one() -> None:
    """What needs an HTTP client gets one; the gate is inside."""
    client = make_client(OneOrigin("http://127.0.0.1:9"))
    assert isinstance(client, httpx2.AsyncClient)
    assert client.trust_env is False
    assert client.follow_redirects is False
    await client.aclose()
