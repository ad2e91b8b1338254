"""A request says what it may, and shows nothing that is secret (SEC-1, SEC-2)."""

import math
from collections.abc import Mapping

import pytest

from psych_runtime.egress import OutboundAnswer, OutboundRequest
from psych_runtime.errors import InvalidArgument

_URL = "https://api.test/a?key=canary"


def test_sec_2_a_request_shows_no_secret() -> None:
    """Nor does an answer; a URL that cannot be read is not shown at all."""
    headers = {"Authorization": "Bearer canary", "X-Key": "canary"}
    request = OutboundRequest(
        method="POST", url=_URL, headers=headers, credentials=["X-KEY"], body=b"canary"
    )
    assert repr(request) == "OutboundRequest(POST https://api.test/a)"
    odd = OutboundRequest(method="GET", url="https://u:canary@api.test/")
    assert repr(odd) == "OutboundRequest(GET a URL that is refused)"
    answer = OutboundAnswer(status=200, headers={"set-cookie": "canary"}, body=b"canary", url=_URL)
    assert repr(answer) == "OutboundAnswer(200, 6 bytes)"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("authorization", True),
        ("COOKIE", True),
        ("x-key", True),
        ("X-KEY", True),
        ("X-Keys", False),
        ("Accept", False),
    ],
)
def test_sec_1_what_is_a_credential_is_told_by_its_name(name: str, secret: bool) -> None:
    """In any letters."""
    request = OutboundRequest(method="GET", url=_URL, credentials=["X-Key"])
    assert request.is_credential(name) is secret


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "canary"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Proxy-Authorization": "canary"},
        {"Upgrade": "h2c"},
        {"Accept-Encoding": "gzip"},
        {"X Y": "canary"},
        {"": "canary"},
        {"X:": "canary"},
        {"X\r\nHost": "canary"},
        {"Ü": "canary"},
        {"X": "canary\r\nHost: evil"},
        {"X": "canary\n"},
        {"X": "canary\x00"},
        {"X": "canaryü"},
        {"X": 7},
        {7: "canary"},
        {"X-A": "canary", "x-a": "canary"},
    ],
)
def test_sec_1_a_header_that_could_say_more_is_refused(headers: Mapping[str, str]) -> None:
    """And its value is not repeated."""
    with pytest.raises(InvalidArgument, match=r"^OutboundRequest\(headers=\.\.\.\): ") as caught:
        OutboundRequest(method="GET", url=_URL, headers=headers)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("method", "CONNECT"),
        ("method", "TRACE"),
        ("method", "get"),
        ("method", "GET / HTTP/1.1\r\n"),
        ("method", ["GET"]),
        ("url", None),
        ("url", b"https://api.test/"),
        ("body", "text"),
        ("credentials", "X-Key"),
        ("credentials", [7]),
        ("connect_seconds", 0),
        ("connect_seconds", math.nan),
        ("total_seconds", -1),
        ("total_seconds", math.inf),
        ("total_seconds", True),
        ("total_seconds", "1"),
        ("max_response_bytes", -1),
        ("max_response_bytes", 1.5),
        ("max_response_bytes", True),
        ("max_redirects", -1),
        ("max_redirects", 51),
        ("max_redirects", None),
    ],
)
def test_sec_1_a_bound_that_bounds_nothing_is_refused(what: str, value: object) -> None:
    """With what to pass instead."""
    given: dict[str, object] = {"method": "GET", "url": _URL, what: value}
    with pytest.raises(InvalidArgument, match=rf"^OutboundRequest\({what}=\.\.\.\): "):
        OutboundRequest(**given)  # type: ignore[arg-type]  # on purpose


def test_sec_1_headers_stay_as_they_were_checked() -> None:
    """Whatever becomes of the mapping that was passed."""
    headers = {"X": "y"}
    request = OutboundRequest(method="GET", url=_URL, headers=headers)
    headers["X"] = "y\r\nHost: evil"
    assert dict(request.headers) == {"X": "y"}
