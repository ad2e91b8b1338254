"""HTTP tools against a real service on loopback, through the one path (TOOL-2, TOOL-4, TOOL-7)."""

import asyncio
import json

import pytest
from pydantic import JsonValue

from psych_runtime import Edit, session
from psych_runtime.egress import EgressRules, Permit
from psych_runtime.testing import FakeModel
from psych_schema.record import ToolStarted
from psych_schema.view import PendingApproval
from tests.functional.tools.http_service import (
    Answer,
    agent,
    answer,
    call,
    json_answer,
    service,
)

DEEP: JsonValue = {
    "id": 7,
    "whole": 9007199254740993,
    "part": 0.1,
    "text": "é \u2028 \U0001f600 \u0000",
    "nil": None,
    "list": [1, [2, {"x": True}], {}],
}


async def test_tool_4_json_is_kept_whole() -> None:
    """Every kind of value, as the service wrote it."""
    async with service(json_answer(DEEP)) as there:
        called = await call(there, {"limit": 5, "tag": ["a", "b"]})
    assert called.value == DEEP
    [asked] = there.asked
    assert (asked.method, asked.target) == ("GET", "/things?limit=5&tag=a&tag=b")
    assert "idempotency-key" not in asked.headers


async def test_tool_4_a_long_answer_is_kept_whole_or_refused() -> None:
    """What no record holds is an error that says so; nothing is cut."""
    long: JsonValue = ["x" * 100] * 2000
    async with service(json_answer(long)) as there:
        assert (await call(there)).value == long
    longer: JsonValue = ["x" * 100] * 5000
    async with service(json_answer(longer)) as there:
        called = await call(there)
    assert called.code == "result_too_large"
    assert "ask for less. It was executed." in called.message


async def test_tool_4_a_post_sends_json_and_its_call_id() -> None:
    """The key of the request is the id under which the call is recorded (RUN-1)."""
    async with service(json_answer({"ok": True}, status=201)) as there:
        called = await call(there, {"note": "é", "n": 1}, method="POST")
    [asked] = there.asked
    assert json.loads(asked.body) == {"note": "é", "n": 1}
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["idempotency-key"] == called.call_id
    assert called.value == {"ok": True}


async def test_tool_2_an_http_tool_is_recorded_like_any_other() -> None:
    """Identity, safety and key stand in its start."""
    async with service(json_answer(1)) as there:
        called = await call(there, method="DELETE")
    (started,) = (one for one in called.records if isinstance(one, ToolStarted))
    assert (started.identity, started.safe_to_retry) == ("http:ask", False)
    assert started.key == started.call_id


async def test_mod_2_arguments_that_do_not_fit_are_never_sent() -> None:
    """The model reads what was expected, and what it probably meant."""
    schema: JsonValue = {
        "type": "object",
        "properties": {"order": {"type": "integer", "minimum": 1}},
        "required": ["order"],
    }
    wrong: list[tuple[dict[str, JsonValue], str]] = [
        ({"order": "x"}, "/order: must be a whole number"),
        ({"order": 0}, "/order: must be at least 1"),
        ({}, "order is required"),
        ({"order": 1, "ordre": 2}, "did you mean 'order'"),
    ]
    for arguments, words in wrong:
        async with service(json_answer(1)) as there:
            called = await call(there, arguments, input_schema=schema)
        assert called.code == "malformed"
        assert words in called.message
        assert 'Expected: {"order": integer' in called.message
        assert there.asked == []


async def test_tool_4_an_argument_that_leaves_its_segment_is_malformed() -> None:
    """It fits the schema, and no such request is made: nothing is started."""
    schema: JsonValue = {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
    }
    async with service(json_answer(1)) as there:
        called = await call(there, {"order": "../admin"}, path="/x/{order}", input_schema=schema)
    assert called.code == "malformed"
    assert "order stands in the path" in called.message
    assert there.asked == []


async def test_tool_4_defaults_of_the_schema_are_sent() -> None:
    """What people consent to is what is done."""
    schema: JsonValue = {"type": "object", "properties": {"limit": {"default": 20}}}
    async with service(json_answer(1)) as there:
        await call(there, input_schema=schema)
    assert there.asked[0].target == "/things?limit=20"


@pytest.mark.parametrize(
    ("credential", "secrets", "header", "value"),
    [
        ({"kind": "bearer", "secret": "k"}, {"k": "s3cr3t-1"}, "authorization", "Bearer s3cr3t-1"),
        (
            {"kind": "basic", "secret": "k", "username": "me"},
            {"k": "s3cr3t-1"},
            "authorization",
            "Basic bWU6czNjcjN0LTE=",
        ),
        (
            {"kind": "basic", "secret": "k"},
            {"k": "me:s3cr3t-1"},
            "authorization",
            "Basic bWU6czNjcjN0LTE=",
        ),
        (
            {"kind": "header", "secret": "k", "header": "X-Api-Key"},
            {"k": "s3cr3t-1"},
            "x-api-key",
            "s3cr3t-1",
        ),
    ],
)
async def test_tool_4_a_credential_is_sent_by_name_only(
    credential: JsonValue, secrets: dict[str, str], header: str, value: str
) -> None:
    """In its header, never in the address; what the service repeats of it is taken out (SEC-2)."""
    echo: JsonValue = {"you sent": value, "key s3cr3t-1": ["s3cr3t-1"]}
    async with service(json_answer(echo)) as there:
        called = await call(there, {"q": 1}, credential=credential, secrets=secrets)
    [asked] = there.asked
    assert asked.headers[header] == value
    assert "s3cr3t" not in asked.target
    text = "".join(record.model_dump_json() for record in called.records)
    for form in ("s3cr3t-1", "bWU6czNjcjN0LTE", "czNjcjN0"):
        assert form not in text
    assert "[secret k]" in text


@pytest.mark.parametrize("header", ["Accept", "Authorization", "Cookie"])
async def test_tool_4_a_credential_may_have_a_usual_header(header: str) -> None:
    """It is sent once, and takes the place of what is sent otherwise."""
    async with service(json_answer(1)) as there:
        called = await call(
            there,
            credential={"kind": "header", "secret": "k", "header": header},
            secrets={"k": "s3cr3t-1"},
        )
    assert called.value == 1
    assert there.asked[0].headers[header.lower()] == "s3cr3t-1"


async def test_app_1_people_decide_about_a_request_and_what_they_edit_is_sent() -> None:
    """By the default policy a POST asks; the record says what for."""

    def approve(pending: PendingApproval) -> Edit:
        assert (pending.identity, pending.risk) == ("http:ask", "write")
        return Edit({"cents": 900})

    model = FakeModel().turn(tool_calls=[("ask", {"cents": 90_000})]).turn(text="Done.")
    async with (
        service(json_answer("paid")) as there,
        session(model, approve=approve, egress=EgressRules(Permit(hosts=["127.0.0.1"]))) as running,
    ):
        version = await running.publish(agent(there.url, method="POST"))
        view = await running.ask(version, "Go.")
    assert view.status == "done"
    assert [json.loads(asked.body) for asked in there.asked] == [{"cents": 900}]


async def test_sec_2_an_error_body_loses_the_secret_too() -> None:
    """Also where the piece that is told ends inside of it."""
    secret = "s3cr3t-canary-0123456789"
    for before in (b"", b"x" * 1000, b"x" * 1014):
        body = before + secret.encode() + b" is wrong"
        async with service(answer(401, body, content_type="text/plain")) as there:
            called = await call(
                there, credential={"kind": "bearer", "secret": "k"}, secrets={"k": secret}
            )
        text = "".join(record.model_dump_json() for record in called.records)
        assert "s3cr3t" not in text
        assert called.code == "http_status"


async def test_sec_2_a_missing_secret_is_told_by_name_and_nothing_is_sent() -> None:
    """A typed error."""
    async with service(json_answer(1)) as there:
        called = await call(there, credential={"kind": "bearer", "secret": "shop/key"})
    assert called.code == "secret_not_found"
    assert "shop/key" in called.message
    assert there.asked == []


async def test_sec_2_a_secret_with_a_line_break_is_not_sent() -> None:
    """It would be two headers."""
    async with service(json_answer(1)) as there:
        called = await call(
            there,
            credential={"kind": "header", "secret": "k", "header": "X-K"},
            secrets={"k": "abcdef\r\nX-Evil: 1"},
        )
    assert called.code == "secret_unusable"
    assert "Evil" not in called.message
    assert there.asked == []


async def test_tool_4_an_error_status_is_told_with_a_piece_of_the_body() -> None:
    """What happened, what the service said, and whether to try again (R-25)."""
    body = json.dumps({"error": "no order 7"}).encode() + b" " * 5000
    async with service(answer(404, body, content_type="application/json")) as there:
        called = await call(there)
    assert called.completed.outcome == "error"
    assert called.completed.failure is not None
    assert called.completed.failure.status == 404
    assert called.message == (
        'ask: the service answered HTTP 404 Not Found: {"error": "no order 7"}. '
        "There is nothing under these arguments."
    )


async def test_tool_4_a_long_or_binary_error_body_stays_bounded() -> None:
    """A thousand bytes of text, and of anything else its size."""
    async with service(answer(422, b"\x1b[2Jy" * 9000, content_type="text/html")) as there:
        called = await call(there)
    assert len(called.message.encode()) < 1300
    assert "\x1b" not in called.message
    async with service(answer(422, b"\xff" * 900, content_type="image/png")) as there:
        called = await call(there)
    assert '900 bytes of "image/png"' in called.message


@pytest.mark.parametrize(
    ("made", "code", "words"),
    [
        (answer(200, b'{"a": 1', content_type="application/json"), "answer_unreadable", "JSON"),
        (answer(200, b'{"a":1,"a":2}', content_type="application/json"), "answer_unreadable", "a"),
        (answer(200, b"NaN", content_type="application/json"), "answer_unreadable", "JSON"),
        (answer(200, b"[" * 999, content_type="application/json"), "answer_unreadable", "JSON"),
        (answer(200, b'"\xff"', content_type="application/json"), "answer_unreadable", "byte 1"),
        (answer(200, b"a\xffb", content_type="text/plain"), "answer_unreadable", "byte 1"),
        (answer(200, b"x", content_type="text/plain; charset=ebcdic"), "answer_unreadable", "ebc"),
        (answer(200, b"\x89PNG", content_type="image"), "answer_unsupported", '4 bytes of "image"'),
        (answer(200, b"\x89PNG", content_type="image/png"), "no_blob_store", "an image or file"),
        (answer(200, b"x" * 999_999, content_type="text/plain"), "egress_failed", "1000 bytes"),
        (answer(200, b"xx", content_encoding="gzip"), "egress_failed", "encoded"),
        (b"what?", "egress_failed", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "egress_failed", "ended too early"),
    ],
)
async def test_tool_4_an_answer_that_is_no_data_is_a_typed_error(
    made: Answer, code: str, words: str
) -> None:
    """Broken JSON and text, other types, too much, compressed, no HTTP: told, never a crash."""
    async with service(made) as there:
        called = await call(there, max_response_bytes=1000, retries=0)
    assert called.code == code
    assert words in called.message


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (answer(200, b'\xef\xbb\xbf{"a":1}', content_type="application/problem+json"), {"a": 1}),
        (answer(200, b'{"a":1}'), {"a": 1}),
        (answer(200, "é".encode()), "é"),
        (answer(200, "é".encode("latin-1"), content_type="text/plain; charset=latin-1"), "é"),
        (answer(200, b"<a/>", content_type="application/atom+xml"), "<a/>"),
        (answer(200, b'{"a":1}', content_type="text/plain"), '{"a":1}'),
        (answer(200, b"null", content_type='application/json;charset="UTF-8"'), None),
    ],
)
async def test_tool_4_data_and_text_are_kept_as_they_are(made: Answer, value: JsonValue) -> None:
    """By their type; without one, JSON if it is, else text."""
    async with service(made) as there:
        assert (await call(there)).value == value


async def test_tool_4_nothing_and_a_head_are_answers_too() -> None:
    """204 says so; HEAD brings the fields that tell something."""
    async with service(answer(204)) as there:
        called = await call(there, method="DELETE")
    assert called.completed.outcome == "ok"
    assert called.message == "The service answered HTTP 204 No Content, without content."
    async with service(
        b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\netag: x\r\nset-cookie: a=b\r\n\r\n"
    ) as there:
        called = await call(there, method="HEAD")
    assert called.value == {"status": 200, "headers": {"content-length": "5000000", "etag": "x"}}


@pytest.mark.parametrize(
    ("made", "code", "words"),
    [
        (json_answer({"id": "x"}), "result_invalid", "/id"),
        (json_answer([]), "result_invalid", "must be a mapping"),
        (answer(204), "result_invalid", "nothing"),
        (answer(200, b"hello", content_type="text/plain"), "answer_no_json", "text/plain"),
        (answer(200, b"hello"), "answer_unreadable", "JSON"),
    ],
)
async def test_tool_7_an_answer_that_does_not_fit_is_a_typed_error(
    made: Answer, code: str, words: str
) -> None:
    """The output schema decides; the model hears that the call ran."""
    schema: JsonValue = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
    async with service(made) as there:
        called = await call(there, output_schema=schema, method="POST")
    assert called.code == code
    assert words in called.message
    assert called.message.endswith("It was executed.")


async def test_tool_7_an_answer_that_fits_is_kept() -> None:
    """Members that the schema does not name stay, too."""
    async with service(json_answer({"id": 1, "more": 2})) as there:
        called = await call(there, output_schema={"required": ["id"]})
    assert called.value == {"id": 1, "more": 2}


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize(
    "flaky", [answer(503), answer(429, retry_after="0"), answer(502), _hang_up]
)
async def test_run_11_a_flaky_service_sees_get_again_and_post_once(flaky: Answer) -> None:
    """A repetition is for what harms nothing."""
    async with service(flaky, flaky, json_answer("there")) as there:
        called = await call(there)
    assert called.value == "there"
    assert len(there.asked) == 3
    async with service(flaky, json_answer("twice")) as there:
        called = await call(there, method="POST")
    assert len(there.asked) == 1
    assert called.completed.outcome == "error"


async def test_run_11_a_post_that_is_safe_keeps_its_key() -> None:
    """Declared safe, it goes out again with the same Idempotency-Key."""
    async with service(answer(503), json_answer("there")) as there:
        called = await call(there, method="POST", safe_to_retry=True)
    assert called.value == "there"
    keys = [asked.headers["idempotency-key"] for asked in there.asked]
    assert keys == [called.call_id] * 2


async def test_run_11_retries_are_bounded() -> None:
    """Two unless said; none when the service asks for more time than there is."""
    async with service(answer(503)) as there:
        called = await call(there)
    assert (len(there.asked), called.code) == (3, "http_status")
    assert called.completed.failure is not None
    assert called.completed.failure.transient
    async with service(answer(503), json_answer(1)) as there:
        await call(there, retries=0)
    assert len(there.asked) == 1
    for later in ("3600", "Fri, 31 Dec 2100 23:59:59 GMT"):
        async with service(answer(429, retry_after=later), json_answer(1)) as there:
            called = await call(there)
        assert len(there.asked) == 1
        assert "wait before you call it again" in called.message


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 501])
async def test_run_11_what_will_not_change_is_not_repeated(status: int) -> None:
    """The same request would fail again, or nobody knows whether it would."""
    async with service(answer(status), json_answer(1)) as there:
        called = await call(there)
    assert (len(there.asked), called.code) == (1, "http_status")


@pytest.mark.parametrize(("method", "words"), [("POST", "may or may not"), ("GET", "work later")])
async def test_tool_4_a_service_that_stalls_is_given_up(method: str, words: str) -> None:
    """The whole call has one bound; the model hears whether it may have been done."""
    stalls = asyncio.Event()

    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab")
        await stalls.wait()

    async with service(stall) as there:
        called = await call(there, method=method, timeout_seconds=1)
        stalls.set()
    assert (called.completed.outcome, called.code) == ("timed_out", "tool_timeout")
    assert words in called.message
    assert "1 s" in called.message


async def test_tool_4_redirects_are_judged_and_lose_the_credential() -> None:
    """A GET follows to another origin without its secret; a POST is told, not repeated."""
    async with service(json_answer("moved")) as other:
        moved = answer(307, location=f"{other.url}/new")
        async with service(moved) as there:
            called = await call(
                there,
                credential={"kind": "header", "secret": "k", "header": "X-Key"},
                secrets={"k": "s3cr3t-1"},
            )
            assert called.value == "moved"
            assert "x-key" in there.asked[0].headers
            assert "x-key" not in other.asked[0].headers
            called = await call(there, method="POST")
            assert called.code == "http_status"
            assert "not followed" in called.message
        assert len(other.asked) == 1


async def test_sec_1_an_address_that_nobody_allows_is_denied() -> None:
    """A Spec's URL is judged like any other; nothing is sent, and nothing repeated."""
    async with service(json_answer(1)) as there:
        called = await call(there, permit=False)
    assert called.code == "egress_denied"
    assert there.asked == []
    assert "operator" in called.message


async def test_sec_1_a_redirect_to_such_an_address_is_denied_too() -> None:
    """Also when the first address is allowed."""
    async with service(answer(302, location="http://169.254.169.254/latest/meta-data/")) as there:
        called = await call(there)
    assert called.code == "egress_denied"
    assert "169.254" not in called.message


async def test_tool_4_an_argument_does_not_repeat_a_query_field_of_the_tool() -> None:
    """A service that takes the last one would take the model's."""
    schema: JsonValue = {"type": "object", "additionalProperties": True}
    async with service(json_answer({})) as there:
        called = await call(
            there, {"tenant": "globex"}, query={"tenant": "acme"}, input_schema=schema
        )
    assert called.code == "malformed"
    assert there.asked == []


async def test_sec_2_the_path_of_what_is_wrong_loses_the_secret_too() -> None:
    """A pointer into JSON writes a slash as ~1."""
    secret = "wJalr/XUtn~FEMI"
    body = json.dumps({secret: 0}).replace("0", "NaN").encode()
    async with service(answer(200, body, content_type="application/json")) as there:
        called = await call(
            there,
            secrets={"shop-key": secret},
            credential={"kind": "bearer", "secret": "shop-key"},
        )
    assert "[secret shop-key]" in called.message
    assert "XUtn" not in repr(called.records)


async def test_run_11_what_would_only_be_too_large_again_is_asked_for_once() -> None:
    """Nor does the model hear that it may work later."""
    large = answer(200, b"x" * 2000, content_type="text/plain")
    async with service(large, large, large) as there:
        called = await call(there, max_response_bytes=1000, retries=2)
    assert len(there.asked) == 1
    assert "It will fail again" in called.message
