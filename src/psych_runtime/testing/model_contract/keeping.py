"""The key is sent to one server and seen by nobody else (SEC-1, SEC-2).

Every check looks for it in every error; these send it back to the client.
"""

from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import answer, refuse
from psych_runtime.testing.model_contract._scene import (
    KEY,
    Outcome,
    ask,
    hello,
    is_whole,
    outcome,
    scene,
    showing_the_key,
    stream,
)
from psych_runtime.testing.model_contract._server import Script, Server

__all__ = [
    "a_client_does_not_show_its_key",
    "a_key_in_a_garbled_answer_is_not_shown",
    "a_key_that_a_refusal_repeats_is_not_shown",
    "a_key_that_the_stream_repeats_is_not_shown",
    "a_redirect_takes_the_key_nowhere",
    "the_key_is_sent",
]

_STATUSES = (400, 401, 403, 429, 500)


def _fails(found: Outcome, what: str) -> None:
    """Raise AssertionError unless it failed; that the error is clean was judged before."""
    if found.failure is None:
        raise AssertionError(f"{what}: no failure")


@check("SEC-2", needs=("plain_key",))
async def the_key_is_sent(harness: Harness) -> None:
    """What follows would say nothing of a client that has no key."""
    async with scene(harness, stream(harness.dialect, *hello(harness.dialect))) as (server, client):
        is_whole(await ask(client), "a call with a key")
        same(KEY.encode() in server.requests[0], True, "that the key is in the request")


@check("SEC-2")
async def a_client_does_not_show_its_key(harness: Harness) -> None:
    """Neither before nor behind a call."""
    async with scene(harness, stream(harness.dialect, *hello(harness.dialect))) as (_, client):
        before = [repr(client), str(client)]
        is_whole(await ask(client), "a call with a key")
        same(showing_the_key([*before, repr(client), str(client)]), [], "what a client shows")


@check("SEC-2")
async def a_key_that_a_refusal_repeats_is_not_shown(harness: Harness) -> None:
    """As providers do that name the key they did not accept: in words, in a page, in a header."""
    words = f"Incorrect API key provided: {KEY}. You can find yours in the settings."
    headers = {"X-Echo": KEY, "WWW-Authenticate": f'Bearer error="{KEY}"'}
    for status in _STATUSES:
        refusal = harness.dialect.refusal(status, words)
        page = refusal._replace(body=f"<p>{words}</p>".encode(), content_type="text/html")
        cut = refusal._replace(body=refusal.body[:-3])
        for told in (refusal, page, cut):
            found = await outcome(harness, refuse(told, headers=headers))
            _fails(found, f"a refusal with {status}")


@check("SEC-2", needs=("stream_errors",))
async def a_key_that_the_stream_repeats_is_not_shown(harness: Harness) -> None:
    """Of either kind, in each form."""
    dialect = harness.dialect
    messages = [*dialect.failures("transient", KEY), *dialect.failures("permanent", KEY)]
    for message in messages:
        found = await outcome(harness, stream(dialect, dialect.wire.write([message])))
        _fails(found, "an error in the stream")


@check("SEC-2")
async def a_key_in_a_garbled_answer_is_not_shown(harness: Harness) -> None:
    """A decoder's error carries along what it could not decode; so does that of a header."""
    dialect = harness.dialect
    content_type = dialect.wire.content_type
    echo = KEY.encode()
    first, *_ = hello(dialect)
    bodies = (b"data: " + echo + b"\n\n", b"{" + echo, echo + b"\xff\n\n", b"<p>" + echo)
    scripts: list[Script] = [stream(dialect, body) for body in bodies]
    scripts += [stream(dialect, first, body) for body in bodies]
    scripts.append(answer(content_type=content_type, headers={f"Bad\x01{KEY}": KEY}))
    scripts.append([b"HTTP/1.1 " + echo + b"\r\n\r\n"])
    for script in scripts:
        _fails(await outcome(harness, script), "a garbled answer")


@check("SEC-1", "SEC-2")
async def a_redirect_takes_the_key_nowhere(harness: Harness) -> None:
    """Another port is another server: it never sees the key, in whatever header it is sent."""
    good = stream(harness.dialect, *hello(harness.dialect))
    for status in (301, 302, 303, 307, 308):
        async with Server(good) as other:
            moved = answer(
                content_type=None,
                status=status,
                headers={"Location": f"{other.url}/elsewhere"},
                framing="length",
            )
            await outcome(harness, moved)
            seen = [asked for asked in other.requests if KEY.encode() in asked]
            same(seen, [], f"requests with the key at the target of a {status}")
