"""One client before one server: what it was told, and what must hold whatever that was."""

import traceback
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from psych_runtime.errors import ModelError, ModelPermanent, ModelTransient
from psych_runtime.ports.model import ModelClient
from psych_runtime.testing.model_contract._check import Harness, same
from psych_runtime.testing.model_contract._http import Framing, answer
from psych_runtime.testing.model_contract._server import Script, Server, Step
from psych_runtime.testing.model_contract.dialect import Dialect
from psych_schema.common import Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPart,
    UsageReport,
    UserMessage,
)

__all__ = [
    "CONNECTIONS",
    "HELLO",
    "KEY",
    "Call",
    "Outcome",
    "ask",
    "hello",
    "is_whole",
    "outcome",
    "request",
    "scene",
    "showing_the_key",
    "spoken",
    "stream",
]

KEY: Final = "sk-canary/7f3a+Zq9"
"""What every client is given to authenticate with, and what nobody may see again (SEC-2)."""

HELLO: Final = "Héllo 😀"
"""The text of the answer that most checks disturb."""

CONNECTIONS: Final = 4
"""So many connections the pool of a client may hold."""

_ERROR_CHARACTERS: Final = 16_384
_FORMS: Final = (
    KEY,
    quote(KEY, safe=""),
    KEY.encode().hex(),
    b64encode(KEY.encode()).decode().rstrip("="),
)


class Call(NamedTuple):
    """A call as a reader of the deltas sees it."""

    provider_id: str | None
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call."""

    events: tuple[ModelEvent, ...]
    failure: ModelError | None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def usage(self) -> Usage | None:
        """The last usage told; None also when it tells nothing."""
        told = [event.usage for event in self.events if isinstance(event, UsageReport)]
        return told[-1] if told and told[-1] != Usage() else None

    @property
    def finish(self) -> str | None:
        """The reason of the finish."""
        told = [event.reason for event in self.events if isinstance(event, Finish)]
        return told[-1] if told else None

    @property
    def calls(self) -> list[Call]:
        """The calls, put together by their index, in order of appearance."""
        pieces: dict[int, list[CallDelta]] = {}
        for event in self.events:
            if isinstance(event, CallDelta):
                pieces.setdefault(event.index, []).append(event)
        return [
            Call(
                next((piece.provider_id for piece in told if piece.provider_id), None),
                "".join(piece.name or "" for piece in told),
                "".join(piece.arguments for piece in told),
            )
            for told in pieces.values()
        ]

    def failed(self, kind: type[ModelError], what: str) -> None:
        """Raise AssertionError unless it failed as `kind`."""
        if not isinstance(self.failure, kind):
            told = f"ended with {self.finish!r} after {self.text!r}"
            raise AssertionError(f"{what}: {self.failure!r} ({told}), not a {kind.__name__}")

    def may_have_told(self, text: str, what: str) -> None:
        """Raise AssertionError unless what was told is a beginning of `text`."""
        if not text.startswith(self.text):
            raise AssertionError(f"{what}: told {self.text!r}, no beginning of {text!r}")


@asynccontextmanager
async def scene(harness: Harness, *scripts: Script) -> AsyncIterator[tuple[Server, ModelClient]]:
    """Start a server that plays `scripts`, and a client for it."""
    async with (
        Server(*scripts) as server,
        harness.client(server.url, api_key=KEY, max_connections=CONNECTIONS) as client,
    ):
        yield server, client


async def outcome(harness: Harness, script: Script, *, idle_seconds: float = 30.0) -> Outcome:
    """Make one call that is answered with `script`."""
    async with scene(harness, script) as (_, client):
        return await ask(client, idle_seconds=idle_seconds)


def request(*, idle_seconds: float = 30.0) -> ModelRequest:
    """Return a small request."""
    user = UserMessage(parts=(TextPart(text="Hello"),))
    return ModelRequest(
        model="m", system="Be brief.", messages=(user,), stream_idle_seconds=idle_seconds
    )


async def ask(
    client: ModelClient, *, asked: ModelRequest | None = None, idle_seconds: float = 30.0
) -> Outcome:
    """Make one call, a small one unless `asked` says what, and take it to its end.

    Raises AssertionError for what no client may do: another error than a ModelError, a finish
    that is missing, told twice or not last, a key that can be seen.
    """
    events: list[ModelEvent] = []
    failure: Exception | None = None
    try:
        made = request(idle_seconds=idle_seconds) if asked is None else asked
        async with aclosing(client.stream(made)) as told:
            async for event in told:
                events += [event]
    except Exception as error:  # foreign code: what it raises is judged
        failure = error
    return _judged(events, failure)


def spoken(dialect: Dialect, *said: ModelEvent, end: bool = True) -> list[bytes]:
    """Return the bytes of each event, and of what follows a whole answer."""
    pieces = [dialect.wire.write(messages) for messages in dialect.answer(said)]
    return [*pieces, dialect.wire.write(dialect.end())] if end else pieces


def stream(
    dialect: Dialect, *body: Step, framing: Framing = "chunked", length: int | None = None
) -> Script:
    """Return the script of a stream in the dialect's own content type."""
    content_type = dialect.wire.content_type
    return answer(*body, content_type=content_type, framing=framing, length=length)


def hello(dialect: Dialect) -> list[bytes]:
    """Return the answer that most checks disturb: two pieces of text, the finish, the end."""
    events = (TextDelta(text=HELLO[:3]), TextDelta(text=HELLO[3:]), Finish(reason="stop"))
    return spoken(dialect, *events)


def is_whole(found: Outcome, what: str) -> None:
    """Raise AssertionError unless it is the answer of `hello`."""
    if found.failure is not None:
        raise AssertionError(f"{what}: {found.failure!r}, not an answer") from found.failure
    same((found.text, found.finish), (HELLO, "stop"), what)


def showing_the_key(texts: Sequence[str]) -> list[str]:
    """Return the texts in which the key can be read: plain, quoted, in base64, hexadecimal."""
    return [text for text in texts if any(form in text for form in _FORMS)]


def _judged(events: Sequence[object], failure: Exception | None) -> Outcome:
    kinds = (TextDelta, ReasoningDelta, CallDelta, UsageReport, Finish)
    known = tuple(event for event in events if isinstance(event, kinds))
    same(len(known), len(events), "events that are ModelEvents")
    finishes = [at for at, event in enumerate(known) if isinstance(event, Finish)]
    if failure is None:
        same(finishes, [len(known) - 1], "the place of the finish, which is told once and last")
    else:
        same(finishes, [], "finishes before a failure")
        if not isinstance(failure, ModelTransient | ModelPermanent):
            raise AssertionError(f"raised {failure!r}, which is no ModelError") from failure
        same(showing_the_key(list(_texts(failure))), [], "texts of the error that show the key")
        if len(str(failure)) > _ERROR_CHARACTERS:
            raise AssertionError(f"an error of {len(str(failure))} characters")
    assert failure is None or isinstance(failure, ModelError)
    return Outcome(known, failure)


def _texts(failure: BaseException) -> Iterator[str]:
    """Yield every text that an error, and what it was raised from, can show."""
    yield "".join(traceback.format_exception(failure))
    seen: set[int] = set()
    chain: list[BaseException | None] = [failure]
    while chain:
        error = chain.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield from (str(error), repr(error), repr(error.args), repr(getattr(error, "__dict__", "")))
        chain += [error.__cause__, error.__context__]
        if isinstance(error, BaseExceptionGroup):
            chain += error.exceptions
