"""What a provider says is passed on as said: words, calls, why it stopped (MOD-1, MOD-4)."""

import asyncio
from typing import Final

from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._scene import (
    Call,
    Outcome,
    ask,
    hello,
    is_whole,
    outcome,
    scene,
    spoken,
    stream,
)
from psych_schema.model import CallDelta, Finish, ModelEvent, ReasoningDelta, TextDelta

__all__ = [
    "a_call_comes_with_its_id_name_and_arguments",
    "a_finish_that_is_said_twice_is_told_once",
    "a_gap_between_calls_is_no_call",
    "an_answer_without_words_is_an_answer",
    "arguments_are_passed_on_as_they_are",
    "calls_without_an_id_are_calls",
    "calls_without_arguments_are_calls",
    "each_reason_to_stop_is_told",
    "equal_ids_are_calls_of_their_own",
    "nothing_is_told_behind_the_end",
    "pieces_of_two_calls_do_not_mix",
    "reasoning_is_told_apart_from_text",
    "the_same_id_in_another_call_is_no_memory",
    "two_streams_at_once_do_not_mix",
    "what_comes_behind_a_finish_is_not_told_behind_it",
]

_TOOLS: Final = Finish(reason="tool_calls")


def _call(index: int, provider_id: str | None, name: str, arguments: str = "") -> CallDelta:
    return CallDelta(index=index, provider_id=provider_id, name=name, arguments=arguments)


async def _said(harness: Harness, *said: ModelEvent) -> Outcome:
    """Return what a client makes of one answer; it must make something of it."""
    body = spoken(harness.dialect, *said)
    found = await outcome(harness, stream(harness.dialect, *body))
    same(found.failure, None, "the failure of a well-formed answer")
    return found


def _known(harness: Harness, *calls: Call) -> list[Call]:
    """Return the calls as the format can tell them."""
    if "call_ids" in harness.dialect.features:
        return list(calls)
    return [call._replace(provider_id=None) for call in calls]


@check("MOD-9", needs=("reasoning",))
async def reasoning_is_told_apart_from_text(harness: Harness) -> None:
    """Both whole, each under its own kind."""
    said = (ReasoningDelta(text="grü"), ReasoningDelta(text="bel"), TextDelta(text="So."))
    found = await _said(harness, *said, Finish(reason="stop"))
    same((found.reasoning, found.text), ("grübel", "So."), "reasoning and text")


@check("MOD-1")
async def a_call_comes_with_its_id_name_and_arguments(harness: Harness) -> None:
    """The arguments in pieces; text before the call stays text."""
    pieces = (CallDelta(index=0, arguments='{"a"'), CallDelta(index=0, arguments=":1}"))
    said = (TextDelta(text="So"), _call(0, "call_x", "add"), *pieces, _TOOLS)
    found = await _said(harness, *said)
    same(found.calls, _known(harness, Call("call_x", "add", '{"a":1}')), "a call in pieces")
    same((found.text, found.finish), ("So", "tool_calls"), "what is said beside a call")


@check("MOD-7", needs=("interleaved_calls",))
async def pieces_of_two_calls_do_not_mix(harness: Harness) -> None:
    """Their pieces alternate."""
    said = [_call(0, "a", "add", '{"a"'), _call(1, "b", "sub", '{"b"')]
    said += [CallDelta(index=1, arguments=":2}"), CallDelta(index=0, arguments=":1}")]
    found = await _said(harness, *said, _TOOLS)
    wanted = _known(harness, Call("a", "add", '{"a":1}'), Call("b", "sub", '{"b":2}'))
    same(found.calls, wanted, "two calls in alternating pieces")


@check("MOD-1", needs=("call_ids",))
async def equal_ids_are_calls_of_their_own(harness: Harness) -> None:
    """Some servers give every call one id, or one for each tool."""
    said = (_call(0, "a", "add", '{"a":1}'), _call(1, "a", "sub", '{"b":2}'), _TOOLS)
    found = await _said(harness, *said)
    wanted = [Call("a", "add", '{"a":1}'), Call("a", "sub", '{"b":2}')]
    same(found.calls, wanted, "two calls under one id")


@check("MOD-1")
async def calls_without_an_id_are_calls(harness: Harness) -> None:
    """The id is data; who needs one makes one."""
    said = (_call(0, None, "add", '{"a":1}'), _call(1, None, "add", '{"a":2}'), _TOOLS)
    found = await _said(harness, *said)
    wanted = [Call(None, "add", '{"a":1}'), Call(None, "add", '{"a":2}')]
    same(found.calls, wanted, "two calls without an id")


@check("MOD-1", needs=("interleaved_calls",))
async def a_gap_between_calls_is_no_call(harness: Harness) -> None:
    """Servers that count from one, or leave numbers out."""
    said = (_call(1, "a", "add", '{"a":1}'), _call(7, "b", "sub", '{"b":2}'), _TOOLS)
    found = await _said(harness, *said)
    wanted = _known(harness, Call("a", "add", '{"a":1}'), Call("b", "sub", '{"b":2}'))
    same(found.calls, wanted, "calls 1 and 7")


@check("MOD-1")
async def the_same_id_in_another_call_is_no_memory(harness: Harness) -> None:
    """A client keeps nothing from one call to the next (RUN-12)."""
    scripts = [
        stream(harness.dialect, *spoken(harness.dialect, _call(0, "call_0", name, "{}"), _TOOLS))
        for name in ("add", "sub")
    ]
    async with scene(harness, *scripts) as (_, client):
        for name in ("add", "sub"):
            found = await ask(client)
            wanted = _known(harness, Call("call_0", name, "{}"))
            same((found.calls, found.failure), (wanted, None), f"the call of {name}")


@check("MOD-2")
async def arguments_are_passed_on_as_they_are(harness: Harness) -> None:
    """Malformed ones too: who reads them judges them, with the position."""
    for arguments in ('{"x": 1', "[1]", "null", '"', "{'a': True}", '{"a": "é\\n\\u0000 😀"}  '):
        found = await _said(harness, _call(0, "c", "add", arguments), _TOOLS)
        same([call.arguments for call in found.calls], [arguments], "arguments as written")


@check("MOD-2")
async def calls_without_arguments_are_calls(harness: Harness) -> None:
    """Nothing follows the name."""
    found = await _said(harness, _call(0, "c", "now"), _TOOLS)
    same(found.calls, _known(harness, Call("c", "now", "")), "a call without arguments")


@check("MOD-4")
async def each_reason_to_stop_is_told(harness: Harness) -> None:
    """As said, whatever was said before; one that nobody knows is `other`."""
    for reason in harness.dialect.finish_reasons:
        finish = Finish(reason=reason)
        same((await _said(harness, TextDelta(text="x"), finish)).finish, reason, "the reason")
        found = await _said(harness, _call(0, "c", "add", "{}"), finish)
        same((found.finish, len(found.calls)), (reason, 1), "the reason, and calls beside it")


@check("MOD-4")
async def an_answer_without_words_is_an_answer(harness: Harness) -> None:
    """What to make of it is not the client's to decide."""
    found = await _said(harness, Finish(reason="stop"))
    same((found.text, found.calls, found.finish), ("", [], "stop"), "an empty answer")


@check("MOD-5")
async def a_finish_that_is_said_twice_is_told_once(harness: Harness) -> None:
    """Servers repeat it in a message that brings something else."""
    first, second, finish, end = hello(harness.dialect)
    script = stream(harness.dialect, first, second, finish, finish, end)
    is_whole(await outcome(harness, script), "an answer with two finishes")


@check("MOD-5")
async def what_comes_behind_a_finish_is_not_told_behind_it(harness: Harness) -> None:
    """It is left out, or told before the finish: a reader stops at the finish."""
    first, second, finish, end = hello(harness.dialect)
    late = spoken(harness.dialect, TextDelta(text=" late"), end=False)
    found = await outcome(harness, stream(harness.dialect, first, second, finish, *late, end))
    if found.failure is None and found.text != "Héllo 😀 late":
        is_whole(found, "an answer with text behind its finish")


@check("MOD-5")
async def nothing_is_told_behind_the_end(harness: Harness) -> None:
    """A stream is over when it says so; so is a body with a length."""
    whole = b"".join(hello(harness.dialect))
    late = b"".join(spoken(harness.dialect, TextDelta(text=" late"), end=False))
    if "end_marker" in harness.dialect.features:
        is_whole(await outcome(harness, stream(harness.dialect, whole, late)), "text behind it")
    cut = stream(harness.dialect, whole, late, framing="length", length=len(whole))
    is_whole(await outcome(harness, cut), "bytes behind the end of the body")


@check("RUN-12")
async def two_streams_at_once_do_not_mix(harness: Harness) -> None:
    """Piece by piece, side by side, on one client."""
    gate = asyncio.Barrier(2)
    scripts = []
    for name in ("left", "right"):
        said = (TextDelta(text=name), _call(0, "call_0", name, '{"a"'))
        rest = (CallDelta(index=0, arguments=":1}"), TextDelta(text="."), _TOOLS)
        pieces = spoken(harness.dialect, *said, *rest)
        scripts.append(
            stream(harness.dialect, *(step for piece in pieces for step in (piece, gate)))
        )
    async with scene(harness, *scripts) as (_, client):
        found = await asyncio.gather(ask(client), ask(client))
    told = sorted((one.text, one.calls[0].name, one.calls[0].arguments) for one in found)
    same(told, [(f"{name}.", name, '{"a":1}') for name in ("left", "right")], "two streams")
