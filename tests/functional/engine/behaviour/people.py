"""What tests of people in the loop share: agents that ask or wait, and whoever answers them."""

from collections.abc import Awaitable, Callable, Collection, Mapping

from pydantic import JsonValue

from psych_runtime._decisions import Choice, decide
from psych_runtime._reads import status
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Ask, Decision, Policy, ToolFacts
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.common import Scope
from psych_schema.receipt import Receipt
from psych_schema.spec import AgentSpec, BuiltinTool, Event, ModelRef, QuestionRules
from psych_schema.view import PendingApproval, PendingWait
from tests.functional.engine.behaviour.talk import Told, told
from tests.functional.engine.harness import ACME, Crew, admit, agent, eventually, only, runtime

type Json = dict[str, JsonValue]
type Call = tuple[str, Mapping[str, JsonValue]]
type Tool = Callable[..., Awaitable[str]]

BY = "ann"
"""Who decides, unless somebody else does."""

# consent


class Till:
    """A tool that pays, and remembers to whom."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

    async def pay(self, to: str, amount: int) -> str:
        """Pay.

        Args:
            to: Whom.
            amount: How much.
        """
        self.paid.append((to, amount))
        return f"paid {amount} to {to}"

    def marked(self, *, safe_to_retry: bool = False, annotations: Collection[str] = ()) -> Tool:
        """Return the tool with its marks."""

        @tool(safe_to_retry=safe_to_retry, annotations=annotations)
        async def pay(to: str, amount: int) -> str:
            """Pay.

            Args:
                to: Whom.
                amount: How much.
            """
            return await self.pay(to, amount)

        return pay

    def with_fee(self, fee: int) -> Tool:
        """Return a tool that pays with a fee unless told otherwise."""

        async def pay(to: str, amount: int, fee: int = fee) -> str:
            """Pay.

            Args:
                to: Whom.
                amount: How much.
                fee: What it costs.
            """
            return await self.pay(to, amount + fee)

        return pay


def payment(to: str, amount: JsonValue) -> Call:
    """Return a call that pays."""
    return "pay", {"to": to, "amount": amount}


def paying(*calls: tuple[str, int]) -> FakeModel:
    """Return a model that asks to pay in one turn, and then says that it is done."""
    asked = [payment(to, amount) for to, amount in calls]
    return FakeModel().turn(tool_calls=asked).turn(text="Done.")


class Decides(Policy):
    """A policy that says of each call what `decide` says of its arguments."""

    def __init__(self, decide: Callable[[Mapping[str, JsonValue]], Decision]) -> None:
        self._decide = decide

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Say it."""
        return self._decide(arguments)


class Asks(Decides):
    """A policy that asks about everything, within a time."""

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__(lambda _: Ask(expires_seconds=seconds))


async def pending(store: Store, run_id: str, count: int) -> tuple[PendingApproval, ...]:
    """Return what a Run asks for, once it has let go."""

    async def all_of_them() -> bool:
        found = await status(store, run_id, scope=ACME)
        return found.state == "suspended" and len(found.pending_approvals) == count

    await eventually(all_of_them)
    return (await status(store, run_id, scope=ACME)).pending_approvals


class Asked:
    """A Run that asks for consent to one call, and the worker that let it go."""

    def __init__(self, store: Store, run_id: str, one: PendingApproval, worker: Worker) -> None:
        self._store = store
        self.run_id = run_id
        self.one = one
        self.worker = worker

    async def decide(
        self, choice: Choice, *, by: str = BY, key: str | None = None, reason: str | None = None
    ) -> Receipt:
        """Decide about the call."""
        chosen = {self.one.call_id: choice}
        return await decide(
            self._store, self.run_id, scope=ACME, decisions=chosen, by=by, key=key, reason=reason
        )

    async def told(self) -> Told:
        """Wait for the Run's end and return what became of it."""
        return await told(self._store, self.run_id)

    async def anew(self) -> PendingApproval:
        """Return what is asked for in the place of what was."""
        [found] = await pending(self._store, self.run_id, 1)
        assert found.approval_id != self.one.approval_id
        self.one = found
        return found


async def asking(
    store: Store,
    crew: Crew,
    pay: Tool,
    *,
    model: ModelClient | None = None,
    policy: Policy | None = None,
    **options: float,
) -> Asked:
    """Return a Run that asks for consent to pay, 3 to bob unless the model says otherwise."""
    model = paying(("bob", 3)) if model is None else model
    policy = Asks() if policy is None else policy
    worker = await crew.start(runtime(store, model, pay, policy=policy), **options)
    run_id = await admit(store, agent("pay"))
    return Asked(store, run_id, only(await pending(store, run_id, 1)), worker)


async def choose(store: Store, run_id: str, /, **choices: Choice) -> None:
    """Decide about payments by whom they are to."""
    found = (await status(store, run_id, scope=ACME)).pending_approvals
    by_name = {str(one.arguments["to"]): one for one in found if isinstance(one.arguments, dict)}
    decisions = {by_name[name].call_id: choice for name, choice in choices.items()}
    await decide(store, run_id, scope=ACME, decisions=decisions, by=BY)


# questions, events, time

PAID = Event(
    name="paid",
    description="The customer has paid.",
    payload_schema={
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    },
)
SHIPPED = Event(name="shipped", description="The parcel has left.")


def asker(
    *names: str, questions: QuestionRules | None = None, events: tuple[Event, ...] = ()
) -> AgentSpec:
    """Return an agent with tools of the runtime."""
    return AgentSpec(
        name="asker",
        instructions="Ask.",
        model=ModelRef(model="fake"),
        tools=[BuiltinTool.model_validate({"kind": "builtin", "name": one}) for one in names],
        questions=QuestionRules() if questions is None else questions,
        events=events,
    )


def question(text: str, *options: str, several: bool = False) -> Json:
    """Return one question as a model asks it."""
    found: Json = {"question": text}
    if options:
        found["options"] = [*options]
    if several:
        found["several"] = True
    return found


def asks(*questions: Json) -> FakeModel:
    """Return a model that asks in one turn and answers in the next."""
    given: Json = {"questions": [*questions]}
    return FakeModel().turn(tool_calls=[("ask_question", given)]).turn(text="Done.")


def waits_for(*events: str) -> FakeModel:
    """Return a model that waits for events, all in one turn."""
    given: list[Json] = [{"event": event} for event in events]
    calls = [("wait_for_event", one) for one in given]
    return FakeModel().turn(tool_calls=calls).turn(text="Done.")


def sleeps(seconds: float) -> FakeModel:
    """Return a model that waits for a time."""
    call = ("wait_for_time", {"seconds": seconds})
    return FakeModel().turn(tool_calls=[call]).turn(text="Done.")


async def waiting(store: Store, run_id: str, count: int = 1) -> tuple[PendingWait, ...]:
    """Return what a Run waits for, once it has let go."""

    async def all_of_them() -> bool:
        found = await status(store, run_id, scope=ACME)
        return found.state == "suspended" and len(found.pending_waits) == count

    await eventually(all_of_them)
    return (await status(store, run_id, scope=ACME)).pending_waits
