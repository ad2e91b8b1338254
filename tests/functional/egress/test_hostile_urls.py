"""URLs that a model, a tenant or a server may come up with: none reaches what is inside (SEC-1)."""

import pytest

from psych_runtime.egress import Outbound, OutboundRequest
from psych_runtime.errors import EgressDenied
from tests.functional.egress.loopback import ACME, Loopback, Names, get, redirect, reply

_ADDRESSES = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "198.18.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a00:1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[100::1]",
]

_FORMS = [
    "http://{host}:{port}/",
    "HTTP://{host}:{port}/",
    "http://{host}:{port}?q=http://public.test/",
    "http://{host}:{port}#@public.test/",
    "http://public.test@{host}:{port}/",
    "http://public.test:80@{host}:{port}/",
    "http://public.test%2f@{host}:{port}/",
    "http://public.test\\@{host}:{port}/",
    "http://@{host}:{port}/",
]

_ODD = [
    # no host
    "",
    "http:",
    "http:///",
    "http://:{port}/",
    "http://?x",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}/",
    "/latest/meta-data",
    # other schemes
    "file:///etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_x",
    "ws://127.0.0.1:{port}/",
    "wss://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "http+unix://127.0.0.1:{port}/",
    "dict://127.0.0.1:{port}/",
    "data:text/plain,x",
    "javascript:alert(1)",
    # other ways to write 127.0.0.1
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://017700000001:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.0.0.01:{port}/",
    "http://127.0.0.256:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    "http://127\u30020\u30020\u30021:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/",
    "http://\u2460\u2461\u2466.0.0.1:{port}/",
    "http://127.0.0.1%00.public.test:{port}/",
    "http://127.0.0.1\x00.public.test:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\r\nHost: x:{port}/",
    "http://127.0.0.1 :{port}/",
    # IPv6
    "http://[::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://[fe80::1%251]:{port}/",
    "http://[::1:{port}/",
    "http://::1:{port}/",
    "http://[::1].public.test:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[v1.127.0.0.1]:{port}/",
    "http://[]:{port}/",
    # names
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://loc%61lhost:{port}/",
    "http://inside.test:{port}/",
    "http://inside..test:{port}/",
    "http://.inside.test:{port}/",
    "http://-inside.test:{port}/",
    "http://ins\\ide.test:{port}/",
    "http://inside.test\u3002:{port}/",
    "http://" + "a" * 64 + ".test:{port}/",
    "http://" + "a." * 130 + "test:{port}/",
    "http://mixed.test:{port}/",
    # ports
    "http://127.0.0.1:0/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1:99999999999999999999/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:{port}x/",
    "http://127.0.0.1:x/",
    "http://public.test:22/",
    "http://public.test:25/",
    "http://public.test/\ud800",
    "http://public.test/" + "a" * 70_000,
]


def _names() -> Names:
    """Return a resolver for which every private name leads inside."""
    return Names(
        localhost=[["127.0.0.1"]],
        inside_test=[["127.0.0.1"]],
        mixed_test=[["93.184.215.14", "127.0.0.1"]],
        public_test=[["93.184.215.14"]],
    )


@pytest.mark.parametrize(
    "url",
    [form.replace("{host}", host) for host in _ADDRESSES for form in _FORMS[:1]]
    + [form.replace("{host}", "127.0.0.1") for form in _FORMS[1:]]
    + _ODD,
    ids=lambda url: ascii(url)[1:40],
)
async def test_sec_1_a_hostile_url_reaches_nothing(url: str) -> None:
    """Not by itself, and not when a server that may be reached leads there."""
    async with Loopback(reply(b"inside")) as inside:
        url = url.replace("{port}", str(inside.port))
        outbound = Outbound(resolve=_names())
        with pytest.raises(EgressDenied) as caught:
            await outbound.send(ACME, get(url))
        await outbound.aclose()
    assert caught.value.sent is False
    assert inside.connections == 0


def _is_redirect(url: str) -> bool:
    """Tell whether a header can lead there, and not to what is reached for good reason."""
    leads = url.isascii() and url.isprintable() and "://" in url and "public" not in url
    return leads and url not in _SAME_SERVER


_SAME_SERVER = [
    "",
    "http:///",
    "http://?x",
    "/",
    "?x",
    "\\\\127.0.0.1:{port}/\\",
    "/\\127.0.0.1:{port}/",
]


@pytest.mark.parametrize(
    "location",
    [f"http://{host}:{{port}}/" for host in _ADDRESSES]
    + [form.replace("{host}", "127.0.0.1") for form in _FORMS[1:]]
    + [url for url in _ODD if _is_redirect(url)]
    + ["//127.0.0.1:{port}/"],
    ids=lambda url: ascii(url)[1:40],
)
async def test_sec_1_a_redirect_to_a_hostile_url_reaches_nothing(location: str) -> None:
    """The hop is judged as the request was; where it led is not told."""
    async with Loopback(reply(b"inside")) as inside:
        location = location.replace("{port}", str(inside.port))
        async with Loopback(redirect(location), reply(b"still here")) as named:
            outbound = Outbound(allowed_origins=[named.url("")], resolve=_names())
            request = OutboundRequest(method="POST", url=named.url("/a"), body=b"x")
            with pytest.raises(EgressDenied) as caught:
                await outbound.send(ACME, request)
            await outbound.aclose()
    assert inside.connections == 0
    assert (caught.value.sent, caught.value.host) == (True, "127.0.0.1")
    assert caught.value.reason.startswith("a redirect is refused: ")


@pytest.mark.parametrize("location", _SAME_SERVER, ids=ascii)
async def test_sec_1_a_redirect_without_a_host_stays_where_it_was(location: str) -> None:
    """What another reader takes for a host is a path here, for the judge and for the connection."""
    async with Loopback(reply(b"inside"), host="127.0.0.2") as inside:
        location = location.replace("{port}", str(inside.port))
        async with Loopback(redirect(location), reply(b"still here")) as named:
            outbound = Outbound(allowed_origins=[named.url("")])
            answer = await outbound.send(ACME, get(named.url("/a")))
            await outbound.aclose()
    assert answer.body == b"still here"
    assert answer.url.startswith(named.url("/"))
    assert inside.connections == 0
