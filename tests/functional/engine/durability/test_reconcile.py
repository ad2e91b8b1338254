"""What a tool finds out about a call that was open when its worker died (RUN-1, R-9)."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Literal, cast

import pytest
from pydantic import JsonValue

from psych_runtime._decisions import Choice, Edit, decide
from psych_runtime._reads import status
from psych_runtime.api import interrupt
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.ports.policy import Ask, Decision, Policy
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.reconciled import Reconciled
from psych_schema.model import BlobPart, TextPart
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    RunSettled,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
)
from tests.functional.engine.durability.crashes import Bench, die
from tests.functional.engine.durability.lookups import (
    LEASE_SECONDS,
    TIMEOUT_SECONDS,
    Office,
    WallClock,
    find_out,
    live_on,
    lose,
    take_over,
)
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    of_type,
    only,
    run_to_end,
    runtime,
    texts_of,
)

IN_MEMORY = pytest.mark.parametrize("kind", ["memory"], indirect=True)
"""Where no store makes a difference."""


def pays(*numbers: int, name: str = "pay") -> list[tuple[str, dict[str, JsonValue]]]:
    """Return calls that pay invoices."""
    return [(name, {"number": number}) for number in numbers]


async def ends_of(store: Store, run: str) -> list[ToolCompleted]:
    """Return how the calls ended, in the order in which they were asked for."""
    order = [one.call_id for one in await of_type(store, run, ToolStarted)]
    ends = {one.call_id: one for one in await of_type(store, run, ToolCompleted)}
    return [ends[call_id] for call_id in order]


def said_by(end: ToolCompleted) -> str:
    """Return a call's text or message."""
    assert end.result is not None
    texts = [part.text for part in end.result.parts if isinstance(part, TextPart)]
    return end.result.message or "".join(texts)


async def test_run_1_each_answer_settles_its_call(store: Store, flaky: Flaky, crew: Crew) -> None:
    """Sync and async; the model is told, and nothing is executed again."""
    answers = {
        1: Reconciled.happened("paid in May"),
        2: Reconciled.not_happened("The account was empty"),
        3: Reconciled.not_happened(),
        4: Reconciled.unknown("The bank is closed."),
        5: Reconciled.unknown(),
        6: Reconciled.happened(17),
    }
    office = Office()

    def sync(call: StartedCall) -> Reconciled:
        office.asked.append(call)
        return answers[int(str(call.arguments["number"]))]

    async def awaits(call: StartedCall) -> Reconciled:
        await asyncio.sleep(0)
        return sync(call)

    tools = (office.tool(sync, name="post"), office.tool(awaits))
    calls = [*pays(*answers, name="post"), *pays(*answers)]
    lost = await lose(store, flaky, crew, office, calls, *tools)
    await find_out(store, crew, lost, *tools, waiting=len(calls))

    assert sorted(office.began) == sorted((name, one["number"]) for name, one in calls)
    every = await ends_of(store, lost.run)
    assert len(every) == len(calls)
    for ends in (every[:6], every[6:]):
        assert [end.source for end in ends] == ["reconciled"] * 6
        assert [(end.outcome, end.failure and end.failure.code) for end in ends] == [
            ("ok", None),
            ("error", "not_happened"),
            ("error", "not_happened"),
            ("unknown", None),
            ("unknown", None),
            ("error", "result_invalid"),
        ]
        paid, empty, without, closed, silent, wrong = map(said_by, ends)
        assert paid == "paid in May"
        stopped = "The worker stopped while this call ran"
        find = "It may or may not have happened. Find out before you repeat it."
        did_not = f"{stopped}, and it did not happen"
        assert empty == f"{did_not}: The account was empty. You may call it again."
        assert without == f"{did_not}. You may call it again."
        assert closed == f"{stopped}: The bank is closed. {find}"
        assert silent == f"{stopped}. {find}"
        assert wrong.endswith("It was executed.")
    told = texts_of(lost.model.requests[-1].messages)
    assert sum("and it did not happen" in one for one in told) == 4
    assert only(await of_type(store, lost.run, RunSettled)).state == "completed"


@IN_MEMORY
async def test_r_9_it_is_told_what_the_call_was(store: Store, flaky: Flaky, crew: Crew) -> None:
    """Scope, ids, key, when it began, and the epoch of whoever asks."""
    office = Office()

    def find(call: StartedCall) -> Reconciled:
        office.asked.append(call)
        return Reconciled.happened("paid")

    paying = office.tool(find)
    lost = await lose(store, flaky, crew, office, pays(1), paying)
    await find_out(store, crew, lost, paying)

    began = only(await of_type(store, lost.run, ToolStarted))
    assert only(office.asked) == StartedCall(
        scope=ACME,
        run_id=lost.run,
        call_id=began.call_id,
        idempotency_key=began.call_id,
        epoch=2,
        arguments={"number": 1},
        started_at=began.at,
    )


async def test_run_1_each_open_call_is_settled_as_its_tool_can(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """One can be looked up, one cannot: that is unknown at once; a finished sibling stays."""
    office, bench = Office(), Bench()
    found = asyncio.Event()

    async def find(call: StartedCall) -> Reconciled:
        await found.wait()
        return Reconciled.happened("paid")

    tools = (bench.quick(), office.tool(find), office.tool(None, name="send"))
    model = (
        FakeModel()
        .turn(tool_calls=[("lookup", {}), *pays(1), *pays(2, name="send")])
        .turn(text="Done.")
    )
    first = await crew.start(runtime(flaky, model, *tools))
    run = await admit(store, agent("lookup", "pay", "send"))

    async def looked_up() -> bool:
        return len(office.began) == 2 and bool(await of_type(store, run, ToolCompleted))

    await eventually(looked_up)
    await die(flaky, store, first)
    clock = WallClock()
    await take_over(crew, runtime(store, model, *tools, system=clock), run)

    async def ended() -> list[tuple[str, str]]:
        return [(one.outcome, one.source) for one in await of_type(store, run, ToolCompleted)]

    async def is_unknown() -> bool:
        return await ended() == [("ok", "executed"), ("unknown", "executed")]

    await eventually(is_unknown)
    clock.pass_by()
    found.set()
    await run_to_end(store, run)

    assert await ended() == [("ok", "executed"), ("unknown", "executed"), ("ok", "reconciled")]
    assert bench.ran == ["lookup"]
    assert office.began == [("pay", 1), ("send", 2)]


@pytest.mark.parametrize("moment", ["waits", "asks"])
async def test_run_1_a_worker_that_dies_finding_out_is_followed_by_another(
    store: Store, flaky: Flaky, crew: Crew, moment: Literal["waits", "asks"]
) -> None:
    """While it waits or while it asks: the call stays open, and has one outcome in the end."""
    office, answer = Office(), asyncio.Event()

    async def find(call: StartedCall) -> Reconciled:
        office.asked.append(call)
        if call.epoch == 2:
            await answer.wait()
        return Reconciled.happened(f"found in epoch {call.epoch}")

    paying = office.tool(find)
    lost = await lose(store, flaky, crew, office, pays(1), paying)
    second, clock = Flaky(store), WallClock()
    made = runtime(second, lost.model, paying, system=clock)
    worker = await take_over(crew, made, lost.run)
    if moment == "asks":
        clock.pass_by()
        await eventually(lambda: office.asked)
    await die(second, store, worker)
    await find_out(store, crew, lost, paying)
    answer.set()
    second.faults.away = False

    assert office.began == [("pay", 1)]
    assert [call.epoch for call in office.asked] == ([2, 3] if moment == "asks" else [3])
    end = only(await of_type(store, lost.run, ToolCompleted))
    assert (end.source, said_by(end)) == ("reconciled", "found in epoch 3")
    assert [one.epoch for one in await of_type(store, lost.run, AttemptStarted)] == [1, 2, 3]


@pytest.mark.parametrize("moment", ["waits", "asks"])
async def test_run_9_a_drain_leaves_the_call_to_the_next_worker(
    store: Store, flaky: Flaky, crew: Crew, moment: Literal["waits", "asks"]
) -> None:
    """Which does not wait for longer than the first one that took the Run had to."""
    office = Office()

    async def find(call: StartedCall) -> Reconciled:
        office.asked.append(call)
        if call.epoch == 2:
            await asyncio.Event().wait()
        return Reconciled.happened("paid")

    paying = office.tool(find)
    lost = await lose(store, flaky, crew, office, pays(1), paying)
    clock = WallClock()
    made = runtime(store, lost.model, paying, system=clock)
    worker = await take_over(crew, made, lost.run, grace_seconds=20.0)
    if moment == "asks":
        clock.pass_by()
        await eventually(lambda: office.asked)
    await crew.stop(worker)
    assert (await store.header(ACME.tenant, lost.run)).state == "ready"
    assert only(await of_type(store, lost.run, AttemptEnded)).reason == "drained"
    assert await of_type(store, lost.run, ToolCompleted) == []

    later = WallClock(ahead_seconds=clock.ahead_seconds + TIMEOUT_SECONDS + LEASE_SECONDS)
    await crew.start(runtime(store, lost.model, paying, system=later))
    await run_to_end(store, lost.run)
    assert only(await of_type(store, lost.run, ToolCompleted)).source == "reconciled"
    assert office.asked[-1].epoch == 3
    assert office.began == [("pay", 1)]


@IN_MEMORY
async def test_run_9_a_worker_that_is_stopped_in_order_looks_nothing_up(
    store: Store, crew: Crew
) -> None:
    """What is not over in its grace time is settled by itself, as of any tool; nobody asks."""
    office, release, asked = Office(), threading.Event(), list[StartedCall]()
    crew.at_end(release.set)

    def find(call: StartedCall) -> Reconciled:
        asked.append(call)
        return _paid(call)

    @tool(name="post", reconcile=find)
    def post(number: int) -> str:
        """Post a letter.

        Args:
            number: Which one.
        """
        office.began.append(("post", number))
        release.wait(30)
        return "posted"

    model = FakeModel().turn(tool_calls=[*pays(1), *pays(2, name="post")]).turn(text="Done.")
    made = runtime(store, model, office.tool(find), post)
    first = await crew.start(made, grace_seconds=0.0)
    run = await admit(store, agent("pay", "post"))
    await eventually(lambda: len(office.began) == 2)
    await crew.stop(first)
    ended = await ends_of(store, run)
    assert [(one.outcome, one.source) for one in ended] == [
        ("aborted", "executed"),
        ("unknown", "executed"),
    ]

    await crew.start(made)
    await run_to_end(store, run)
    assert asked == []
    assert len(office.began) == 2


@pytest.mark.parametrize("stop", ["abort", "deadline"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"], indirect=True)
async def test_run_4_run_7_a_run_that_is_stopped_does_not_wait_for_an_answer(
    store: Store,
    flaky: Flaky,
    crew: Crew,
    clock: ShiftedSystem,
    stop: Literal["abort", "deadline"],
) -> None:
    """Nobody asks any more: the call is unknown, and the Run ends."""
    office = Office()

    def find(call: StartedCall) -> Reconciled:
        office.asked.append(call)
        return Reconciled.happened("paid")

    paying = office.tool(find)
    model = FakeModel().turn(tool_calls=pays(1)).turn(text="never")
    first = await crew.start(runtime(flaky, model, paying))
    run = await admit(store, agent("pay"), deadline_seconds=100.0)
    await eventually(lambda: office.began)
    await die(flaky, store, first)
    await take_over(crew, runtime(store, model, paying), run)
    if stop == "abort":
        await interrupt(store, run, scope=ACME)
    else:
        clock.shift_seconds += 100.0
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert settled.state == ("aborted" if stop == "abort" else "timed_out")
    end = only(await of_type(store, run, ToolCompleted))
    assert (end.outcome, end.source) == ("unknown", "executed")
    assert office.asked == []


@IN_MEMORY
async def test_r_9_nobody_asks_before_what_began_can_have_ended(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Its timeout and a lease, by the clock of whoever asks; not before, and then at once."""
    office, clock, lease_seconds = Office(), WallClock(), 30.0  # a few are over in any case
    asked_at = []

    def find(call: StartedCall) -> Reconciled:
        asked_at.append(clock.now())
        return Reconciled.happened("paid")

    paying = office.tool(find)
    lost = await lose(store, flaky, crew, office, pays(1), paying)
    made = runtime(store, lost.model, paying, system=clock)
    worker = await take_over(crew, made, lost.run, lease_seconds=lease_seconds)
    clock.ahead_seconds = TIMEOUT_SECONDS + 3.0
    await live_on(worker, lease_seconds / 20 + 0.5)
    assert asked_at == []
    clock.ahead_seconds = TIMEOUT_SECONDS + lease_seconds
    await run_to_end(store, lost.run)

    began = only(await of_type(store, lost.run, ToolStarted)).at
    [one] = asked_at
    assert one >= began + timedelta(seconds=TIMEOUT_SECONDS + lease_seconds)


@IN_MEMORY
async def test_r_9_a_call_may_have_begun_until_its_run_was_taken(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """By the record of its start it is over for long: clocks differ, and a store was away."""
    office, clock = Office(), WallClock(ahead_seconds=2 * TIMEOUT_SECONDS)
    asked_at = []

    def find(call: StartedCall) -> Reconciled:
        asked_at.append(clock.now())
        return Reconciled.happened("paid")

    paying = office.tool(find)
    lost = await lose(store, flaky, crew, office, pays(1), paying)
    made = runtime(store, lost.model, paying, system=clock)
    worker = await take_over(crew, made, lost.run)
    await live_on(worker, 1.0)
    assert asked_at == []
    clock.ahead_seconds += TIMEOUT_SECONDS
    await run_to_end(store, lost.run)

    taken = (await of_type(store, lost.run, AttemptStarted))[1].at
    [one] = asked_at
    assert one >= taken + timedelta(seconds=TIMEOUT_SECONDS)


@IN_MEMORY
async def test_run_1_where_nobody_answers_the_call_is_unknown(
    store: Store, flaky: Flaky, crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    """It raises, says something else, or never ends: the log warns, and the model is told."""
    release = threading.Event()
    crew.at_end(release.set)

    async def never(call: StartedCall) -> Reconciled:
        await asyncio.Event().wait()
        return Reconciled.happened()

    def sleeps(call: StartedCall) -> Reconciled:
        release.wait(30)
        return Reconciled.happened()

    def raises(call: StartedCall) -> Reconciled:
        raise LookupError("no such bank")

    def ends(call: StartedCall) -> Reconciled:
        raise SystemExit

    def says_yes(call: StartedCall) -> Reconciled:
        return cast("Reconciled", "yes")

    def gives_an_error(call: StartedCall) -> Reconciled:
        return Reconciled.unknown(cast("str", LookupError("no")))

    bad = (never, sleeps, raises, ends, says_yes, gives_an_error)
    office = Office()
    long = [office.tool(one, name=one.__name__) for one in bad]
    short = [office.tool(one, name=one.__name__, timeout_seconds=0.3) for one in bad]
    calls = [call for one in bad for call in pays(1, name=one.__name__)]
    lost = await lose(store, flaky, crew, office, calls, *long)
    await find_out(store, crew, lost, *short, waiting=len(bad))

    ended = await ends_of(store, lost.run)
    assert [(one.outcome, one.source) for one in ended] == [("unknown", "executed")] * len(bad)
    assert all("Find out before you repeat it." in said_by(one) for one in ended)
    assert len(office.began) == len(bad)
    warned = [one.getMessage() for one in caplog.records if "stays unknown" in one.getMessage()]
    for end, words in zip(
        ended,
        (
            "reconcile of never took longer than 0.3 s",
            "reconcile of sleeps took longer than 0.3 s",
            "reconcile of raises raised LookupError: no such bank",
            "reconcile of ends raised SystemExit",
            "reconcile of says_yes returned a str, no Reconciled",
            "reconcile of gives_an_error raised InvalidArgument: reason: must be text",
        ),
        strict=True,
    ):
        [line] = [one for one in warned if end.call_id in one]
        assert lost.run in line
        assert words in line


class Currency(Enum):
    """A currency."""

    EUR = "EUR"
    USD = "USD"


@dataclass
class Amount:
    """How much."""

    cents: int
    currency: Currency = Currency.EUR


class Asks(Policy):
    """Asks about every call."""

    async def decide_tool(self, *_: object) -> Decision:
        """Ask."""
        return Ask()


@IN_MEMORY
@pytest.mark.parametrize("edited", [False, True])
async def test_r_9_arguments_are_those_that_the_function_was_called_with(
    store: Store, flaky: Flaky, crew: Crew, *, edited: bool
) -> None:
    """Of its types, with its defaults, and as a person has edited them."""
    called: list[tuple[Amount, str, bool]] = []
    asked: list[StartedCall] = []

    def find(call: StartedCall) -> Reconciled:
        asked.append(call)
        return Reconciled.happened("paid")

    @tool(reconcile=find, timeout_seconds=TIMEOUT_SECONDS)
    async def pay(amount: Amount, to: str = "Ann", *, by_night: bool = False) -> str:
        """Pay.

        Args:
            amount: How much.
            to: Whom.
            by_night: When.
        """
        called.append((amount, to, by_night))
        await asyncio.Event().wait()
        return "paid"

    given: dict[str, JsonValue] = {"amount": {"cents": 5}}
    model = FakeModel().turn(tool_calls=[("pay", given)]).turn(text="Done.")
    policy = Asks()
    first = await crew.start(runtime(flaky, model, pay, policy=policy))
    run = await admit(store, agent("pay"))

    async def is_asked() -> bool:
        return bool((await status(store, run, scope=ACME)).pending_approvals)

    await eventually(is_asked)
    [approval] = (await status(store, run, scope=ACME)).pending_approvals
    choice = Edit({"amount": {"cents": 7, "currency": "USD"}, "to": "Bob"})
    decision: Choice = choice if edited else "approve"
    await decide(store, run, scope=ACME, decisions={approval.call_id: decision}, by="eve")
    await eventually(lambda: called)
    await die(flaky, store, first)
    clock = WallClock()
    made = runtime(store, model, pay, policy=policy, system=clock)
    await take_over(crew, made, run)
    clock.pass_by()
    await run_to_end(store, run)

    amount, to, by_night = only(called)
    assert amount == (Amount(7, Currency.USD) if edited else Amount(5))
    assert only(asked).arguments == {"amount": amount, "to": to, "by_night": by_night}
    end = only(await of_type(store, run, ToolCompleted))
    assert (end.outcome, end.source) == ("ok", "reconciled")


@IN_MEMORY
async def test_run_1_a_worker_whose_tool_cannot_be_looked_up_asks_nobody(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """In a rolling deploy the Run was taken by the older build: unknown, at once."""
    office = Office()
    lost = await lose(store, flaky, crew, office, pays(1), office.tool(_paid))
    await crew.start(runtime(store, lost.model, office.tool(None)))
    await run_to_end(store, lost.run)

    end = only(await of_type(store, lost.run, ToolCompleted))
    assert (end.outcome, end.source) == ("unknown", "executed")


@IN_MEMORY
async def test_run_1_a_tool_that_takes_other_arguments_by_now_is_not_asked(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """What the call was given cannot be told in its words: unknown, at once."""
    office, asked = Office(), list[StartedCall]()

    def find(call: StartedCall) -> Reconciled:
        asked.append(call)
        return _paid(call)

    @tool(reconcile=find)
    async def pay(invoice: str) -> str:
        """Pay an invoice.

        Args:
            invoice: Which one.
        """
        return invoice

    lost = await lose(store, flaky, crew, office, pays(1), office.tool(_paid))
    await crew.start(runtime(store, lost.model, pay))
    await run_to_end(store, lost.run)
    end = only(await of_type(store, lost.run, ToolCompleted))
    assert (end.outcome, end.source, asked) == ("unknown", "executed", [])


@IN_MEMORY
async def test_run_1_a_tool_that_takes_more_by_now_is_asked(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Its neighbour: described otherwise, with another parameter that has a default."""
    office, asked = Office(), list[StartedCall]()

    def find(call: StartedCall) -> Reconciled:
        asked.append(call)
        return _paid(call)

    @tool(reconcile=find, timeout_seconds=TIMEOUT_SECONDS)
    async def pay(number: int, note: str = "none") -> str:
        """Pay an invoice, with a note.

        Args:
            number: Which one.
            note: What to write.
        """
        return f"{number} {note}"

    lost = await lose(store, flaky, crew, office, pays(1), office.tool(_paid))
    await find_out(store, crew, lost, pay)
    assert only(asked).arguments == {"number": 1, "note": "none"}
    assert only(await of_type(store, lost.run, ToolCompleted)).source == "reconciled"


@IN_MEMORY
async def test_tool_6_what_happened_may_be_large_or_a_file(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It is kept, shown and bounded as if the call itself had returned it."""
    large, image = "x" * 300_000, b"\x89PNG"
    results: dict[object, object] = {
        1: large,
        2: Attachment(image, "image/png", name="receipt.png"),
        3: "y" * 20_000_000,
    }
    office, blob, clock = Office(), MemoryBlobStore(), WallClock()

    def find(call: StartedCall) -> Reconciled:
        return Reconciled.happened(results[call.arguments["number"]])

    @tool(reconcile=find, timeout_seconds=TIMEOUT_SECONDS)
    async def read(number: int) -> str | Attachment:
        """Read a receipt.

        Args:
            number: Which one.
        """
        office.began.append(("read", number))
        await asyncio.Event().wait()
        return ""

    lost = await lose(store, flaky, crew, office, pays(1, 2, 3, name="read"), read)
    made = runtime(store, lost.model, read, blob=blob, system=clock)
    await take_over(crew, made, lost.run, waiting=3)
    clock.pass_by()
    await run_to_end(store, lost.run)

    kept, file, refused = await ends_of(store, lost.run)
    assert [one.source for one in (kept, file, refused)] == ["reconciled"] * 3
    assert kept.elided is not None
    assert file.result is not None
    [part] = file.result.parts
    assert isinstance(part, BlobPart)
    assert (part.name, part.blob.media_type) == ("receipt.png", "image/png")
    for ref, data in ((kept.elided.blob, large.encode()), (part.blob, image)):
        assert await blob.read(ACME.tenant, lost.run, ref.hash) == data
    assert refused.failure is not None
    assert refused.failure.code == "result_too_large"
    assert said_by(refused).endswith("It was executed.")


@IN_MEMORY
async def test_tool_5_calls_that_did_not_happen_do_not_withhold_their_tool(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """As many of them as failures would: the tool was not executed, and may be called again."""
    office = Office()
    lost_tool = office.tool(lambda _: Reconciled.not_happened())
    model = FakeModel().turn(tool_calls=pays(1, 2, 3)).turn(tool_calls=pays(4)).turn(text="Done.")
    first = await crew.start(runtime(flaky, model, lost_tool))
    run = await admit(store, agent("pay", failure_streak=3))
    await eventually(lambda: len(office.began) == 3)
    await die(flaky, store, first)

    @tool(reconcile=lambda _: Reconciled.not_happened(), timeout_seconds=TIMEOUT_SECONDS)
    async def pay(number: int) -> str:
        """Pay an invoice.

        Args:
            number: Which one.
        """
        return f"paid {number}"

    clock = WallClock()
    await take_over(crew, runtime(store, model, pay, system=clock), run, waiting=3)
    clock.pass_by()
    await run_to_end(store, run)

    assert await of_type(store, run, ToolRefused) == []
    assert said_by((await ends_of(store, run))[-1]) == "paid 4"


def _paid(_: StartedCall) -> Reconciled:
    return Reconciled.happened("paid")
