"""A Run does not try in vain for ever, and the model is told in time (TOOL-5, R-25)."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from pydantic import JsonValue

from psych_runtime._decisions import Choice, decide
from psych_runtime._reads import status
from psych_runtime.api import publish
from psych_runtime.core.codec import sha256
from psych_runtime.ports.policy import Allow, Ask, Decision, Deny, Policy, ToolFacts
from psych_runtime.ports.store import Store
from psych_runtime.testing import LogBuilder
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.common import Scope
from psych_schema.model import ModelRequest, ToolMessage, UserMessage
from psych_schema.record import (
    AdvisoryAdded,
    ToolCompleted,
    ToolRefused,
    ToolsOffered,
    ToolStarted,
)
from psych_schema.spec import BuiltinTool, Skill
from tests.functional.engine.behaviour.talk import Tool, answers, knows, talk, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    only,
    runtime,
    send,
    texts_of,
)

WITHHELD = (
    "work was not executed: it failed 3 times in a row and is withheld until the run ends. "
    "Calling it again will not help, and the run fails if you keep on. Use another tool, or "
    "answer with what you have and say what could not be done."
)
ADVISORY = (
    "Note of the runtime, not of the user. work: it failed 3 times in a row and is withheld "
    "until the run ends. Do not call it again: it would be refused. Use another tool, or answer "
    "with what you have and say what could not be done."
)
REPEATED = (
    "work was not executed: 3 calls in a row with these arguments brought the same result, which "
    "you have. Repeating it will not help, and the run fails if you keep on. Use that result, "
    "change the arguments, or do something else first."
)
TOO_MANY = (
    "This call was not executed: only the first 2 calls of an answer are. You may ask again: put "
    "it among the first 2 calls of another answer."
)


class Bench:
    """A tool that does what its script says, and remembers its calls."""

    def __init__(self, *script: str) -> None:
        self.script = list(script)
        self.calls: list[int] = []

    def do(self, n: int) -> str:
        """Fail, or return a text, as the script says; at its end go on with the last word."""
        self.calls.append(n)
        word = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if word == "fail":
            raise ValueError(f"no {n}")
        return word

    def tool(self, *, name: str = "work", concurrent: bool = True) -> Tool:
        """Return it as a tool."""

        @tool(name=name, concurrent=concurrent)
        async def work(n: int) -> str:
            """Work.

            Args:
                n: Which.
            """
            return self.do(n)

        return work


def asking(*turns: Sequence[int] | int, name: str = "work") -> FakeModel:
    """Return a model that asks for these calls, turn by turn, and then says that it is done."""
    model = FakeModel()
    for turn in turns:
        numbers = [turn] if isinstance(turn, int) else turn
        model.turn(tool_calls=[(name, {"n": n}) for n in numbers])
    return model.turn(text="Done.")


def extends(requests: Sequence[ModelRequest]) -> None:
    """Check that each prompt begins as the one before it, tools and all (MOD-8)."""
    for before, after in pairwise(requests):
        assert (after.system, after.tools) == (before.system, before.tools)
        assert after.messages[: len(before.messages)] == before.messages


def advisories(request: ModelRequest) -> list[str]:
    """Return what the runtime has told the model."""
    mine = [m for m in request.messages[1:] if isinstance(m, UserMessage)]
    return texts_of(mine)


async def test_tool_5_three_failures_withhold_a_tool_and_the_model_is_told(
    store: Store, crew: Crew
) -> None:
    """At once, before it calls again; a call of it is refused; the Run goes on."""
    bench, model = Bench("fail"), asking(1, 2, 3, 4)
    found = await talk(store, crew, model, bench.tool())
    assert found.end == ("completed", None)
    assert bench.calls == [1, 2, 3]
    assert found.refusals == [("guard", WITHHELD)]
    assert [advisories(request) for request in model.requests] == [
        *([[]] * 3),
        [ADVISORY],
        [ADVISORY],
    ]
    assert texts_of(model.requests[3].messages)[-1] == ADVISORY
    assert answers(model.requests[4].messages)[-1][1] == WITHHELD


async def test_r_25_a_withheld_tool_stays_defined_and_the_prompt_as_it_was(
    store: Store, crew: Crew
) -> None:
    """That it is withheld stands in one more record of the same offer, behind the advisory."""
    bench, model = Bench("fail"), asking(1, 2, 3, 4, 5)
    found = await talk(store, crew, model, bench.tool())
    extends(model.requests)
    assert [one.name for one in model.requests[-1].tools] == ["work"]
    first, second = found.every(ToolsOffered)
    assert (second.hash, second.tools) == (first.hash, first.tools)
    assert first.unavailable == ()
    [withheld] = second.unavailable
    assert (withheld.identity, withheld.code) == ("code:work", "withheld")
    advisory = only(found.every(AdvisoryAdded))
    assert advisory.code == "withheld"
    assert second.seq == advisory.seq + 1


async def test_tool_5_other_tools_go_on(store: Store, crew: Crew) -> None:
    """Only what failed is withheld, whatever succeeded in between."""
    bad, good = Bench("fail"), Bench("fine")
    model = FakeModel()
    for n in range(5):
        model.turn(tool_calls=[("bad", {"n": n}), ("good", {"n": n})])
    model.turn(text="Done.")
    found = await talk(store, crew, model, bad.tool(name="bad"), good.tool(name="good"))
    assert found.end == ("completed", None)
    assert (bad.calls, good.calls) == ([0, 1, 2], [0, 1, 2, 3, 4])
    assert [code for code, _ in found.refusals] == ["guard", "guard"]


async def test_tool_5_a_success_ends_the_row(store: Store, crew: Crew) -> None:
    """Two failures, a success, two failures: nothing is withheld."""
    bench = Bench("fail", "fail", "fine", "fail", "fail", "fine")
    found = await talk(store, crew, asking(1, 2, 3, 4, 5, 6), bench.tool())
    assert found.end == ("completed", None)
    assert bench.calls == [1, 2, 3, 4, 5, 6]
    assert found.every(AdvisoryAdded) == []


async def test_tool_5_a_model_that_insists_ends_the_run(store: Store, crew: Crew) -> None:
    """Three failures, then three turns that call it all the same."""
    bench, model = Bench("fail"), asking(1, 2, 3, 4, 5, 6, 7)
    found = await talk(store, crew, model, bench.tool())
    assert found.end == ("failed", "failure_streak")
    assert bench.calls == [1, 2, 3]
    assert len(found.refusals) == 3
    assert len(model.requests) == 6


async def test_tool_5_what_failed_side_by_side_is_told_before_it_ends_the_run(
    store: Store, crew: Crew
) -> None:
    """The model asked for all of them before it could know; the same in the turn behind."""
    bench, model = Bench("fail"), asking(range(8), range(10, 18))
    found = await talk(store, crew, model, bench.tool())
    assert found.end == ("completed", None)
    assert bench.calls == list(range(8))
    assert len(found.refusals) == 8
    words = "it failed 8 times in a row and is withheld"
    assert words in advisories(model.requests[1])[0]


async def test_tool_5_of_calls_that_run_one_by_one_none_runs_behind_the_third_failure(
    store: Store, crew: Crew
) -> None:
    """Each begins when what came of the last is known; the rest of the turn does not insist."""
    bench, model = Bench("fail"), asking(range(8))
    found = await talk(store, crew, model, bench.tool(concurrent=False))
    assert found.end == ("completed", None)
    assert bench.calls == [0, 1, 2]
    assert found.refusals == [("guard", WITHHELD)] * 5


@pytest.mark.parametrize(
    ("limits", "calls", "end"),
    [
        ({"failure_streak": 10, "failure_streak_stop": 2}, [1, 2], ("failed", "failure_streak")),
        ({"failure_streak": 2, "failure_streak_stop": 2}, [1, 2], ("failed", "failure_streak")),
        ({"failure_streak": 1}, [1], ("completed", None)),
        ({"failure_streak": 10, "failure_streak_stop": 10}, [1, 2, 3, 4], ("completed", None)),
    ],
)
async def test_tool_5_the_spec_says_how_many(
    store: Store,
    crew: Crew,
    limits: dict[str, Any],
    calls: list[int],
    end: tuple[str, str | None],
) -> None:
    """Where the stop is no higher than the streak, failures alone end the Run."""
    bench = Bench("fail")
    spec = agent("work", **limits)
    found = await talk(store, crew, asking(1, 2, 3, 4), bench.tool(), spec=spec)
    assert bench.calls == calls
    assert found.end == end


async def test_tool_5_a_timeout_is_a_failure(store: Store, crew: Crew) -> None:
    """It counts beside errors."""

    @tool(name="work", timeout_seconds=0.01)
    async def work(n: int) -> str:
        """Work for ever.

        Args:
            n: Which.
        """
        await asyncio.Event().wait()
        return "never"

    found = await talk(store, crew, asking(1, 2, 3, 4), work)
    assert [outcome for outcome, _, _ in found.calls] == ["timed_out"] * 3
    assert [code for code, _ in found.refusals] == ["guard"]


class OnlyHigh(Policy):
    """Denies what is below a number, asks about what is above another one."""

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Look at `n`."""
        n = arguments["n"]
        assert isinstance(n, int)
        if n < self.low:
            return Deny("too low")
        return Ask() if n > self.high else Allow()


async def test_tool_5_denials_and_malformed_calls_are_no_failures(store: Store, crew: Crew) -> None:
    """Five of each, between two failures; the tool is called all the same."""
    bench = Bench("fail", "fail", "fine")
    model = FakeModel()
    for n in (10, *[1] * 5, 11):
        model.turn(tool_calls=[("work", {"n": n})])
    for _ in range(5):
        model.raw_call("work", "{")
    model.turn(tool_calls=[("work", {"n": 12})]).turn(text="Done.")
    found = await talk(store, crew, model, bench.tool(), policy=OnlyHigh(10, 99))
    assert found.end == ("completed", None)
    assert bench.calls == [10, 11, 12]
    assert [code for code, _ in found.refusals] == ["denied"] * 5 + ["malformed"] * 5


async def test_tool_5_an_approved_call_of_a_withheld_tool_is_refused(
    store: Store, crew: Crew
) -> None:
    """It failed while somebody thought about it."""
    bench, model = Bench("fail"), asking([1, 2, 3, 100])
    await crew.start(runtime(store, model, bench.tool(), policy=OnlyHigh(0, 99)))
    run_id = await admit(store, agent("work"))

    async def waits() -> bool:
        return (await status(store, run_id, scope=ACME)).state == "suspended"

    await eventually(waits)
    [one] = (await status(store, run_id, scope=ACME)).pending_approvals
    await decide(store, run_id, scope=ACME, decisions={one.call_id: "approve"}, by="ann")
    found = await told(store, run_id)
    assert found.end == ("completed", None)
    assert sorted(bench.calls) == [1, 2, 3]
    assert found.refusals == [("guard", WITHHELD)]


async def test_tool_5_the_runtimes_own_tools_are_guarded_alike(store: Store, crew: Crew) -> None:
    """No kind has a side door (TOOL-2)."""
    model = FakeModel()
    for n in range(4):
        model.turn(tool_calls=[("load_skill", {"name": f"skill{n}"})])
    model.turn(text="Done.")
    skills = (Skill(name="billing", description="For invoices.", text="Be polite."),)
    update = {"tools": (BuiltinTool(name="load_skill"),), "skills": skills}
    spec = agent().model_copy(update=update)
    found = await talk(store, crew, model, spec=spec)
    assert [outcome for outcome, _, _ in found.calls] == ["error"] * 3
    assert [code for code, _ in found.refusals] == ["guard"]


# repeats


async def test_tool_5_the_same_call_with_the_same_result_is_refused(
    store: Store, crew: Crew
) -> None:
    """The fourth time; with other arguments the tool goes on, and the first call may come again."""
    bench, model = Bench("nothing"), asking(1, 1, 1, 1, 2, 1)
    found = await talk(store, crew, model, bench.tool())
    assert found.end == ("completed", None)
    assert bench.calls == [1, 1, 1, 2, 1]
    assert found.refusals == [("guard", REPEATED)]
    assert answers(model.requests[4].messages)[-1][1] == REPEATED
    extends(model.requests)
    assert len(found.every(ToolsOffered)) == 1


async def test_tool_5_who_goes_on_repeating_ends_the_run(store: Store, crew: Crew) -> None:
    """Three results, then three turns that ask for the same; some at once."""
    bench, model = Bench("nothing"), asking(1, 1, 1, [1, 1, 1], 1, 1, 1)
    found = await talk(store, crew, model, bench.tool())
    assert found.end == ("failed", "repeat_calls")
    assert bench.calls == [1, 1, 1]
    assert found.refusals == [("guard", REPEATED)] * 5
    assert len(model.requests) == 6


async def test_tool_5_equal_failures_are_repeats_and_failures(store: Store, crew: Crew) -> None:
    """The streak is what the model is told of, and what ends the Run."""
    bench = Bench("fail")
    found = await talk(store, crew, asking(1, 1, 1, 1, 1, 1, 1), bench.tool())
    assert found.end == ("failed", "failure_streak")
    assert bench.calls == [1, 1, 1]
    assert found.refusals == [("guard", WITHHELD)] * 3


async def test_tool_5_who_polls_is_never_stopped(store: Store, crew: Crew) -> None:
    """The same call, another result each time."""
    bench = Bench(*[f"{n} %" for n in range(12)])
    found = await talk(store, crew, asking(*[1] * 12), bench.tool())
    assert found.end == ("completed", None)
    assert bench.calls == [1] * 12


async def test_tool_5_same_calls_side_by_side_are_told_before_they_end_the_run(
    store: Store, crew: Crew
) -> None:
    """Eight at once bring the same; the next one is refused, and that is all."""
    bench = Bench("nothing")
    found = await talk(store, crew, asking([1] * 8, 1), bench.tool())
    assert found.end == ("completed", None)
    assert len(bench.calls) == 8
    assert len(found.refusals) == 1


async def test_tool_5_a_check_behind_each_change_is_no_repeat(store: Store, crew: Crew) -> None:
    """What another tool did may be why the result is another one now."""
    change, check = Bench("changed"), Bench("still red")
    model = FakeModel()
    for n in range(6):
        model.turn(tool_calls=[("change", {"n": n})]).turn(tool_calls=[("check", {"n": 0})])
    model.turn(text="Done.")
    found = await talk(store, crew, model, change.tool(name="change"), check.tool(name="check"))
    assert found.end == ("completed", None)
    assert (len(change.calls), len(check.calls)) == (6, 6)


async def test_tool_5_a_circle_of_two_calls_is_stopped(store: Store, crew: Crew) -> None:
    """Neither brings the other anything new."""
    one, two = Bench("a"), Bench("b")
    model = FakeModel()
    for _ in range(10):
        model.turn(tool_calls=[("one", {"n": 0})]).turn(tool_calls=[("two", {"n": 0})])
    model.turn(text="Done.")
    found = await talk(store, crew, model, one.tool(name="one"), two.tool(name="two"))
    assert found.end == ("failed", "repeat_calls")
    assert len(one.calls) <= 4
    assert len(two.calls) == 3


async def test_tool_5_a_message_lets_a_call_be_tried_again(store: Store, crew: Crew) -> None:
    """Somebody says that it is worth it."""
    release, bench = asyncio.Event(), Bench("nothing")

    @tool(name="work")
    async def work(n: int) -> str:
        """Work; the third time hold on.

        Args:
            n: Which.
        """
        if len(bench.calls) == 2:
            await release.wait()
        return bench.do(n)

    model = asking(1, 1, 1, 1)
    worker = await crew.start(runtime(store, model, work))
    run_id = await admit(store, agent("work"))
    await eventually(lambda: len(model.requests) == 3)
    sent = await send(store, run_id, "steer", "Try it once more.")
    await knows(worker, run_id, sent.seq)
    release.set()
    found = await told(store, run_id)
    assert bench.calls == [1, 1, 1, 1]
    assert found.refusals == []


async def test_tool_5_a_person_may_consent_to_a_repeat(store: Store, crew: Crew) -> None:
    """Two equal calls wait for consent, which was given after the first brought nothing new."""
    bench, model = Bench("nothing"), asking([100, 100])
    await crew.start(runtime(store, model, bench.tool(), policy=OnlyHigh(0, 99)))
    run_id = await admit(store, agent("work", repeat_calls=1))

    async def waits() -> bool:
        return (await status(store, run_id, scope=ACME)).state == "suspended"

    def ran(count: int) -> bool:
        return len(bench.calls) == count

    for left in (2, 1):
        await eventually(waits)
        found = (await status(store, run_id, scope=ACME)).pending_approvals
        assert len(found) == left
        decisions: dict[str, Choice] = {found[0].call_id: "approve"}
        await decide(store, run_id, scope=ACME, decisions=decisions, by="ann")
        await eventually(partial(ran, 3 - left))
    assert (await told(store, run_id)).end == ("completed", None)
    assert bench.calls == [100, 100]


async def test_r_25_a_call_beyond_the_limit_of_a_turn_is_told_what_to_do(
    store: Store, crew: Crew
) -> None:
    """What happened, whether it may be tried again, and how."""
    bench = Bench("a", "b", "c")
    spec = agent("work", max_tool_calls_per_turn=2)
    found = await talk(store, crew, asking([1, 2, 3]), bench.tool(), spec=spec)
    assert found.refusals == [("limit", TOO_MANY)]


# another worker


class Shared:
    """A tool that fails, and holds one of its calls in the first worker."""

    def __init__(self, hold: int) -> None:
        self.calls: list[int] = []
        self.hold = hold
        self.dead = False

    def tool(self) -> Tool:
        """Return it, safe to repeat."""

        @tool(name="work", safe_to_retry=True)
        async def work(n: int) -> str:
            """Fail.

            Args:
                n: Which.
            """
            self.calls.append(n)
            if n == self.hold and not self.dead:
                await asyncio.Event().wait()
            raise ValueError(f"no {n}")

        return work


@pytest.mark.parametrize("hold", [1, 2, 3])
async def test_tool_5_a_streak_goes_on_in_another_worker(
    store: Store, flaky: Flaky, crew: Crew, hold: int
) -> None:
    """Whenever the first one died: three failures, three turns that insist, told once."""
    shared, model = Shared(hold), asking(1, 2, 3, 4, 5, 6, 7)
    first = await crew.start(runtime(flaky, model, shared.tool()))
    run_id = await admit(store, agent("work"))
    await eventually(lambda: shared.calls[-1:] == [hold])

    async def stored() -> bool:
        return len(await of_type(store, run_id, ToolStarted)) == hold

    await eventually(stored)
    await die(flaky, store, first)
    shared.dead = True
    await crew.start(runtime(store, model, shared.tool()))
    found = await told(store, run_id)
    assert found.end == ("failed", "failure_streak")
    assert shared.calls == sorted([1, 2, 3, hold])
    assert [one.outcome for one in found.every(ToolCompleted)] == ["error"] * 3
    assert [(one.code, one.message) for one in found.every(ToolRefused)] == [
        ("guard", WITHHELD)
    ] * 3
    assert len(found.every(AdvisoryAdded)) == 1
    assert len(found.every(ToolsOffered)) == 2


async def test_tool_5_a_call_that_had_begun_ends_although_its_tool_is_withheld(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Three of its turn failed; the fourth was running when its worker died."""
    shared, model = Shared(4), asking([1, 2, 3, 4])
    first = await crew.start(runtime(flaky, model, shared.tool()))
    run_id = await admit(store, agent("work"))

    async def stored() -> bool:
        return len(await of_type(store, run_id, ToolCompleted)) == 3

    await eventually(stored)
    await die(flaky, store, first)
    shared.dead = True
    await crew.start(runtime(store, model, shared.tool()))
    found = await told(store, run_id)
    assert shared.calls == [1, 2, 3, 4, 4]
    assert found.refusals == []
    assert [one.outcome for one in found.every(ToolCompleted)] == ["error"] * 4


@pytest.mark.parametrize("told_already", [False, True])
async def test_r_25_a_taker_tells_what_was_not_told(
    store: Store, crew: Crew, told_already: bool
) -> None:
    """The worker before died between the third failure, the advisory and the offer."""
    spec = agent("work")
    log = LogBuilder()
    version = await publish(store, spec, scope=ACME)
    log.admit({"message": "Go."}, version=version.hash)
    log.claim()
    log.offer("work")
    for n in range(3):
        [call] = log.turn(["work"])
        log.start(call, digest=sha256(f"{n}"))
        log.finish(call, f"no {n}", outcome="error")
    if told_already:
        advisory = log.system.new_id("adv")
        log.write(AdvisoryAdded, advisory_id=advisory, code="withheld", message="told")
    log.end()
    await log.commit_to(store)
    model = FakeModel().turn(text="1").turn(text="2").turn(text="3").turn(text="I give up.")
    await crew.start(runtime(store, model, Bench("fine").tool()))
    found = await told(store, log.run_id)
    assert found.end == ("completed", None)
    advisory_text = "told" if told_already else ADVISORY
    assert advisories(only(model.requests)) == [advisory_text]
    [withheld] = found.every(ToolsOffered)[-1].unavailable
    assert withheld.code == "withheld"
    assert not any(isinstance(one, ToolMessage) for one in model.requests[0].messages[-1:])
