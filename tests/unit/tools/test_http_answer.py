"""What an HTTP tool makes of any answer: a value or a typed error, never a crash (TOOL-4)."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.redaction import Redactor
from psych_runtime.core.secret import Secret
from psych_runtime.tools._http_answer import Read, Reply, judge, retry_after_seconds
from psych_runtime.tools.executed import Executed
from psych_schema.spec import HttpTool

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SECRET = "canary-7f3a"
REDACTOR = Redactor([Secret("k", SECRET)])
TYPES = ["application/json", "text/plain", "text/html; charset=latin-1", "image/png", "", "x"]


def tool(method: str = "GET") -> HttpTool:
    """Return a tool without schemas."""
    return HttpTool(
        name="t",
        description="d",
        method="POST" if method == "POST" else "HEAD" if method == "HEAD" else "GET",
        url="https://a/",
    )


def judged(reply: Reply, *, method: str = "GET", is_safe: bool = True) -> object:
    """Return what a call brought."""
    return judge(tool(method), reply, redactor=REDACTOR, is_safe=is_safe)


@given(
    status=st.integers(100, 999),
    kind=st.sampled_from(TYPES) | st.text(max_size=40),
    body=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-16")),
    method=st.sampled_from(["GET", "HEAD", "POST"]),
)
def test_tool_4_any_answer_is_a_value_or_a_bounded_error(
    status: int, kind: str, body: bytes, method: str
) -> None:
    """Whatever a service sends."""
    made = judged(Reply(status, {"content-type": kind}, body), method=method)
    if isinstance(made, Executed):
        assert (made.failure is None) == (made.outcome == "ok")
        assert made.result.message
        assert len(made.result.message.encode()) <= 2048


@given(before=st.text(max_size=1100), after=st.text(max_size=20), kind=st.sampled_from(TYPES))
def test_sec_2_no_answer_brings_the_secret_back(before: str, after: str, kind: str) -> None:
    """Neither as data nor in an error, wherever in the body it stands."""
    body = (before + SECRET + after).encode(errors="replace")
    for status in (200, 401):
        made = judged(Reply(status, {"content-type": kind, "etag": SECRET}, body))
        said = made.result.message if isinstance(made, Executed) else made
        assert SECRET not in repr(said)


@pytest.mark.parametrize("form", [SECRET, "\\u0063" + SECRET[1:], SECRET.encode().hex()])
def test_sec_2_a_long_answer_loses_the_secret_too(form: str) -> None:
    """Wherever it stands; without it the answer is what was sent."""
    filler: list[JsonValue] = [{"n": n} for n in range(5000)]
    clean = json.dumps(filler)
    body = f'{clean[:-1]}, "x{form}y"]'.encode()
    kind = {"content-type": "application/json"}
    assert judged(Reply(200, kind, body)) == Read([*filler, "x[secret k]y"])
    assert judged(Reply(200, kind, clean.encode())) == Read(filler)


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("form", ["Canary-7F3A", b"Canary-7F3A".hex(), "Canary%2D7F3A"])
@pytest.mark.parametrize("kind", ["{}", "image/{}", 'text/plain; charset="{}"', "a" * 505 + "{}"])
def test_sec_2_a_type_brings_no_secret_back(kind: str, form: str, status: int) -> None:
    """Types and charsets are compared in small letters, in which no secret would be found."""
    reply = Reply(status, {"content-type": kind.format(form)}, b"x")
    redactor = Redactor([Secret("k", "Canary-7F3A")])
    said = repr(judge(tool(), reply, redactor=redactor, is_safe=True)).lower()
    assert "canary" not in said
    assert form.lower() not in said


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "iso-8859-1"])
def test_sec_2_a_refusal_loses_the_secret_in_its_own_charset(charset: str) -> None:
    """In another one it would stand there letter by letter."""
    body = f"no {SECRET}".encode(charset)
    made = judged(Reply(401, {"content-type": f"text/plain; charset={charset}"}, body))
    assert isinstance(made, Executed)
    assert "no [secret k]" in (made.result.message or "")


def test_sec_2_a_head_brings_no_secret_back() -> None:
    """Its fields are foreign text, too."""
    assert judged(Reply(200, {"etag": f"x{SECRET}"}, b""), method="HEAD") == Read(
        {"status": 200, "headers": {"etag": "x[secret k]"}}
    )


@pytest.mark.parametrize(
    ("status", "is_safe", "words"),
    [
        (500, False, "may or may not"),
        (500, True, "It may work later"),
        (408, False, "may or may not"),
        (403, False, "will fail again"),
        (304, True, "has to be another"),
        (799, False, "HTTP 799. It may or may not"),
        (418, False, "HTTP 418 I'm a Teapot. The same call will probably fail again."),
    ],
)
def test_tool_4_the_model_hears_whether_to_try_again(
    status: int, is_safe: bool, words: str
) -> None:
    """What may have been done twice is told apart from what was refused."""
    made = judged(Reply(status, {}, b""), method="POST", is_safe=is_safe)
    assert isinstance(made, Executed)
    assert made.result.message is not None
    assert words in made.result.message


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        ("0", 0.0),
        ("12", 12.0),
        ("1.5", 1.5),
        ("Mon, 30 Nov 2026 12:01:00 GMT", 60.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 30 Nov 2026 12:01:00", 60.0),
        ("", None),
        ("-1", None),
        ("soon", None),
        ("inf", None),
        ("1e9", None),
        ("9" * 40, None),
    ],
)
def test_run_11_retry_after_is_seconds_or_a_date(field: str, seconds: float | None) -> None:
    """Anything else says nothing."""
    assert retry_after_seconds({"retry-after": field}, now=NOW) == seconds


@given(st.text(max_size=80))
def test_run_11_any_retry_after_is_read(field: str) -> None:
    """Never a crash, never negative."""
    found = retry_after_seconds({"retry-after": field}, now=NOW)
    assert found is None or found >= 0


def test_tool_4_how_long_a_service_asks_to_wait_is_told() -> None:
    """Also where it is longer than the call may take."""
    made = judge(tool(), Reply(429, {}, b""), redactor=REDACTOR, is_safe=True, after_seconds=3600.0)
    assert isinstance(made, Executed)
    assert made.result.message is not None
    assert made.result.message.endswith("The service asks to wait 3600 s.")


@pytest.mark.parametrize("status", [300, 303, 304, 308])
def test_tool_4_a_post_that_was_redirected_may_have_been_done(status: int) -> None:
    """A 303 says even that it was."""
    for is_safe, words in (
        (False, "may or may not have taken effect"),
        (True, "has to be another"),
    ):
        made = judge(tool(), Reply(status, {}, b""), redactor=REDACTOR, is_safe=is_safe)
        assert isinstance(made, Executed)
        assert words in (made.result.message or "")
