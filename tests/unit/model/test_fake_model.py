"""FakeModel plays its script by the conversation: the same for each Run, worker and process."""

import asyncio
from contextlib import aclosing

import pytest

from psych_runtime.errors import ModelError, ModelPermanent, ModelTransient
from psych_runtime.ports.model import ModelClient
from psych_runtime.testing import FakeModel, FakeRouter
from psych_schema.common import BlobRef, Cost, Usage
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    CallDelta,
    Finish,
    Message,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolMessage,
    UsageReport,
    UserMessage,
)


def _id(number: int) -> str:
    return f"call_{number:026d}"


def _user(text: str = "Hi") -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def _said(*calls: int) -> AssistantMessage:
    asked = tuple(AskedCall(call_id=_id(n), name="add", arguments="{}") for n in calls)
    return AssistantMessage(parts=(), calls=asked)


def _result(number: int) -> ToolMessage:
    return ToolMessage(call_id=_id(number), parts=(TextPart(text="3"),))


def _request(*messages: Message, model: str = "fake", idle: float = 300.0) -> ModelRequest:
    return ModelRequest(
        model=model, system="", messages=messages or (_user(),), stream_idle_seconds=idle
    )


async def _ask(model: FakeModel | FakeRouter, *messages: Message, idle: float = 300.0) -> str:
    """Return the text of one call; the name of the error's class if it fails."""
    text = ""
    try:
        async for event in model.stream(_request(*messages, idle=idle)):
            text += event.text if isinstance(event, TextDelta) else ""
    except ModelError as error:
        return f"{text}!{type(error).__name__}"
    return text


async def test_a_turn_streams_reasoning_text_calls_usage_and_a_finish() -> None:
    """Text is split at spaces, arguments in two; ids repeat in each turn as providers' do."""
    usage = Usage(input_tokens=10, output_tokens=3)
    cost = Cost(amount="0.1", currency="USD", source="provider")
    model = FakeModel().turn(
        "Hello big world",
        [("add", {"a": 1}), ("sub", {}, None)],
        usage=usage,
        cost=cost,
        reasoning="hm",
    )
    events: list[ModelEvent] = [event async for event in model.stream(_request())]
    assert events == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hello "),
        TextDelta(text="big "),
        TextDelta(text="world"),
        CallDelta(index=0, provider_id="call_0", name="add", arguments='{"a'),
        CallDelta(index=0, arguments='":1}'),
        CallDelta(index=1, name="sub", arguments="{"),
        CallDelta(index=1, arguments="}"),
        UsageReport(usage=usage, cost=cost),
        Finish(reason="tool_calls", served_by="fake"),
    ]


async def test_without_usage_nothing_is_reported() -> None:
    """Unknown is not zero."""
    events = [event async for event in FakeModel().turn("Hi").stream(_request())]
    assert events == [TextDelta(text="Hi"), Finish(reason="stop", served_by="fake")]


async def test_a_raw_call_streams_its_text_as_it_is() -> None:
    """Malformed arguments, as models write them."""
    model = FakeModel().raw_call("add", '{"x": 1')
    events = [event async for event in model.stream(_request())]
    deltas = [event for event in events if isinstance(event, CallDelta)]
    assert "".join(delta.arguments for delta in deltas) == '{"x": 1'
    assert events[-1] == Finish(reason="tool_calls", served_by="fake")


async def test_a_long_text_is_streamed_in_few_pieces() -> None:
    """Nothing of it is lost, blanks neither."""
    text = "  word \n" * 10_000
    events = [event async for event in FakeModel().turn(text).stream(_request())]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(pieces) == text
    assert 2 <= len(pieces) <= 64


async def test_the_turn_is_told_by_the_conversation() -> None:
    """Whoever asks, how often, in which order: interleaved Runs do not disturb one another."""
    model = FakeModel().turn("one").turn("two").turn("three")
    assert await _ask(model, _user("b"), _said(1), _result(1)) == "two"
    assert await _ask(model, _user("a")) == "one"
    assert await _ask(model, _user("a"), _said(), _user(), _said()) == "three"
    assert await _ask(model, _user("a")) == "one"


async def test_another_process_goes_on_where_the_first_was() -> None:
    """A new object with the same script gives the same turn."""
    conversation = (_user(), _said(1), _result(1))
    assert await _ask(FakeModel().turn("one").turn("two"), *conversation) == "two"


async def test_failing_steps_come_before_their_turn_once_each() -> None:
    """The history does not grow by a failure."""
    model = FakeModel().raises_transient(503).aborts_mid_token("Hel").turn("Hello").turn("two")
    assert [await _ask(model) for _ in range(4)] == [
        "!ModelTransient",
        "Hel!ModelTransient",
        "Hello",
        "Hello",
    ]
    assert await _ask(model, _user(), _said()) == "two"


async def test_failing_steps_between_turns() -> None:
    """They wait for their position."""
    model = FakeModel().turn("one").raises_transient(503, times=2).turn("two")
    assert await _ask(model) == "one"
    later = (_user(), _said())
    assert [await _ask(model, *later) for _ in range(3)] == [
        "!ModelTransient",
        "!ModelTransient",
        "two",
    ]


async def test_each_conversation_meets_the_failing_step_itself() -> None:
    """One Run's failure is not another's."""
    model = FakeModel().raises_transient(503).turn("one")
    assert [await _ask(model, _user(name)) for name in "abab"] == [
        "!ModelTransient",
        "!ModelTransient",
        "one",
        "one",
    ]


async def test_a_message_that_came_in_between_is_no_new_conversation() -> None:
    """A steer during the back-off does not bring the failure again."""
    model = FakeModel().raises_transient(503).turn("one")
    assert await _ask(model, _user()) == "!ModelTransient"
    assert await _ask(model, _user(), _user("steer")) == "one"


async def test_a_new_process_meets_a_failing_step_once_more() -> None:
    """The count is in the object, not in the log."""
    for _ in range(2):
        model = FakeModel().raises_transient(503).turn("one")
        assert [await _ask(model), await _ask(model)] == ["!ModelTransient", "one"]


async def test_errors_carry_what_was_scripted() -> None:
    """Status and Retry-After."""
    model = FakeModel().raises_transient(429, retry_after_seconds=7).raises_permanent(401)
    with pytest.raises(ModelTransient) as transient:
        await anext(model.stream(_request()))
    assert (transient.value.status, transient.value.retry_after_seconds) == (429, 7)
    with pytest.raises(ModelPermanent) as permanent:
        await anext(model.stream(_request()))
    assert permanent.value.status == 401


async def test_a_script_that_is_over_says_how_long_it_was() -> None:
    """Behind the last turn, and behind a failing step without a turn."""
    model = FakeModel().turn("one").turn("two")
    with pytest.raises(ModelPermanent, match="the script is over: 2 turns were scripted"):
        await anext(model.stream(_request(_user(), _said(), _said())))
    failing = FakeModel().raises_transient(503)
    assert [await _ask(failing), await _ask(failing)] == ["!ModelTransient", "!ModelPermanent"]
    with pytest.raises(ModelPermanent, match="0 turns were scripted"):
        await anext(FakeModel().stream(_request()))


async def test_a_stall_gives_up_after_its_seconds_or_the_idle_limit() -> None:
    """Whichever is sooner; then the script goes on."""
    model = FakeModel().stalls(0, text="Hel").stalls().turn("Hello")
    assert await _ask(model) == "Hel!ModelTransient"
    assert await _ask(model, idle=0.01) == "!ModelTransient"
    assert await _ask(model) == "Hello"


async def test_a_stream_closed_early_is_counted() -> None:
    """By closing the generator, or by cancelling who waits for it."""
    model = FakeModel().stalls(text="Hel").turn("Hello there")
    stream = model.stream(_request())
    assert await anext(stream) == TextDelta(text="Hel")
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert model.closed == 1
    async with aclosing(model.stream(_request())) as second:
        await anext(second)
    assert model.closed == 2


async def test_a_stream_read_to_its_finish_is_not_closed_early() -> None:
    """Whether or not anybody looks for more."""
    model = FakeModel().turn("Hi")
    async with aclosing(model.stream(_request())) as stream:
        async for event in stream:
            if isinstance(event, Finish):
                break
    assert model.closed == 0
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ((_user(), _said(1)), "nothing answers call_"),
        ((_user(), _said(1), _user()), "message 2 comes before the answer"),
        ((_user(), _said(1, 2), _result(2), _result(1)), "comes first"),
        ((_user(), _said(1), _result(1), _result(1)), "which nothing asked for"),
        ((_user(), _result(1)), "which nothing asked for"),
        ((_user(), _said(1), _said()), "message 2 comes before the answer"),
        ((_user(), _said(1, 1), _result(1), _result(1)), "asks twice under one call id"),
        ((_user(), _said(1), _result(1), _said(1), _result(1)), "asks twice under one call id"),
    ],
)
async def test_d5_an_unpaired_history_is_refused(
    messages: tuple[Message, ...], problem: str
) -> None:
    """As real providers do, for the rest of the session."""
    turns = FakeModel().turn("one").turn("two").turn("three")
    with pytest.raises(ModelPermanent, match="unpaired history") as caught:
        await anext(turns.stream(_request(*messages)))
    assert problem in str(caught.value)
    assert caught.value.status == 400


async def test_d5_a_paired_history_is_taken() -> None:
    """Several calls, answered in order."""
    model = FakeModel().turn("one").turn("two").turn("three")
    history = (_user(), _said(1, 2), _result(1), _result(2), _user(), _said(), _user())
    assert await _ask(model, *history) == "three"


async def test_d5_the_check_can_be_left_out() -> None:
    """For tests of other things."""
    model = FakeModel(strict=False).turn("one").turn("two")
    assert await _ask(model, _user(), _said(1)) == "two"


async def test_pub_1_only_known_models_answer() -> None:
    """A client that knows its models says so."""
    anything: ModelClient = FakeModel()
    assert anything.models() is None
    model = FakeModel(models=["fake", "other"]).turn("Hi")
    assert model.models() == frozenset({"fake", "other"})
    assert await _ask(model) == "Hi"
    with pytest.raises(ModelPermanent, match="no model 'none'; known: fake, other"):
        await anext(model.stream(_request(model="none")))


async def test_a_route_gives_each_model_name_its_own_script() -> None:
    """A parent and its children in one client."""
    parent, child = FakeModel().turn("parent"), FakeModel().turn("child")
    client: ModelClient = FakeModel.route({})
    assert client.models() == frozenset()
    router = FakeModel.route({"fake": parent, "small": child})
    assert router.models() == frozenset({"fake", "small"})
    assert await _ask(router) == "parent"
    stream = router.stream(_request(model="small"))
    assert await anext(stream) == TextDelta(text="child")
    await stream.aclose()
    assert [request.model for request in router.requests] == ["fake", "small"]
    assert (router.closed, parent.closed, child.closed) == (1, 0, 1)
    with pytest.raises(ModelPermanent, match="no model 'none'; known: fake, small"):
        await anext(router.stream(_request(model="none")))


async def test_mod_9_a_test_sees_what_a_tool_returned() -> None:
    """Each request is kept as it came: the parts of its messages, and the bytes that they name."""
    model = FakeModel().turn(tool_calls=[("add", {})]).turn("A cat.")
    image = BlobPart(blob=BlobRef(hash="a" * 64, bytes=3, media_type="image/png"))
    shown = ToolMessage(call_id=_id(0), parts=(image,))
    asked = _request(_user(), _said(0), shown).model_copy(
        update={"attachments": {"a" * 64: "cG5n"}}
    )
    assert [event async for event in model.stream(asked)]
    assert model.requests[-1].messages[-1].parts == (image,)
    assert model.requests[-1].attachments == {image.blob.hash: "cG5n"}
