"""Connections break: an answer is whole, or there is one typed error (MOD-5)."""

from typing import Final

from psych_runtime.errors import ModelError, ModelTransient
from psych_runtime.testing.model_contract._check import Harness, check
from psych_runtime.testing.model_contract._http import Framing, answer, chunk, head
from psych_runtime.testing.model_contract._scene import (
    CONNECTIONS,
    HELLO,
    KEY,
    ask,
    hello,
    is_whole,
    outcome,
    scene,
    spoken,
    stream,
)
from psych_runtime.testing.model_contract._server import Flood, Script, Stop, nobody
from psych_schema.model import TextDelta

__all__ = [
    "a_body_longer_than_its_length_poisons_nothing",
    "a_body_shorter_than_its_length_is_worth_another_try",
    "a_chunk_that_is_none_is_worth_another_try",
    "a_connection_closed_before_the_answer_is_worth_another_try",
    "a_connection_closed_in_a_chunk_is_worth_another_try",
    "a_half_closed_connection_is_no_reason_to_wait",
    "a_line_without_end_is_given_up",
    "a_reset_connection_is_worth_another_try",
    "a_server_that_is_not_there_is_worth_another_try",
    "an_end_in_the_middle_of_a_message_is_worth_another_try",
    "an_end_without_a_finish_is_worth_another_try",
    "headers_without_end_are_given_up",
    "nothing_at_all_is_no_answer",
    "the_end_alone_is_no_finish",
    "what_is_no_http_is_a_typed_error",
]

_FLOOD_BYTES: Final = 32 << 20
_PIECE: Final = b"x" * (1 << 16)


def _open(harness: Harness) -> bytes:
    """Return the head of a chunked stream."""
    content_type = harness.dialect.wire.content_type
    return head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})


async def _breaks(harness: Harness, what: str, script: Script) -> None:
    """Play `script`, which never finishes the answer: ModelTransient, and no word too many."""
    found = await outcome(harness, script)
    found.failed(ModelTransient, what)
    found.may_have_told(HELLO, what)


@check("MOD-5")
async def an_end_without_a_finish_is_worth_another_try(harness: Harness) -> None:
    """A clean end in each framing: nothing says that the answer was cut, but for the finish."""
    first, second, _, _ = hello(harness.dialect)
    framings: tuple[Framing, ...] = ("chunked", "length", "close")
    for framing in framings:
        script = stream(harness.dialect, first, second, framing=framing)
        await _breaks(harness, f"an end without a finish, {framing}", script)


@check("MOD-5", needs=("end_marker",))
async def the_end_alone_is_no_finish(harness: Harness) -> None:
    """Also when the stream says that it is over."""
    first, second, _, end = hello(harness.dialect)
    await _breaks(
        harness, "an end mark without a finish", stream(harness.dialect, first, second, end)
    )


@check("MOD-5")
async def nothing_at_all_is_no_answer(harness: Harness) -> None:
    """200 and an empty body."""
    for framing in ("chunked", "length", "close"):
        await _breaks(harness, "an empty body", stream(harness.dialect, framing=framing))


@check("MOD-5")
async def an_end_in_the_middle_of_a_message_is_worth_another_try(harness: Harness) -> None:
    """At every third byte of the second message, the ends of its lines apart."""
    first, second, _, _ = hello(harness.dialect)
    cuts = range(1, len(second.rstrip()), 3)
    scripts = [stream(harness.dialect, first + second[:at]) for at in cuts]
    async with scene(harness, *scripts) as (_, client):
        for at in cuts:
            found = await ask(client)
            found.failed(ModelTransient, f"an end after byte {at} of a message")
            found.may_have_told(HELLO, f"an end after byte {at} of a message")


@check("MOD-5")
async def a_reset_connection_is_worth_another_try(harness: Harness) -> None:
    """Before the head, in it, behind it, and between two messages."""
    first, *_ = hello(harness.dialect)
    opening = _open(harness)
    before: tuple[tuple[bytes, ...], ...] = (
        (),
        (opening[:30],),
        (opening,),
        (opening, chunk(first)),
        (opening, chunk(first), chunk(first)[:9]),
    )
    for pieces in before:
        what = f"a reset after {len(pieces)} pieces"
        await _breaks_or_repeats(harness, what, [*pieces, Stop.RESET])


async def _breaks_or_repeats(harness: Harness, what: str, script: Script) -> None:
    """As `_breaks`, where a second piece may repeat the first."""
    found = await outcome(harness, script)
    found.failed(ModelTransient, what)
    found.may_have_told(HELLO[:3] * 2, what)


@check("MOD-5")
async def a_connection_closed_before_the_answer_is_worth_another_try(harness: Harness) -> None:
    """Nothing came, or a part of the head."""
    opening = _open(harness)
    for piece in (b"", opening[:12], opening[:40], opening[:-2]):
        script: Script = [piece, Stop.CLOSE]
        await _breaks(harness, f"a head cut after {len(piece)} bytes", script)


@check("MOD-5")
async def a_connection_closed_in_a_chunk_is_worth_another_try(harness: Harness) -> None:
    """In its size, in its data, and where the next one should begin."""
    first, second, _, _ = hello(harness.dialect)
    framed = chunk(second)
    for rest in (framed[:1], framed[: len(framed) // 2], framed):
        script: Script = [_open(harness), chunk(first), rest, Stop.CLOSE]
        await _breaks(harness, "a connection closed in a chunk", script)


@check("MOD-5")
async def a_chunk_that_is_none_is_worth_another_try(harness: Harness) -> None:
    """No size, a size below zero, and data that is longer than its size."""
    first, second, _, _ = hello(harness.dialect)
    garbage = (b"zz\r\n" + second, b"-5\r\n" + second, b"5\r\n" + second, b"\r\n\r\n" + second)
    for rest in garbage:
        script: Script = [_open(harness), chunk(first), rest + b"\r\n0\r\n\r\n", Stop.CLOSE]
        await _breaks(harness, f"a chunk that begins with {rest[:6]!r}", script)


@check("MOD-5")
async def a_body_shorter_than_its_length_is_worth_another_try(harness: Harness) -> None:
    """The connection ends before the promised bytes; with a finish among them it may be whole."""
    first, second, finish, end = hello(harness.dialect)
    cut = stream(harness.dialect, first, second, Stop.CLOSE, framing="length", length=10_000)
    await _breaks(harness, "a body of 10,000 bytes that ends early", cut)
    late = stream(
        harness.dialect, first, second, finish, end, Stop.CLOSE, framing="length", length=10_000
    )
    found = await outcome(harness, late)
    if found.failure is not None:
        found.failed(ModelTransient, "a whole answer in a body that ends early")
    found.may_have_told(HELLO, "a whole answer in a body that ends early")


@check("MOD-5", "SEC-3")
async def a_body_longer_than_its_length_poisons_nothing(harness: Harness) -> None:
    """What lies behind a body, were it an answer of its own, belongs to no call.

    A length that ends inside the answer cuts it.
    """
    dialect = harness.dialect
    first, second, finish, end = hello(dialect)
    whole = first + second + finish + end
    planted = stream(dialect, *spoken(dialect, TextDelta(text="planted"), end=False))
    behind = b"".join(step for step in planted if isinstance(step, bytes))
    poisoned = stream(dialect, whole + behind, framing="length", length=len(whole))
    cut = stream(dialect, whole, framing="length", length=len(first) + 9)
    async with scene(harness, poisoned, stream(dialect, whole)) as (server, client):
        is_whole(await ask(client), "an answer with bytes behind it")
        found = await ask(client)
        if found.failure is not None:
            found.failed(ModelTransient, "the next call on a connection with bytes left over")
        found.may_have_told(HELLO, "the next call on a connection with bytes left over")
        server.play(cut, stream(dialect, whole))
        found = await ask(client)
        found.failed(ModelTransient, "a body that is longer than its length")
        for _ in range(CONNECTIONS):
            (await ask(client)).may_have_told(HELLO, "a call after a body that was too long")


@check("MOD-5")
async def a_half_closed_connection_is_no_reason_to_wait(harness: Harness) -> None:
    """A server may end its side only: with a finish it is an answer, without one a failure."""
    dialect = harness.dialect
    first, second, finish, end = hello(dialect)
    whole = stream(dialect, first, second, finish, end, Stop.HALF_CLOSE, framing="close")
    is_whole(await outcome(harness, whole), "a whole answer, half closed")
    for framing in ("close", "chunked"):
        script = stream(dialect, first, Stop.HALF_CLOSE, framing=framing)
        await _breaks(harness, f"a stream half closed without a finish, {framing}", script)
    await _breaks(harness, "a connection half closed before the answer", [Stop.HALF_CLOSE])


@check("MOD-5")
async def a_server_that_is_not_there_is_worth_another_try(harness: Harness) -> None:
    """It restarts; the client works again without being made anew."""
    async with (
        nobody() as url,
        harness.client(url, api_key=KEY, max_connections=CONNECTIONS) as client,
    ):
        for _ in range(CONNECTIONS + 1):
            (await ask(client)).failed(ModelTransient, "a refused connection")


@check("MOD-5")
async def what_is_no_http_is_a_typed_error(harness: Harness) -> None:
    """Another protocol, a status that is none, a header that is none."""
    content_type = harness.dialect.wire.content_type
    for opening in (
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBad\x01Name: x\r\n\r\n",
        b"\x00" * 200 + b"\r\n\r\n",
        answer(status=204, content_type=content_type, framing="length")[0],
    ):
        assert isinstance(opening, bytes)
        found = await outcome(harness, [opening, Stop.CLOSE])
        found.failed(ModelError, f"an answer that begins with {opening[:20]!r}")
        found.may_have_told("", f"an answer that begins with {opening[:20]!r}")


@check("MOD-5", "SEC-3")
async def a_line_without_end_is_given_up(harness: Harness) -> None:
    """The client leaves before 32 MiB of one message; what it had told is told."""
    first, *_ = hello(harness.dialect)
    message = spoken(harness.dialect, TextDelta(text="X"), end=False)[-1]
    beginning = message[: message.rindex(b"X")]
    flood = Flood(chunk(_PIECE), _FLOOD_BYTES)
    script: Script = [_open(harness), chunk(first), chunk(beginning), flood, Stop.CLOSE]
    await _given_up(harness, "a line without end", script)


@check("MOD-5", "SEC-3")
async def headers_without_end_are_given_up(harness: Harness) -> None:
    """One long line, and many of them."""
    for piece in (_PIECE, b"X-More: " + b"x" * 1000 + b"\r\n"):
        opening = b"HTTP/1.1 200 OK\r\nX-Long: "
        script: Script = [opening, Flood(piece, _FLOOD_BYTES), Stop.CLOSE]
        await _given_up(harness, "headers without end", script)


async def _given_up(harness: Harness, what: str, script: Script) -> None:
    async with scene(harness, script) as (server, client):
        found = await ask(client)
        found.failed(ModelError, what)
        found.may_have_told(HELLO, what)
        if server.floods:
            raise AssertionError(f"{what}: all {_FLOOD_BYTES} bytes were taken")
