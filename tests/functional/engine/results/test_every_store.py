"""Large results on every store: read after a takeover and in the next Run (TOOL-6, LOG-5)."""

import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, NamedTuple

import pytest
from pydantic import JsonValue

from psych_runtime.api import Version, dispatch, publish
from psych_runtime.core.preview import text_of
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import ScriptedCall
from psych_schema.model import JsonPart, ModelRequest, ToolMessage
from psych_schema.record import ToolCompleted
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, eventually, of_type
from tests.functional.engine.results.desk import (
    Reader,
    content_of,
    desk,
    http_get,
    last_answers,
    made,
    names_in,
    reading,
    searching,
)
from tests.functional.tools.http_service import answer, service
from tests.stores.kinds import EVERY_STORE

SHOWN: Final = 4096


@pytest.fixture(params=EVERY_STORE)
def kind(request: pytest.FixtureRequest) -> str:
    """Every store."""
    name: str = request.param
    return name


def _lines(count: int) -> str:
    return "".join(f"{n:07d} é😀 is the line of that number, to its end €\n" for n in range(count))


def _orders(count: int) -> JsonValue:
    return {"orders": [{"number": n, "of": "Zoë 😀\x00" * 40} for n in range(count)]}


class Large(NamedTuple):
    """A large result: all of it, a line in it, and a pattern for that line."""

    whole: bytes
    line: str
    pattern: str


TEXT: Final = _lines(90_000)
ORDERS: Final = _orders(8_000)
TEXT_THERE: Final = _lines(64_000)
ORDERS_THERE: Final = _orders(6_000)
LINE: Final = "{} é😀 is the line of that number, to its end €"
LARGE: Final = [
    Large(TEXT.encode(), LINE.format("0012345"), "^001234[5] .* €$"),
    Large(text_of([JsonPart(value=ORDERS)]).encode(), '"number": 2345,', '^"number": 2345'),
    Large(TEXT_THERE.encode(), LINE.format("0063999"), "0063999"),
    Large(text_of([JsonPart(value=ORDERS_THERE)]).encode(), '"number": 5999,', "5999,$"),
]
"""Of a function and of a service, text and JSON; in the order in which `CALLS` asks for them."""

CALLS: Final[Sequence[ScriptedCall]] = [
    ("lines", {}),
    ("orders", {}),
    ("lines_there", {}),
    ("orders_there", {}),
]


def lines() -> str:
    """Return text."""
    return TEXT


async def orders() -> JsonValue:
    """Return JSON."""
    return ORDERS


@pytest.fixture
async def version(store: Store) -> AsyncIterator[Version]:
    """An agent with four tools that bring much, and the service that two of them ask."""
    text = answer(200, TEXT_THERE.encode(), content_type="text/plain; charset=utf-8")
    values = answer(
        200,
        json.dumps(ORDERS_THERE, ensure_ascii=False).encode(),
        content_type="application/json",
    )
    async with service(text) as one, service(values) as other:
        there = http_get("lines_there", one.url), http_get("orders_there", other.url)
        yield await publish(store, desk("lines", "orders", *there, shown_bytes=SHOWN), scope=ACME)


def reads(request: ModelRequest) -> Sequence[ScriptedCall]:
    """Read three ranges of each, and look for its line."""
    asked: list[ScriptedCall] = []
    for name, large in zip(names_in(request), LARGE, strict=True):
        asked += [reading(name, start, SHOWN) for start in _starts(large)]
        asked.append(searching(name, large.pattern, _before_the_line(large)))
    return asked


def _before_the_line(large: Large) -> int:
    return large.whole.index(large.line.encode()) - 100_000


def _starts(large: Large) -> tuple[int, int, int]:
    return 0, large.whole.index(b"\n", len(large.whole) // 2) + 1, len(large.whole) - SHOWN // 2


def check_answers(found: list[str]) -> None:
    """See that the ranges are those of the whole, and that the line is found where it stands."""
    assert len(found) == 4 * len(LARGE)
    for place, large in enumerate(LARGE):
        *ranges, lines_found = found[place * 4 : place * 4 + 4]
        for start, text in zip(_starts(large), ranges, strict=True):
            read = content_of(text).encode()
            assert len(read) > SHOWN // 2 - 8
            assert large.whole.find(read, start, start + SHOWN + 4) in range(start, start + 4)
        head, hit = lines_found.split("\n")
        assert head.startswith(f"[1 line matches in bytes {_before_the_line(large)} to ")
        at, _, line = hit.partition(": ")
        assert line == large.line
        assert large.whole[int(at) :].startswith(line.encode())


async def test_tool_6_megabytes_are_read_after_a_takeover_and_in_the_next_run(
    store: Store,
    flaky: Flaky,
    crew: Crew,
    blob: BlobStore,
    place: Callable[[], BlobStore],
    version: Version,
) -> None:
    """5 MB of text and of JSON, of a function and of a service: the model sees what it may."""
    dying = Reader(CALLS, "never said")
    dying.stalls_at = 1
    first = await crew.start(made(flaky, dying, lines, orders, blob=blob))
    run = await admit(store, version)
    await eventually(lambda: len(dying.requests) == 2)
    [*_, asked] = dying.requests
    for text, large in zip(last_answers(asked), LARGE, strict=True):
        assert SHOWN < len(text.encode()) < SHOWN + 250
        assert text.encode().startswith(large.whole[: SHOWN * 2 // 3 - 4])
        assert text.encode().endswith(large.whole[-SHOWN // 3 + 4 :])

    async def stored() -> bool:
        return len(await of_type(store, run, ToolCompleted)) == len(CALLS)

    await eventually(stored)
    await die(flaky, store, first)

    model = Reader(CALLS, reads, "Done.", reads, "Again.")
    async with place() as same:
        await crew.start(made(store, model, lines, orders, blob=same))
        found = await told(store, run)
        assert found.answer == "Done."
        assert model.requests[0].messages == asked.messages
        assert model.requests[0].tools == asked.tools
        check_answers(last_answers(model.requests[1]))

        going_on = {"message": "Once more."}
        second = await dispatch(store, version, scope=ACME, input=going_on, continues=run)
        assert (await told(store, second.run_id)).answer == "Again."
        check_answers(last_answers(model.requests[3]))
    rows = await store.read(ACME.tenant, run)
    assert max(len((row.content or "").encode()) for row in rows) < 20_000


FILLER: Final = "é" * 200_000
ODD: Final[Sequence[object]] = [
    "a\x00b",
    "\x00",
    "😀",
    "a\ud800b",
    2**63,
    -(2**63) - 1,
    10**307,
    10**400,
    1e308,
    float("inf"),
    math.nan,
    Decimal("1e400"),
    Decimal("NaN"),
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    b"\x00\xff",
    {1, 2},
    {"k\udfff": 1},
    {1: "a"},
    -0.0,
    "\u2028\ufeff",
]


async def odd(place: int, large: bool) -> object:
    """Return something odd.

    Args:
        place: Which.
        large: Whether much stands beside it.
    """
    return {"value": ODD[place], "z": FILLER if large else ""}


async def test_log_5_odd_values_in_a_large_result_are_as_in_a_small_one(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Kept losslessly or refused, with the same words, in the log and in the blob store."""
    asked: list[ScriptedCall] = [
        ("odd", {"place": place, "large": large})
        for place in range(len(ODD))
        for large in (False, True)
    ]

    def reads_all(request: ModelRequest) -> Sequence[ScriptedCall]:
        return [reading(name, size=400) for name in names_in(request)]

    model = Reader(asked, reads_all, "Done.")
    await crew.start(made(store, model, odd, blob=blob))
    found = await told(store, await admit(store, desk("odd", failure_streak=100)))
    assert found.answer == "Done."
    ended = {one.call_id: one for one in found.every(ToolCompleted)}
    messages = model.requests[1].messages
    results = [ended[one.call_id] for one in messages if isinstance(one, ToolMessage)]
    texts = iter(last_answers(model.requests[2]))
    for small, large in zip(results[::2], results[1::2], strict=True):
        assert (large.outcome, large.failure) == (small.outcome, small.failure)
        assert small.result is not None
        assert large.result is not None
        assert large.result.message == small.result.message
        if small.outcome == "ok":
            assert large.elided is not None
            kept = text_of(small.result.parts).removesuffix('""\n}')
            assert content_of(next(texts)).startswith(kept)
    assert {one.outcome for one in results} == {"ok", "error"}
