"""Each client against a real server: what is made of a good answer, and of connections."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

import pytest

from psych_runtime.errors import UnsendableRequest
from psych_schema.common import Usage
from psych_schema.model import CallDelta, Finish, TextDelta, UsageReport
from tests.functional.model.asking import request, text_of, told_by
from tests.servers.formats import FORMATS, Format, each_format
from tests.servers.openai_server import Stop, answer

_SPELLED = [(form, spelling) for form in FORMATS for spelling in form.spellings]


@pytest.mark.parametrize(("form", "spelling"), _SPELLED, ids=str)
@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_mod_5_bytes_split_anywhere_are_one_text(
    form: Format, spelling: Mapping[str, str | bool], framing: str
) -> None:
    """One byte at a time, inside characters and between CR and LF."""
    body = form.whole("grüße 😀", " ok", **spelling)
    pieces = [body[at : at + 1] for at in range(len(body))]
    reply = answer(*pieces) if framing == "chunked" else answer(*pieces, framing="close")
    async with form.server(reply) as server:
        client = form.client(server.base_url)
        told = await told_by(client)
        await client.aclose()
    assert text_of(told) == "grüße 😀 ok"
    assert told[-1] == Finish(reason="stop", served_by="served-model")


@each_format
async def test_mod_5_an_event_is_told_before_the_next_comes(form: Format) -> None:
    """The first word is there while the server is silent."""
    async with form.server(answer(form.write(*form.say("Hi")), Stop.STALL)) as server:
        client = form.client(server.base_url)
        async with aclosing(client.stream(request())) as told:
            assert await anext(told) == TextDelta(text="Hi")
        await server.until_left(1)
        await client.aclose()


@each_format
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", None])
async def test_mod_5_a_server_that_does_not_stream_is_understood(
    form: Format, content_type: str | None
) -> None:
    """One object with the whole answer instead of its pieces, whatever it is called."""
    body = b"\n " + form.hi
    pieces = (body[:1], body[1:20], body[20:])
    async with form.server(answer(*pieces, content_type=content_type)) as server:
        client = form.client(server.base_url)
        told = await told_by(client)
        await client.aclose()
    assert told == [
        UsageReport(usage=Usage(input_tokens=2, output_tokens=1)),
        TextDelta(text="Hi"),
        Finish(reason="stop", served_by="m-1"),
    ]


@each_format
async def test_run_12_many_calls_on_one_client_do_not_mix(form: Format) -> None:
    """Nothing of a Run stays on the client."""
    calls = [form.write(*form.call(f"tool{n}"), *form.end) for n in range(20)]
    async with form.server(*map(answer, calls)) as server:
        client = form.client(server.base_url)
        answers = await asyncio.gather(*(told_by(client) for _ in range(20)))
        await client.aclose()
    names = [event.name for told in answers for event in told if isinstance(event, CallDelta)]
    assert sorted(name or "" for name in names) == sorted(f"tool{n}" for n in range(20))


@pytest.mark.parametrize(("form", "spelling"), _SPELLED, ids=str)
async def test_c3_a_finished_stream_gives_its_connection_back(
    form: Format, spelling: Mapping[str, str | bool]
) -> None:
    """The next call uses it again, however the end is written."""
    async with form.server(answer(form.whole("Hi", **spelling))) as server:
        client = form.client(server.base_url)
        for _ in range(5):
            assert text_of(await told_by(client)) == "Hi"
        await client.aclose()
    assert server.connections == 1


@each_format
async def test_c3_200_closed_streams_do_not_starve_a_pool_of_5(form: Format) -> None:
    """Closing ends the call at the server and frees the connection."""
    async with form.server(answer(form.write(*form.say("Hi")), Stop.STALL)) as server:
        client = form.client(server.base_url, max_connections=5)

        async def interrupted() -> None:
            async with aclosing(client.stream(request())) as told:
                assert await anext(told) == TextDelta(text="Hi")

        await asyncio.gather(*(interrupted() for _ in range(200)))
        await server.until_left(200)
        server.replies = [form.answer("Hi")]
        assert text_of(await told_by(client)) == "Hi"
        await client.aclose()


@each_format
async def test_c3_200_cancelled_calls_do_not_starve_a_pool_of_5(form: Format) -> None:
    """Also when the waiting task is cancelled, before the headers or in the body."""
    async with form.server(answer(form.write(*form.say("Hi")), Stop.STALL)) as server:
        client = form.client(server.base_url, max_connections=5)
        for goal in range(5, 205, 5):
            tasks = [asyncio.create_task(told_by(client)) for _ in range(5)]
            await server.until_seen(goal)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
        server.replies = [form.answer("Hi")]
        assert text_of(await told_by(client)) == "Hi"
        await client.aclose()


@each_format
async def test_run_12_a_client_outlives_the_loop_that_used_it_first(form: Format) -> None:
    """A connection works on its own loop only; each loop gets its own."""
    async with form.server(form.answer("Hi")) as server:
        client = form.client(server.base_url)

        async def elsewhere() -> str:
            try:
                return text_of(await told_by(client))
            finally:
                await client.aclose()

        assert text_of(await told_by(client)) == "Hi"
        assert await asyncio.to_thread(asyncio.run, elsewhere()) == "Hi"
        assert text_of(await told_by(client)) == "Hi"
        await client.aclose()
    assert server.connections == 2


@each_format
async def test_mod_9_nothing_is_sent_of_what_cannot_be_written(form: Format) -> None:
    """The error comes before the server is asked."""
    field, value = form.lacks
    async with form.server(form.answer("Hi")) as server:
        client = form.client(server.base_url, without=["output"])
        with pytest.raises(UnsendableRequest, match=f"{form} does not take {field}"):
            await told_by(client, request().model_copy(update={field: value}))
        await client.aclose()
    assert server.connections == 0


@each_format
def test_pub_1_a_client_tells_its_models_when_it_was_told(form: Format) -> None:
    """It asks nobody."""
    assert form.client("http://127.0.0.1:9/v1").models() is None
    assert form.client("http://127.0.0.1:9/v1", models=["a", "b"]).models() == frozenset("ab")
