"""A URL has one reading, for the judge and for the connection (SEC-1)."""

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.egress import Origin
from psych_runtime.egress._reading import read_host, read_url
from psych_runtime.errors import EgressDenied


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://api.test", ("https", "api.test", 443), b"/"),
        ("HTTPS://API.Test:443/A?b=c#d", ("https", "api.test", 443), b"/A?b=c"),
        ("http://api.test:8080/../a", ("http", "api.test", 8080), b"/a"),
        ("http://bücher.test/", ("http", "xn--bcher-kva.test", 80), b"/"),
        ("http://a_b.test/ x", ("http", "a_b.test", 80), b"/%20x"),
        ("http://8.8.8.8/", ("http", "8.8.8.8", 80), b"/"),
        ("http://8\u30028\u30028\u30028/", ("http", "8.8.8.8", 80), b"/"),
        ("http://[2A00:0:0::1]:81/", ("http", "2a00::1", 81), b"/"),
        ("http://1password.test/", ("http", "1password.test", 80), b"/"),
        ("http://0x.test/", ("http", "0x.test", 80), b"/"),
    ],
)
def test_sec_1_a_url_is_read_as_it_is_asked(
    url: str, origin: tuple[str, str, int], path: bytes
) -> None:
    """Names in lower case and IDNA, addresses in their shortest form."""
    target = read_url(url)
    assert (target.origin, target.path) == (Origin(*origin), path)
    assert "#" not in target.text


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://u:s3cret@api.test/", "credentials do not belong in a URL"),
        ("https://s3cret@api.test/", "credentials do not belong in a URL"),
        ("https://u:s3cret", "no URL that can be read"),
        ("https://api.test:s3cret/", "no URL that can be read"),
        ("file:///s3cret", "only http and https"),
        ("/s3cret", "only http and https"),
        ("https:///s3cret", "a URL names its host"),
        ("https://api.test:0/s3cret", "port 0 is none"),
        ("https://api.test:70000/?s3cret", "port 70000 is none"),
        ("https://api.test./?s3cret", "none at its end"),
        ("https://a..test/?s3cret", "single dots"),
        ("https://-a.test/?s3cret", "letters, digits, hyphens"),
        ("https://a%41.test/?s3cret", "letters, digits, hyphens"),
        ("https://127.1/?s3cret", "four decimal numbers"),
        ("https://0x7f000001/?s3cret", "four decimal numbers"),
        ("https://2130706433/?s3cret", "four decimal numbers"),
        ("https://[fe80::1%25eth0]/?s3cret", "an address with a zone"),
    ],
)
def test_sec_1_an_odd_url_is_refused_and_not_repeated(url: str, problem: str) -> None:
    """It may have a secret in it."""
    with pytest.raises(EgressDenied, match=problem) as caught:
        read_url(url)
    assert "s3cret" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("url", [None, 7, b"http://api.test/"])
def test_sec_1_what_is_no_text_is_no_url(url: object) -> None:
    """As a caller without types passes it."""
    with pytest.raises(EgressDenied, match="no URL that can be read"):
        read_url(url)  # type: ignore[arg-type]  # on purpose


_PARTS = st.sampled_from(
    [
        *("http", "https", "://", ":", "/", "//", "@", "?", "#", "\\", "%", "%2e", "%00", "[", "]"),
        *(".", "127.0.0.1", "::1", "localhost", "api.test", "0x7f", "80", "\u3002", "\u2460", "é"),
        *(" ", "\t", "\r\n", "\ud800", "xn--", "a" * 64, "-", "_", "*", "::ffff:", "fe80::1"),
    ]
)


@given(st.lists(_PARTS, max_size=10).map("".join) | st.text(max_size=40))
def test_sec_1_every_text_is_read_or_refused(text: str) -> None:
    """What is read is read the same way again, and as the HTTP client does."""
    try:
        target = read_url(text)
    except EgressDenied:
        return
    assert read_url(target.text)[:2] == target[:2]
    client = httpx2.URL(text)
    assert (client.scheme, client.raw_path) == (target.origin.scheme, target.path)
    assert read_host(target.origin.host) == target.origin.host
    assert Origin.of(httpx2.URL(str(target.origin))) == target.origin


@given(st.text(max_size=20) | st.lists(_PARTS, max_size=6).map("".join))
def test_sec_1_a_host_is_a_host_alone(text: str) -> None:
    """Nothing beside it gets in."""
    try:
        host = read_host(text)
    except EgressDenied:
        return
    assert not set(host) & set("/?#@[]%\\ ")
    bracketed = f"[{host}]" if ":" in host else host
    assert read_url(f"https://{bracketed}:8443/x").origin == Origin("https", host, 8443)
