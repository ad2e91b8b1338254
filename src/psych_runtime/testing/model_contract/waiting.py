"""Silence ends after `stream_idle_seconds`, wherever it falls; a slow stream lives (MOD-5).

Nothing is measured: a client that waits for ever runs into the patience of the check.
"""

from typing import Final

from psych_runtime.errors import ModelTransient
from psych_runtime.testing.model_contract._check import Harness, check
from psych_runtime.testing.model_contract._http import chunk, head
from psych_runtime.testing.model_contract._scene import (
    CONNECTIONS,
    HELLO,
    ask,
    hello,
    is_whole,
    outcome,
    scene,
    stream,
)
from psych_runtime.testing.model_contract._server import Pause, Script, Stop

__all__ = [
    "a_slow_stream_is_no_silence",
    "a_stream_that_stalls_ends_at_the_server_too",
    "silence_before_the_answer_ends",
    "silence_behind_the_finish_loses_no_answer",
    "silence_behind_the_head_ends",
    "silence_between_messages_ends",
    "silence_in_the_head_ends",
    "silence_inside_a_message_ends",
]

_IDLE_SECONDS: Final = 0.3
_PAUSES: Final = 4


def _head(harness: Harness) -> bytes:
    content_type = harness.dialect.wire.content_type
    return head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})


async def _falls_silent(harness: Harness, what: str, *pieces: bytes) -> None:
    found = await outcome(harness, [*pieces, Stop.STALL], idle_seconds=_IDLE_SECONDS)
    found.failed(ModelTransient, f"silence {what}")
    found.may_have_told(HELLO, f"silence {what}")


@check("MOD-5")
async def silence_before_the_answer_ends(harness: Harness) -> None:
    """The server took the request and says nothing."""
    await _falls_silent(harness, "before the answer")


@check("MOD-5")
async def silence_in_the_head_ends(harness: Harness) -> None:
    """It began to answer."""
    await _falls_silent(harness, "in the head", _head(harness)[:30])


@check("MOD-5")
async def silence_behind_the_head_ends(harness: Harness) -> None:
    """200, and not a word."""
    await _falls_silent(harness, "behind the head", _head(harness))


@check("MOD-5")
async def silence_between_messages_ends(harness: Harness) -> None:
    """It spoke, and stopped."""
    first, second, _, _ = hello(harness.dialect)
    await _falls_silent(harness, "between messages", _head(harness), chunk(first), chunk(second))


@check("MOD-5")
async def silence_inside_a_message_ends(harness: Harness) -> None:
    """In the middle of a line, and of a chunk."""
    first, second, _, _ = hello(harness.dialect)
    half = len(second) // 2
    opening = (_head(harness), chunk(first))
    await _falls_silent(harness, "in a line", *opening, chunk(second[:half]))
    await _falls_silent(harness, "in a chunk", *opening, chunk(second)[:half])


@check("MOD-5")
async def silence_behind_the_finish_loses_no_answer(harness: Harness) -> None:
    """The answer is whole, or worth another try; nobody waits for the end for ever."""
    first, second, finish, end = hello(harness.dialect)
    for pieces in ((first, second, finish), (first, second, finish, end)):
        script = stream(harness.dialect, *pieces, Stop.STALL)
        found = await outcome(harness, script, idle_seconds=_IDLE_SECONDS)
        if found.failure is None:
            is_whole(found, "silence behind the finish")
        else:
            found.failed(ModelTransient, "silence behind the finish")
            found.may_have_told(HELLO, "silence behind the finish")


@check("MOD-5")
async def a_slow_stream_is_no_silence(harness: Harness) -> None:
    """What is bounded is each silence, not the whole call.

    A busy machine may stretch a pause, so that it is tried again with more time.
    """
    first, second, finish, end = hello(harness.dialect)
    found = None
    for idle in (0.5, 2.0, 6.0):
        pause = Pause(idle * 1.2 / _PAUSES)
        script = stream(harness.dialect, first, pause, second, pause, pause, finish, pause, end)
        found = await outcome(harness, script, idle_seconds=idle)
        if found.failure is None:
            break
    assert found is not None
    is_whole(found, "a slow stream")


@check("MOD-5", "C3")
async def a_stream_that_stalls_ends_at_the_server_too(harness: Harness) -> None:
    """Giving up closes the connection, and frees its place."""
    first, second, finish, end = hello(harness.dialect)
    dialect = harness.dialect
    stalls: tuple[Script, ...] = ([Stop.STALL], stream(dialect, first, Stop.STALL))
    async with scene(harness) as (server, client):
        for stall in stalls:
            server.play(stall)
            for _ in range(2):
                found = await ask(client, idle_seconds=_IDLE_SECONDS / 3)
                found.failed(ModelTransient, "silence")
            await server.until(lambda: server.left == len(server.requests))
        server.play(stream(dialect, first, second, finish, end))
        for _ in range(CONNECTIONS):
            is_whole(await ask(client), "a call after calls that were given up")
