"""session(approve=...): who decides while a program waits for its answer (APP-1, DOC-1)."""

import asyncio
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from psych_runtime import (
    AgentSpec,
    Ask,
    BuiltinTool,
    CodeTool,
    Edit,
    HttpTool,
    InvalidArgument,
    ModelRef,
    Policy,
    Scope,
    ToolFacts,
    WaitTimeout,
    decide,
    list_runs,
    session,
    status,
    wait,
)
from psych_runtime._consent import Approver
from psych_runtime._decisions import Choice
from psych_runtime.testing import FakeModel
from psych_schema.view import PendingApproval

PAID: list[tuple[str, int]] = []
SPEC = AgentSpec(
    name="desk",
    instructions="Pay.",
    model=ModelRef(model="scripted"),
    tools=[CodeTool(name="pay")],
)
LOOK_UP = HttpTool(
    name="look_up",
    description="Look up the weather.",
    method="GET",
    url="https://weather.example/{city}",
    input_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
PROGRAM = """
import asyncio
from psych_runtime import AgentSpec, CodeTool, ModelRef, session
from psych_runtime.testing import FakeModel

async def pay(to: str, cents: int) -> str:
    '''Pay.

    Args:
        to: Whom.
        cents: How much.
    '''
    return f"paid {cents} to {to}"

async def main():
    model = FakeModel().turn(tool_calls=[("pay", {"to": "bob\\u001b[2J", "cents": 300})])
    model.turn(text="Done.")
    spec = AgentSpec(name="desk", instructions="Pay.", model=ModelRef(model="m"),
                     tools=[CodeTool(name="pay")])
    async with session(model, tools=[pay], approve="terminal") as s:
        view = await s.ask(spec, "Pay bob.")
        print("STATUS", view.status, flush=True)
        for message in model.requests[-1].messages:
            for part in message.parts:
                print("SAID", getattr(part, "text", ""), flush=True)

asyncio.run(main())
"""


class AskAlways(Policy):
    """Asks about every call."""

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Ask:
        return Ask()


async def pay(to: str, cents: int) -> str:
    """Pay.

    Args:
        to: Whom.
        cents: How much.
    """
    PAID.append((to, cents))
    return "paid"


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    """Each test begins with an empty till."""
    PAID.clear()


def payments(*names: str) -> FakeModel:
    """Return a model that pays each, in one turn."""
    given: list[dict[str, JsonValue]] = [{"to": name, "cents": 3} for name in names]
    model = FakeModel().turn(tool_calls=[("pay", one) for one in given])
    return model.turn(text="Done.")


async def later(pending: PendingApproval) -> str:
    """Approve, after a look elsewhere."""
    return "approve"


@pytest.mark.parametrize(
    ("approve", "paid"),
    [
        (lambda _: "approve", [("ann", 3), ("bob", 3)]),
        (lambda _: "deny", []),
        (lambda one: Edit({**one.arguments, "cents": 1}), [("ann", 1), ("bob", 1)]),
        (lambda one: "deny" if one.arguments["to"] == "ann" else "approve", [("bob", 3)]),
        (later, [("ann", 3), ("bob", 3)]),
    ],
)
async def test_app_1_a_function_decides_in_place(
    approve: Approver, paid: list[tuple[str, int]]
) -> None:
    """The answer comes back as if nobody had been asked."""
    async with session(payments("ann", "bob"), tools=[pay], approve=approve) as s:
        view = await s.ask(SPEC, "Pay.")
    assert view.status == "done"
    assert sorted(PAID) == paid


async def test_app_1_what_a_function_leaves_waits() -> None:
    """The answer says for what, and how to go on."""
    decides: Approver = lambda one: None  # noqa: E731
    async with session(payments("ann"), tools=[pay], approve=decides) as s:
        view = await s.ask(SPEC, "Pay.")
        assert view.status == "waiting"
        assert view.hint is not None
        assert "decide(" in view.hint
        assert len(view.pending_approvals) == 1
    assert PAID == []


async def test_app_1_without_anybody_to_ask_the_answer_says_so() -> None:
    """The first program of a newcomer ends with the line that goes on."""
    async with session(payments("ann"), tools=[pay]) as s:
        view = await s.ask(SPEC, "Pay.")
    assert (view.status, view.finished) == ("waiting", False)
    assert view.hint is not None
    assert view.pending_approvals[0].call_id in view.hint


@pytest.mark.parametrize("approve", ["yes", 3, "terminal"])
async def test_app_1_what_nobody_can_ask_is_refused_at_once(approve: object) -> None:
    """A pipe is no terminal."""
    with pytest.raises(InvalidArgument):
        async with session(FakeModel(), tools=[pay], approve=approve):  # type: ignore[arg-type]
            raise AssertionError("it began")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit({"to": "ann"}), "cents is required"),
        (Edit({"to": "ann", "cents": "much"}), "cents should be a valid integer"),
        (Edit({"to": "ann", "cents": 3, "more": 1}), '"more" is no argument of this tool'),
    ],
)
async def test_app_3_an_edit_that_does_not_fit_is_told_to_whoever_asks(
    edit: Edit, words: str
) -> None:
    """Once, with the call, what is wrong and what is expected; the Run waits as it did."""
    asked: list[PendingApproval] = []

    def decides(pending: PendingApproval) -> Edit:
        asked.append(pending)
        return edit

    async with session(payments("ann"), tools=[pay], approve=decides) as s:
        with pytest.raises(InvalidArgument) as caught:
            await s.ask(SPEC, "Pay.")
        [one] = asked
        [run] = (await list_runs(s.store, scope=s.scope)).headers
        found = await status(s.store, run.run_id, scope=s.scope)
        assert found.pending_approvals == (one,)
    assert caught.value.what == "approve"
    assert f"the Edit of {one.call_id} does not fit" in caught.value.problem
    assert words in caught.value.problem
    assert 'Expected: {"cents": integer, "to": string}' in caught.value.problem
    assert PAID == []


@pytest.mark.parametrize(
    ("tool", "arguments", "edit", "words"),
    [
        (LOOK_UP, {"city": "Rome"}, Edit({"city": ".."}), ". and .. may not be a step"),
        (LOOK_UP, {"city": "Rome"}, Edit({"town": "Rome"}), "city is required"),
        (BuiltinTool(name="wait_for_time"), {"seconds": 1}, Edit({"seconds": "long"}), "number"),
    ],
    ids=["path", "name", "builtin"],
)
async def test_app_3_an_edit_is_judged_by_the_tool_that_the_spec_describes(
    tool: HttpTool | BuiltinTool, arguments: dict[str, JsonValue], edit: Edit, words: str
) -> None:
    """HTTP tools and our own are in no registry."""
    spec = SPEC.model_copy(update={"tools": (tool,)})
    model = FakeModel().turn(tool_calls=[(tool.name, arguments)])
    async with session(model, policy=AskAlways(), approve=lambda _: edit) as s:
        with pytest.raises(InvalidArgument) as caught:
            await s.ask(spec, "Go.")
    assert "does not fit" in caught.value.problem
    assert words in caught.value.problem


@pytest.mark.parametrize("odd", [True, "yes", {"cents": 3}])
async def test_app_1_what_is_no_choice_is_told_to_whoever_asks(odd: object) -> None:
    """The error lists what a function may return."""
    decides = cast("Approver", lambda _: odd)
    async with session(payments("ann"), tools=[pay], approve=decides) as s:
        with pytest.raises(InvalidArgument, match='return "approve", "deny"') as caught:
            await s.ask(SPEC, "Pay.")
    assert caught.value.what == "approve"


async def test_app_1_a_function_that_hangs_has_no_more_time_than_ask_has() -> None:
    """The Run goes on: whoever looks at it decides."""
    hangs = asyncio.Event()

    async def decides(_: PendingApproval) -> Choice | None:
        await hangs.wait()
        return None

    async with session(payments("ann"), tools=[pay], approve=decides) as s:
        with pytest.raises(WaitTimeout) as caught:
            await s.ask(SPEC, "Pay.", timeout_seconds=0.5)
        run_id = caught.value.run_id
        found = await wait(s.store, run_id, scope=s.scope, until="suspended")
        call_id = found.pending_approvals[0].call_id
        decisions: dict[str, Choice] = {call_id: "approve"}
        await decide(s.store, run_id, scope=s.scope, decisions=decisions, by="ann")
        assert (await s.wait(run_id)).lifecycle == "done"
    assert caught.value.timeout_seconds == 0.5
    assert "after 0.5 s" in str(caught.value)
    assert PAID == [("ann", 3)]


async def test_app_1_a_timeout_of_whoever_decides_is_theirs() -> None:
    """It is no WaitTimeout: `ask` had time left."""

    async def decides(_: PendingApproval) -> Choice | None:
        raise TimeoutError("the office is closed")

    async with session(payments("ann"), tools=[pay], approve=decides) as s:
        with pytest.raises(TimeoutError, match="the office is closed"):
            await s.ask(SPEC, "Pay.")


async def test_app_1_the_time_that_is_told_is_all_that_was_given() -> None:
    """Not what was left of it when the last wait began."""
    async with session(payments("ann"), tools=[pay], approve=lambda _: "approve") as s:
        s.worker.stop()
        with pytest.raises(WaitTimeout) as caught:
            await s.ask(SPEC, "Pay.", timeout_seconds=0.25)
    assert caught.value.timeout_seconds == 0.25
    assert caught.value.until == "suspended"


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        path = folder / "program.py"
        path.write_text(PROGRAM)
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, str(path)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        os.close(slave)
        self.shown = ""

    def until(self, words: str) -> None:
        """Read until the program has shown `words`."""
        while words not in self.shown:
            ready, _, _ = select.select([self._master], [], [], 60)
            assert ready, self.shown
            try:
                piece = os.read(self._master, 4096)
            except OSError:  # the program has ended
                piece = b""
            assert piece, self.shown
            self.shown += piece.decode().replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.mark.parametrize(
    ("keys", "status", "said"),
    [
        (["a\n"], "done", "paid 300 to bob"),
        (["what\n", "deny\n"], "done", "A person denied this call"),
        (["e\n", '{"to": "cid", "cents": 1}\n'], "done", "paid 1 to cid"),
        (["e\n", "{nonsense\n", "a\n"], "done", "paid 300 to bob"),
        (["e\n", '{"to": "cid"}\n', "d\n"], "done", "A person denied this call"),
        (["e\n", '{"to": "cid", "cents": NaN}\n', "a\n"], "done", "paid 300 to bob"),
        (["\n"], "waiting", ""),
        (["\x04"], "waiting", ""),
    ],
)
def test_app_1_a_person_at_a_terminal_decides(
    tmp_path: Path, keys: list[str], status: str, said: str
) -> None:
    """They see the call, and nothing in it can move their cursor."""
    shown = Terminal(tmp_path)
    try:
        shown.until("leave it waiting (enter)? ")
        assert re.search(r'code:pay \(write\)(?s:.)*"cents": 300', shown.shown)
        assert "\x1b" not in shown.shown
        for place, pressed in enumerate(keys):
            before = len(shown.shown)
            shown.type(pressed)
            if place < len(keys) - 1:
                shown.until(shown.shown[:before])
        shown.until(f"STATUS {status}")
        if said:
            shown.until(said)
    finally:
        shown.close()
