"""What the operator wrote is allowed for exactly that scheme, host and port (SEC-1)."""

import httpx2
import pytest

from psych_runtime.egress import Endpoint, OneOrigin, Origin
from psych_runtime.errors import EgressDenied


@pytest.mark.parametrize(
    ("base_url", "origin", "url"),
    [
        ("https://api.test/v1", Origin("https", "api.test", 443), "https://api.test/v1"),
        ("https://API.Test:443/v1/", Origin("https", "api.test", 443), "https://api.test/v1"),
        ("http://127.0.0.1:8080", Origin("http", "127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("http://[::1]:8080/v1", Origin("http", "::1", 8080), "http://[::1]:8080/v1"),
        ("https://bücher.test/", Origin("https", "xn--bcher-kva.test", 443), None),
        (
            "https://api.test/a%20b/v1",
            Origin("https", "api.test", 443),
            "https://api.test/a%20b/v1",
        ),
    ],
)
def test_sec_1_a_base_url_is_read_as_the_client_reads_it(
    base_url: str, origin: Origin, url: str | None
) -> None:
    """One reader of URLs, so that judge and connection never differ."""
    gate = OneOrigin(base_url)
    assert gate.origin == origin
    assert gate.url == url or url is None
    assert Origin.of(httpx2.URL(gate.url)) == origin


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("ftp://api.test/", "http://host/path"),
        ("file:///etc/passwd", "http://host/path"),
        ("api.test/v1", "http://host/path"),
        ("https://", "http://host/path"),
        ("", "http://host/path"),
        ("https://api.test:99999/", "http://host/path"),
        ("https://api.test:0/", "http://host/path"),
        ("https://api.test/v1\n", "http://host/path"),
        ("https://user:s3cret@api.test/", "credentials do not belong"),
        ("https://s3cret@api.test/", "credentials do not belong"),
        ("https://s3cret:x@api.test:nan/", "http://host/path"),
        ("https://api.test/v1?key=s3cret", "without [?] and #"),
        ("https://api.test/v1#s3cret", "without [?] and #"),
    ],
)
def test_sec_1_another_url_is_refused_and_not_repeated(base_url: str, reason: str) -> None:
    """What is wrong with it may be a secret."""
    with pytest.raises(EgressDenied, match=reason) as caught:
        OneOrigin(base_url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "https://api.test:8443/v1",
        "http://api.test/v1",
        "http://api.test:443/v1",
        "https://api.test:0/v1",
        "https://api.test.evil/v1",
        "https://evil/api.test",
        "https://api.test@evil/v1",
        "https://169.254.169.254/latest",
        "https://localhost/v1",
    ],
)
async def test_sec_1_any_other_origin_is_denied(url: str) -> None:
    """Port, scheme and host all count."""
    with pytest.raises(EgressDenied, match=r"is not https://api\.test, the only address"):
        await OneOrigin("https://api.test/v1").admit(Origin.of(httpx2.URL(url)))


async def test_sec_1_the_origin_itself_is_allowed() -> None:
    """Whatever the path, and with the port written out."""
    gate = OneOrigin("https://api.test/v1")
    await gate.admit(Origin.of(httpx2.URL("https://api.test:443/other?x=1")))


def test_sec_1_an_endpoint_is_named_by_its_address() -> None:
    """And by nothing else."""
    endpoint = Endpoint("https://api.test/v1", api_key="sk-canary-1234", headers={"X": "y"})
    assert repr(endpoint) == "Endpoint('https://api.test/v1')"
    assert (endpoint.host, endpoint.url) == ("api.test", "https://api.test/v1")
