"""A call that ends lets go: closed, cancelled or failed, its connection is free (C3, RUN-4)."""

import asyncio
from contextlib import aclosing
from typing import Final

from psych_runtime.errors import ModelError, ModelTransient
from psych_runtime.ports.model import ModelClient
from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import answer, refuse
from psych_runtime.testing.model_contract._scene import (
    CONNECTIONS,
    ask,
    hello,
    is_whole,
    request,
    scene,
    stream,
)
from psych_runtime.testing.model_contract._server import Script, Server, Stop
from psych_schema.model import TextDelta

__all__ = [
    "a_call_that_was_never_begun_asks_nobody",
    "a_connection_that_the_server_closed_is_no_answer_lost",
    "a_whole_answer_leaves_room_for_the_next",
    "cancelling_a_call_ends_it_at_the_server",
    "cancelling_a_call_that_waits_ends_it_at_the_server",
    "closing_a_stream_ends_it_at_the_server",
    "failed_calls_leave_room_for_the_next",
    "fifty_cancelled_calls_leave_room_for_the_next",
    "fifty_closed_streams_leave_room_for_the_next",
    "the_known_models_are_a_set_or_unknown",
]

_ABORTED: Final = 50


def _stalling(harness: Harness) -> Script:
    first, *_ = hello(harness.dialect)
    return stream(harness.dialect, first, Stop.STALL)


async def _open_and_close(client: ModelClient) -> None:
    async with aclosing(client.stream(request())) as told:
        async for event in told:
            if isinstance(event, TextDelta):
                return


async def _leaves_room(harness: Harness, server: Server, client: ModelClient) -> None:
    """Fill the pool with calls that end well."""
    server.play(stream(harness.dialect, *hello(harness.dialect)))
    for found in await asyncio.gather(*(ask(client) for _ in range(2 * CONNECTIONS))):
        is_whole(found, "a call behind others that ended")


async def _cancel_when_asked(client: ModelClient, server: Server, *, calls: int = 1) -> None:
    """Begin so many calls, and cancel them when the server has been asked; it comes out again."""
    asked = len(server.requests)
    tasks = [asyncio.ensure_future(ask(client)) for _ in range(calls)]
    try:
        await server.until_asked(asked + calls)
    finally:
        for task in tasks:
            task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    kinds = [type(result) for result in results]
    same(kinds, [asyncio.CancelledError] * calls, "what comes out of a cancelled call")


@check("RUN-4", "C3")
async def closing_a_stream_ends_it_at_the_server(harness: Harness) -> None:
    """In the middle of an answer; the provider stops to generate."""
    async with scene(harness, _stalling(harness)) as (server, client):
        await _open_and_close(client)
        await server.until_left(1)


@check("RUN-4", "C3")
async def cancelling_a_call_ends_it_at_the_server(harness: Harness) -> None:
    """In the middle of an answer; the cancellation comes out again."""
    async with scene(harness, _stalling(harness)) as (server, client):
        await _cancel_when_asked(client, server)
        await server.until_left(1)


@check("RUN-4", "C3")
async def cancelling_a_call_that_waits_ends_it_at_the_server(harness: Harness) -> None:
    """Before the head."""
    async with scene(harness, [Stop.STALL]) as (server, client):
        await _cancel_when_asked(client, server)
        await server.until_left(1)


@check("C3")
async def fifty_closed_streams_leave_room_for_the_next(harness: Harness) -> None:
    """No place in the pool is lost with them."""
    async with scene(harness, _stalling(harness)) as (server, client):
        await asyncio.gather(*(_open_and_close(client) for _ in range(_ABORTED)))
        await server.until_left(_ABORTED)
        await _leaves_room(harness, server, client)


@check("C3")
async def fifty_cancelled_calls_leave_room_for_the_next(harness: Harness) -> None:
    """Half of them wait for the head, half are in the middle of an answer."""
    async with scene(harness, _stalling(harness), [Stop.STALL]) as (server, client):
        for _ in range(_ABORTED // 2):
            server.play(_stalling(harness), [Stop.STALL])
            await _cancel_when_asked(client, server, calls=2)
        await server.until_left(_ABORTED)
        await _leaves_room(harness, server, client)


@check("C3")
async def failed_calls_leave_room_for_the_next(harness: Harness) -> None:
    """Refusals that nobody reads to the end, garbled and broken streams."""
    dialect = harness.dialect
    first, *_ = hello(dialect)
    long = answer(*[b"x" * 65_536] * 8, content_type="text/plain", status=500)
    scripts = (
        refuse(dialect.refusal(401, "No.")),
        long,
        stream(dialect, first, b"garbage\xff\n\n" * 3),
        stream(dialect, first, Stop.RESET),
        stream(dialect, first),
    )
    async with scene(harness) as (server, client):
        for script in scripts:
            server.play(script)
            for _ in range(CONNECTIONS + 1):
                (await ask(client)).failed(ModelError, "a call that fails")
        await _leaves_room(harness, server, client)


@check("C3")
async def a_whole_answer_leaves_room_for_the_next(harness: Harness) -> None:
    """Whether connections are kept or not."""
    body = hello(harness.dialect)
    for script in (
        stream(harness.dialect, *body),
        stream(harness.dialect, *body, framing="length"),
        stream(harness.dialect, *body, framing="close"),
    ):
        async with scene(harness, script) as (_, client):
            for _ in range(3 * CONNECTIONS):
                is_whole(await ask(client), "one of several calls in a row")


@check("MOD-5")
async def a_connection_that_the_server_closed_is_no_answer_lost(harness: Harness) -> None:
    """Closed behind the answer, unannounced: the next call works, or is worth another try."""
    body = hello(harness.dialect)
    script = [*stream(harness.dialect, *body), Stop.CLOSE]
    async with scene(harness, script) as (server, client):
        for _ in range(2 * CONNECTIONS):
            found = await ask(client)
            if found.failure is not None:
                found.failed(ModelTransient, "a call on a connection that was closed")
        await _leaves_room(harness, server, client)


@check("RUN-12")
async def a_call_that_was_never_begun_asks_nobody(harness: Harness) -> None:
    """A stream that is closed before its first event has no effect."""
    async with scene(harness, _stalling(harness)) as (server, client):
        await client.stream(request()).aclose()
        await _leaves_room(harness, server, client)
        same(len(server.requests), 2 * CONNECTIONS, "requests, of calls that were begun")


@check("PUB-1")
async def the_known_models_are_a_set_or_unknown(harness: Harness) -> None:
    """Publishing asks for them: at once, without a connection, with one answer."""
    async with scene(harness, _stalling(harness)) as (server, client):
        known: object = client.models()
        same(client.models(), known, "the models when asked again")
        if known is not None:
            same(isinstance(known, frozenset), True, f"that {known!r} is a frozenset")
            kinds = {type(name) for name in known} if isinstance(known, frozenset) else set()
            same(kinds - {str}, set(), "types of models' names")
        same(server.requests, [], "requests to learn the models")
