"""What an operator may write for a proxy, and that nothing shows its password (SEC-1, SEC-2)."""

import copy
import pickle
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from psych_runtime.egress import Origin, Proxy
from psych_runtime.egress._addresses import read_address
from psych_runtime.errors import InvalidArgument, SecretUnusable
from tests.canary import CANARY, in_texts


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://proxy.test:3128", Origin("http", "proxy.test", 3128)),
        ("http://proxy.test:3128/", Origin("http", "proxy.test", 3128)),
        ("HTTP://Proxy.Test", Origin("http", "proxy.test", 80)),
        ("https://proxy.test", Origin("https", "proxy.test", 443)),
        ("http://10.0.0.1:8080", Origin("http", "10.0.0.1", 8080)),
        ("http://[fd00::1]:8080", Origin("http", "fd00::1", 8080)),
    ],
)
def test_sec_1_a_proxy_is_scheme_host_and_port(url: str, origin: Origin) -> None:
    """And says no more of itself."""
    proxy = Proxy(url)
    assert proxy.origin == origin
    assert repr(proxy) == f"Proxy({str(origin)!r})"
    assert proxy.headers() == {}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://ann:canary@proxy.test:3128", "credentials do not belong in a URL: write http"),
        ("http://canary@proxy.test:3128", "credentials do not belong in a URL: write http"),
        ("socks5://canary.test:1080", "only http and https"),
        ("canary.test:3128", "write http"),
        ("//canary.test:3128", "write http"),
        ("http://proxy.test/canary", "write http"),
        ("http://proxy.test?canary", "write http"),
        ("http://proxy.test#canary", "write http"),
        ("http://proxy.test:0", "port 0 is none"),
        ("http://proxy.test:canary", "write http"),
        ("http://127.1:3128", "four decimal numbers"),
        ("http://:3128", "names its host"),
        ("", "write http"),
        (None, "write http"),
        (3128, "write http"),
    ],
)
def test_sec_2_a_url_that_is_none_is_refused_and_not_repeated(url: Any, problem: str) -> None:
    """It may hold a password."""
    with pytest.raises(InvalidArgument, match=problem) as caught:
        Proxy(url)
    assert caught.value.what == "Proxy(url=...)"
    assert "canary" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("username", "password"),
    [("ann", "s:e c/r é\U0001f600t"), ("ann", ""), ("é", "x"), ("", "x")],
)
def test_sec_2_credentials_are_sent_as_basic(username: str, password: str) -> None:
    """In UTF-8; the first colon is the one between them."""
    proxy = Proxy("http://proxy.test", username=username, password=password)
    (value,) = proxy.headers().values()
    assert b64decode(value.removeprefix("Basic ")).decode() == f"{username}:{password}"


@pytest.mark.parametrize(
    ("username", "password", "problem"),
    [
        ("canary", None, "pass both"),
        (None, "canary", "pass both"),
        ("canary", b"canary", "pass both"),
        (7, "canary", "pass both"),
        ("can:ary", "canary", "a colon ends the name"),
        ("ann", "canary\r\nX: y", "leave out control characters"),
        ("canary\0", "x", "leave out control characters"),
        ("ann", "canary\x85", "leave out control characters"),
        ("ann", "canary\ud800", "leave out control characters"),
    ],
)
def test_sec_2_credentials_that_are_none_are_refused(
    username: Any, password: Any, problem: str
) -> None:
    """Without a word of them."""
    with pytest.raises(InvalidArgument, match=problem) as caught:
        Proxy("http://proxy.test", username=username, password=password)
    assert "canary" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__context__ is None


def test_sec_2_credentials_have_a_bound() -> None:
    """That of every secret."""
    with pytest.raises(SecretUnusable, match="at most 16384"):
        Proxy("http://proxy.test", username="ann", password="x" * 20_000)


@pytest.mark.parametrize("leave", [pickle.dumps, copy.deepcopy, copy.copy, repr, str, vars])
def test_sec_2_a_password_does_not_leave(leave: Callable[[object], object]) -> None:
    """Neither in a text nor in a copy that somebody could send away."""
    proxy = Proxy("http://proxy.test", username="ann", password=CANARY)
    try:
        left = leave(proxy)
    except TypeError as error:
        left = error
    assert in_texts({"left": left}, CANARY) == []


_NO_PROXY = [
    "Direct.test",
    "*.inside.test",
    "10.1.0.0/16",
    "10.9.9.9",
    "::ffff:10.8.8.8",
    "fd00::7",
]


@pytest.mark.parametrize(
    ("host", "address", "bypasses"),
    [
        ("direct.test", "8.8.8.8", True),
        ("a.direct.test", "8.8.8.8", False),
        ("a.inside.test", "8.8.8.8", True),
        ("inside.test", "8.8.8.8", False),
        ("api.test", "10.1.2.3", True),
        ("api.test", "10.2.2.3", False),
        ("10.9.9.9", "10.9.9.9", True),
        ("api.test", "10.9.9.9", True),
        ("api.test", "10.8.8.8", True),
        ("api.test", "fd00::7", True),
        ("api.test", "fd00::8", False),
        ("api.test", "8.8.8.8", False),
    ],
)
def test_sec_1_no_proxy_has_names_addresses_and_networks(
    host: str, address: str, bypasses: bool
) -> None:
    """Names as they stand in a URL, addresses as what a name leads to."""
    read = read_address(address)
    assert read is not None
    assert Proxy("http://proxy.test", no_proxy=_NO_PROXY).bypasses(host, read) is bypasses
    assert Proxy("http://proxy.test").bypasses(host, read) is False


@pytest.mark.parametrize(
    ("no_proxy", "problem"),
    [
        ("localhost,10.0.0.0/8", "pass a list"),
        (None, "pass a list"),
        (7, "pass a list"),
        ([7], "is no text"),
        (["*"], "is no host"),
        ([""], "is no host"),
        (["http://api.test"], "is no network"),
        (["api.test:443"], "is no host"),
        ([".api.test"], "is no host"),
        (["10.1.2.3/16"], "without host bits"),
        (["fine.test", "10.0.0.0/33"], "is no network"),
    ],
)
def test_sec_1_no_proxy_that_is_none_is_refused(no_proxy: Any, problem: str) -> None:
    """A list in the language of environment variables would not say what it seems to say."""
    with pytest.raises(InvalidArgument, match=problem) as caught:
        Proxy("http://proxy.test", no_proxy=no_proxy)
    assert caught.value.what == "Proxy(no_proxy=...)"
