"""An answer is the same wherever its bytes are split, and however they are spelled (MOD-5)."""

from contextlib import aclosing
from typing import Final

from psych_runtime.errors import ModelTransient
from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import answer, bytewise, head
from psych_runtime.testing.model_contract._scene import (
    HELLO,
    ask,
    hello,
    is_whole,
    outcome,
    request,
    scene,
    spoken,
    stream,
)
from psych_runtime.testing.model_contract._server import Stop
from psych_runtime.testing.model_contract.wire import Message
from psych_schema.model import CallDelta, Finish, ModelEvent, TextDelta

__all__ = [
    "a_byte_order_mark_says_nothing",
    "a_last_line_without_its_end_is_read_or_worth_another_try",
    "a_long_answer_is_told_whole",
    "a_long_event_is_understood",
    "an_answer_before_the_answer_is_no_answer",
    "an_answer_is_the_same_wherever_it_is_split",
    "an_answer_of_single_bytes_is_the_same",
    "an_event_is_told_before_the_next_comes",
    "blank_lines_say_nothing",
    "comments_say_nothing",
    "every_framing_of_a_body_is_understood",
    "fields_of_other_names_say_nothing",
    "lines_may_end_with_cr",
    "lines_may_end_with_crlf",
    "many_events_in_one_packet_are_all_told",
    "messages_without_words_say_nothing",
    "no_blank_is_needed_behind_a_colon",
    "one_event_may_have_several_lines_of_data",
]

_STOP: Final[ModelEvent] = Finish(reason="stop")
_LONG_CHARACTERS: Final = 200_000
_MANY: Final = 4_000


@check("MOD-5")
async def an_answer_is_the_same_wherever_it_is_split(harness: Harness) -> None:
    """Each message in two pieces, split after each byte: in characters, lines, their ends."""
    pieces = hello(harness.dialect)
    places = range(1, max(map(len, pieces[1:])))
    scripts = []
    for at in places:
        halves = ((piece[:at], piece[at:]) for piece in pieces)
        scripts.append(stream(harness.dialect, *(half for two in halves for half in two)))
    async with scene(harness, *scripts) as (_, client):
        for at in places:
            is_whole(await ask(client), f"an answer split after byte {at} of each message")


@check("MOD-5")
async def an_answer_of_single_bytes_is_the_same(harness: Harness) -> None:
    """In chunks of one byte, and as single bytes of a body with a length."""
    single = bytewise(b"".join(hello(harness.dialect)))
    is_whole(await outcome(harness, stream(harness.dialect, *single)), "chunks of one byte")
    plain = stream(harness.dialect, *single, framing="length")
    is_whole(await outcome(harness, plain), "a body that comes byte by byte")


@check("MOD-5")
async def many_events_in_one_packet_are_all_told(harness: Harness) -> None:
    """Nothing is left behind in a buffer."""
    words = [f"w{number} " for number in range(300)]
    said = [*map(_text, words), _STOP]
    body = b"".join(spoken(harness.dialect, *said))
    found = await outcome(harness, stream(harness.dialect, body))
    same((found.text, found.failure), ("".join(words), None), "300 events in one piece")


@check("MOD-5")
async def an_event_is_told_before_the_next_comes(harness: Harness) -> None:
    """The first words are there while the provider thinks about the next."""
    first = spoken(harness.dialect, TextDelta(text="Hi"), end=False)
    async with (
        scene(harness, stream(harness.dialect, *first, Stop.STALL)) as (_, client),
        aclosing(client.stream(request())) as told,
    ):
        text = ""
        while text != "Hi":
            event = await anext(told)
            text += event.text if isinstance(event, TextDelta) else ""


@check("MOD-5", "SEC-3")
async def a_long_event_is_understood(harness: Harness) -> None:
    """One event of 200,000 characters, as a server that does not split arguments sends it."""
    arguments = '{"a":"' + "x" * _LONG_CHARACTERS + '"}'
    call = CallDelta(index=0, provider_id="c", name="add", arguments=arguments)
    body = b"".join(spoken(harness.dialect, call, Finish(reason="tool_calls")))
    for size in (1 << 12, len(body)):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        found = await outcome(harness, stream(harness.dialect, *pieces))
        same(found.failure, None, "the failure of a long event")
        same([call.arguments for call in found.calls], [arguments], "the arguments of a long event")


@check("MOD-5", "SEC-3")
async def a_long_answer_is_told_whole(harness: Harness) -> None:
    """What bounds a line does not bound the answer: 2 MB of text in 4,000 events."""
    word = "words, " * 70
    said = [*(_text(word) for _ in range(_MANY)), _STOP]
    body = b"".join(spoken(harness.dialect, *said))
    pieces = [body[at : at + (1 << 16)] for at in range(0, len(body), 1 << 16)]
    found = await outcome(harness, stream(harness.dialect, *pieces))
    same((len(found.text), found.failure), (len(word) * _MANY, None), "a long answer")


@check("MOD-5")
async def every_framing_of_a_body_is_understood(harness: Harness) -> None:
    """Chunked, with a length, and ended by closing the connection."""
    for framing in ("chunked", "length", "close"):
        script = stream(harness.dialect, *hello(harness.dialect), framing=framing)
        is_whole(await outcome(harness, script), f"a body framed by {framing}")


@check("MOD-5")
async def an_answer_before_the_answer_is_no_answer(harness: Harness) -> None:
    """Servers and proxies may send 100 and 103 first."""
    early = head(100, {}) + head(103, {"Link": "</x>; rel=preload"})
    script = [early, *stream(harness.dialect, *hello(harness.dialect))]
    is_whole(await outcome(harness, script), "an answer behind 100 and 103")


@check("MOD-5")
async def messages_without_words_say_nothing(harness: Harness) -> None:
    """Pings and empty messages, before, between and behind the words."""
    dialect = harness.dialect
    idle = dialect.wire.write(dialect.idle_talk())
    if not idle:
        return
    first, second, finish, end = hello(dialect)
    script = stream(dialect, idle, first, idle, second, idle, finish, end)
    is_whole(await outcome(harness, script), "an answer among messages without words")


@check("MOD-5", needs=("crlf",))
async def lines_may_end_with_crlf(harness: Harness) -> None:
    """As one piece, and with a split between CR and LF."""
    await _spelled(harness, "crlf")


@check("MOD-5", needs=("cr",))
async def lines_may_end_with_cr(harness: Harness) -> None:
    """The standard of server-sent events knows three ends of a line."""
    await _spelled(harness, "cr")


@check("MOD-5", needs=("comments",))
async def comments_say_nothing(harness: Harness) -> None:
    """Proxies keep a connection alive with them."""
    await _spelled(harness, "comments")


@check("MOD-5", needs=("several_lines",))
async def one_event_may_have_several_lines_of_data(harness: Harness) -> None:
    """They are joined with a line feed."""
    await _spelled(harness, "several_lines")


@check("MOD-5", needs=("byte_order_mark",))
async def a_byte_order_mark_says_nothing(harness: Harness) -> None:
    """It may open the stream."""
    await _spelled(harness, "byte_order_mark")


@check("MOD-5", needs=("other_fields",))
async def fields_of_other_names_say_nothing(harness: Harness) -> None:
    """An id, a time to retry, and what nobody has heard of."""
    await _spelled(harness, "other_fields")


@check("MOD-5", needs=("blank_lines",))
async def blank_lines_say_nothing(harness: Harness) -> None:
    """Nor do events without data."""
    await _spelled(harness, "blank_lines")


@check("MOD-5", needs=("no_blank",))
async def no_blank_is_needed_behind_a_colon(harness: Harness) -> None:
    """`data:x` is `data: x`."""
    await _spelled(harness, "no_blank")


@check("MOD-5", needs=("crlf",))
async def a_last_line_without_its_end_is_read_or_worth_another_try(harness: Harness) -> None:
    """It may be whole or cut: the answer, or worth another try; and no answer without a finish."""
    dialect = harness.dialect
    first, second, finish, end = hello(dialect)
    for whole in (first + second + finish + end, first + second + finish, first + second):
        body = whole.rstrip(b"\n")
        script = answer(body, content_type=dialect.wire.content_type)
        found = await outcome(harness, script)
        if found.failure is None and finish in whole:
            is_whole(found, "an answer whose last line has no end")
        else:
            found.failed(ModelTransient, "a stream whose last line has no end")
        found.may_have_told(HELLO, "a stream whose last line has no end")


def _text(text: str) -> ModelEvent:
    return TextDelta(text=text)


def _messages(harness: Harness) -> list[Message]:
    said = [_text(HELLO[:3]), _text(HELLO[3:]), _STOP]
    groups = [*harness.dialect.answer(said), harness.dialect.end()]
    return [message for group in groups for message in group]


async def _spelled(harness: Harness, name: str) -> None:
    """Send the answer in another spelling, as one piece and byte by byte."""
    wire = harness.dialect.wire
    body = wire.spellings()[name](_messages(harness))
    for pieces in ([body], bytewise(body)):
        script = answer(*pieces, content_type=wire.content_type)
        is_whole(await outcome(harness, script), f"an answer spelled with {name}")
