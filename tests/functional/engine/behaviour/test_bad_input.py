"""Tools and model clients that do what they must not: the Run ends typed, the worker lives on."""

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from psych_runtime.ports.policy import Deny, Policy
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import Finish, ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from psych_schema.record import AttemptEnded, ModelCompleted, ModelFailed
from tests.functional.engine.behaviour.talk import talk, told
from tests.functional.engine.harness import Crew, admit, agent, eventually, of_type, runtime


class Odd(BaseException):
    """No Exception, and none that Python itself knows."""


class Mute(Exception):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


async def _raises() -> str:
    raise ValueError("no luck")


async def _exits() -> str:
    sys.exit(3)


async def _odd() -> str:
    raise Odd("strange")


async def _mute() -> str:
    raise Mute


async def _cancels() -> str:
    raise asyncio.CancelledError


async def _group() -> str:
    raise ExceptionGroup("two", [ValueError("a"), KeyError("b")])


async def _set() -> object:
    return {1, 2}


async def _huge() -> object:
    return "x" * 20_000_000


async def _prints() -> str:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    return "printed"


async def _blocks() -> str:
    answered = threading.Event()
    threading.Thread(target=answered.set).start()
    answered.wait()  # with the whole loop
    return "blocked"


async def _stops() -> str:
    raise StopAsyncIteration


def _sync_raises() -> str:
    raise ValueError("no luck")


def _sync_exits() -> str:
    sys.exit(3)


def _sync_stops() -> str:
    raise StopIteration


def _coroutine() -> object:
    return _prints()


_CASES: list[tuple[Callable[[], Any], str, str, str]] = [
    (_raises, "error", "tool_error", "act raised ValueError: no luck"),
    (_exits, "error", "tool_error", "act raised SystemExit: 3"),
    (_odd, "error", "tool_error", "act raised Odd: strange"),
    (_mute, "error", "tool_error", "act raised Mute: (its text cannot be read)"),
    (_cancels, "error", "tool_error", "act raised CancelledError"),
    (_group, "error", "tool_error", "act raised ExceptionGroup: two"),
    (_set, "error", "result_invalid", "a set"),
    (_huge, "error", "result_too_large", "the result of act is too large: at least 2000000"),
    (_prints, "ok", "", "printed"),
    (_blocks, "ok", "", "blocked"),
    (_stops, "error", "tool_error", "act raised"),
    (_sync_raises, "error", "tool_error", "act raised ValueError: no luck"),
    (_sync_exits, "error", "tool_error", "act raised SystemExit: 3"),
    (_sync_stops, "error", "tool_error", "act raised StopIteration"),
    (_coroutine, "ok", "", "printed"),
]


@pytest.mark.parametrize(("act", "outcome", "code", "words"), _CASES)
async def test_bad_input_whatever_a_tool_does_the_run_goes_on(
    store: Store, crew: Crew, act: Callable[[], Any], outcome: str, code: str, words: str
) -> None:
    """Its failure is data for the model; the same worker takes the next Run."""
    made = _named(act)
    model = FakeModel().turn(tool_calls=[("act", {})]).turn(text="Done.")
    found = await talk(store, crew, model, made)
    [(was, why, text)] = found.calls
    assert (was, why) == (outcome, code)
    assert words in text
    assert len(text) < 2_100
    assert found.end == ("completed", None)

    again = await told(store, await admit(store, agent("act")))
    assert again.end == ("completed", None)


def _named(act: Callable[[], Any]) -> Callable[..., object]:
    async def made() -> object:
        """Act."""
        return await act()

    def made_sync() -> object:
        """Act."""
        return act()

    found = made if inspect.iscoroutinefunction(act) else made_sync
    found.__name__ = "act"
    return found


type Play = Callable[[ModelRequest], AsyncGenerator[ModelEvent]]


class Client:
    """A model client that plays `play` until told to behave."""

    def __init__(self, play: Play) -> None:
        self.play: Play | None = play
        self.calls = 0

    def models(self) -> None:
        """Know nothing."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Play."""
        self.calls += 1
        if self.play is None:
            return _hello(request)
        return self.play(request)


async def _hello(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="Hello.")
    yield Finish(reason="stop")


async def _client_raises(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="He")
    raise ValueError("a bug")


def _client_raises_at_once(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    raise ValueError("a bug")


async def _client_exits(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="He")
    await asyncio.sleep(0)
    sys.exit(1)


async def _client_exits_at_once(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    if request.model == "fake":
        sys.exit(1)
    yield TextDelta(text="He")


async def _client_is_odd(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="He")
    raise Odd("strange")


async def _client_cancels_itself(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="He")
    await asyncio.sleep(0)
    raise asyncio.CancelledError


async def _garbage(_: ModelRequest) -> AsyncGenerator[Any]:
    yield None
    yield {"kind": "text", "text": "He"}
    yield 42
    yield "Hello"


async def _no_finish(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="Hello.")


async def _nothing(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    events: list[ModelEvent] = []
    for event in events:
        yield event


async def _silent(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="He")
    await asyncio.Event().wait()


_CLIENTS: list[tuple[Play, str]] = [
    (_client_raises, "client_error"),
    (_client_raises_at_once, "client_error"),
    (_client_exits, "client_error"),
    (_client_exits_at_once, "client_error"),
    (_client_is_odd, "client_error"),
    (_client_cancels_itself, "client_error"),
    (_garbage, "model_transient"),
    (_no_finish, "model_transient"),
    (_nothing, "model_transient"),
    (_silent, "model_transient"),
]


@pytest.mark.parametrize(("play", "code"), _CLIENTS)
async def test_bad_input_a_model_client_that_breaks_fails_the_run_typed(
    store: Store, crew: Crew, play: Play, code: str
) -> None:
    """Within the budget it is tried again; the next Run finds the worker alive."""
    client = Client(play)
    idle = 0.2 if play is _silent else 30.0
    spec = agent(transient_retry_budget=0, stream_idle_seconds=idle)
    found = await talk(store, crew, client, spec=spec)
    assert found.end == ("failed", "retries_exhausted")
    [failed] = found.every(ModelFailed)
    assert failed.failure.code == code
    assert found.every(AttemptEnded) == []
    assert client.calls == 1

    client.play = None
    again = await told(store, await admit(store, spec))
    assert again.end == ("completed", None)


async def _endless(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    while True:
        await asyncio.sleep(0)
        yield TextDelta(text="and so on " * 100)


async def _endless_at_once(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    while True:
        yield TextDelta(text="and so on " * 100)


async def _too_large(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    yield TextDelta(text="x" * 300_000)
    yield Finish(reason="stop")


@pytest.mark.parametrize("play", [_endless, _endless_at_once, _too_large])
@pytest.mark.parametrize("deltas", [False, True])
async def test_r_30_an_answer_without_end_is_cut(
    store: Store, crew: Crew, play: Play, deltas: bool
) -> None:
    """Above the bound it can be no answer any more: the stream is closed, the Run fails typed."""
    client = Client(play)
    found = await talk(store, crew, client, deltas=deltas)
    assert found.end == ("failed", "output_too_large")
    [failed] = found.every(ModelFailed)
    assert failed.failure.code == "output_too_large"
    assert client.calls == 1


class Sticky:
    """A stream that is whole and cannot be closed in order."""

    def __init__(self, end: Callable[[], Any]) -> None:
        self._events: list[ModelEvent] = [TextDelta(text="Hello."), Finish(reason="stop")]
        self._end = end

    def __aiter__(self) -> "Sticky":
        return self

    async def __anext__(self) -> ModelEvent:
        if self._events:
            return self._events.pop(0)
        self._end()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Fail."""
        raise ValueError("it cannot be closed")


def _boom() -> None:
    raise ConnectionError("reset by peer")


@pytest.mark.parametrize("end", [lambda: None, _boom])
async def test_mod_5_an_answer_that_is_whole_stays_so_however_it_is_closed(
    store: Store, crew: Crew, end: Callable[[], Any]
) -> None:
    """What fails behind the finish takes nothing back."""
    play: Any = lambda _: Sticky(end)  # noqa: E731
    client = Client(play)
    found = await talk(store, crew, client)
    assert found.end == ("completed", None)
    assert found.answer == "Hello."
    assert client.calls == 1


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_bad_input_a_client_that_does_not_let_go_is_left_behind(
    store: Store, crew: Crew
) -> None:
    """Interrupted, it goes on in its own time; the Run ends without it."""
    release = asyncio.Event()
    begun = asyncio.Event()

    async def play(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield TextDelta(text="He")
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    await crew.start(runtime(store, Client(play)))
    run = await admit(store, agent(deadline_seconds=1.0))
    await begun.wait()
    found = await told(store, run)
    release.set()
    assert found.end == ("timed_out", "timed_out")


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan"), -5.0])
async def test_bad_input_a_retry_after_that_is_none(
    store: Store, crew: Crew, seconds: float
) -> None:
    """A wait that no clock can name is bounded or left to the back-off; the attempt lives on."""
    model = FakeModel().raises_transient(503, retry_after_seconds=seconds).turn(text="Whole.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())

    async def failed() -> bool:
        return bool(await of_type(store, run, ModelFailed))

    await eventually(failed)
    [one] = await of_type(store, run, ModelFailed)
    assert one.failure.code == "model_transient"
    assert one.retry_at is not None
    assert await of_type(store, run, AttemptEnded) == []


@pytest.mark.parametrize(
    "finish",
    [
        Finish(reason="stop", served_by="a\ud800b"),
        Finish(reason="stop", served_by="m" * 1_000_000),
        Finish(reason="stop", served_by="\x00"),
        Finish(reason="stop", served_by=""),
    ],
)
async def test_bad_input_a_served_model_with_a_strange_name(
    store: Store, crew: Crew, finish: Finish
) -> None:
    """What a provider calls itself is foreign text: kept within bounds."""

    async def play(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield ReasoningDelta(text="Hm.", signature="s\udfff")
        yield TextDelta(text="Hello.")
        yield finish

    found = await talk(store, crew, Client(play))
    assert found.end == ("completed", None)
    [done] = found.every(ModelCompleted)
    assert done.served_by is not None
    assert len(done.served_by) <= 256


class Words(Policy):
    """A policy that denies at length."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def decide_tool(self, *_: object) -> Deny:
        """Deny."""
        return Deny(self.reason)


@pytest.mark.parametrize("reason", ["x" * 2_000_000, "a\ud800b", ""])
async def test_bad_input_a_policys_reason_is_bounded(store: Store, crew: Crew, reason: str) -> None:
    """Foreign text in a record has a bound, whoever wrote it."""
    model = FakeModel().turn(tool_calls=[("act", {})]).turn(text="Well.")
    found = await talk(store, crew, model, _named(_prints), policy=Words(reason))
    [(code, message)] = found.refusals
    assert code == "denied"
    assert message.startswith("The call was denied: ")
    assert len(message) < 2_200
    assert found.end == ("completed", None)
