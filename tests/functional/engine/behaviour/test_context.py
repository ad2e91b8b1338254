"""Nothing of one Run is seen by another (RUN-12, R-21)."""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Mapping

from pydantic import JsonValue

from psych_runtime.ports.policy import Allow, Decision, Policy, ToolFacts
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_schema.common import Scope
from psych_schema.model import ModelEvent, ModelRequest
from tests.functional.engine.behaviour.talk import answers
from tests.functional.engine.harness import Crew, admit, agent, run_to_end, runtime

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT", default="nobody")
LEAK: contextvars.ContextVar[str] = contextvars.ContextVar("LEAK", default="clean")


def _context(scope: Scope | None) -> None:
    TENANT.set("worker" if scope is None else scope.tenant)


class Watching(FakeModel):
    """A model that notes what its context holds."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str]] = []

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.seen.append((TENANT.get(), LEAK.get()))
        return super().stream(request)


class Watch(Policy):
    """A policy that notes what its context holds."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Allow."""
        self.seen.append((scope.tenant, TENANT.get()))
        return Allow()


async def test_run_12_tools_and_ports_see_their_own_runs_context(store: Store, crew: Crew) -> None:
    """Twenty Runs of four tenants at once, on one worker, async and sync tools."""
    LEAK.set("of the test")  # the worker is started from here

    async def ask() -> str:
        """Say whose Run it is."""
        LEAK.set("from a tool")
        await asyncio.sleep(0)
        return f"{TENANT.get()} {LEAK.get()}"

    def ask_sync(context: ToolContext) -> str:
        """Say whose Run it is."""
        found = f"{TENANT.get()} {LEAK.get()} {context.scope.tenant}"
        LEAK.set("from a thread")
        return found

    model, policy = Watching(), Watch()
    model.turn(tool_calls=[("ask", {}), ("ask_sync", {})])
    model.turn(tool_calls=[("ask_sync", {})])
    model.turn(text="Done.")
    await crew.start(runtime(store, model, ask, ask_sync, policy=policy, context=_context))
    runs = [
        (
            f"tenant{n % 4}",
            await admit(
                store, agent("ask", "ask_sync"), f"Run {n}.", scope=Scope(tenant=f"tenant{n % 4}")
            ),
        )
        for n in range(20)
    ]
    for tenant, run in runs:
        await run_to_end(store, run, tenant=tenant)

    tenants = sorted(f"tenant{n}" for n in range(4)) * 15
    assert sorted(one for one, _ in model.seen) == sorted(tenants)
    assert {leak for _, leak in model.seen} == {"clean"}
    assert policy.seen
    assert all(given == found for given, found in policy.seen)
    for request in model.requests:
        for _, text in answers(request.messages):
            assert text in (
                *(f"tenant{n} from a tool" for n in range(4)),
                *(f"tenant{n} clean tenant{n}" for n in range(4)),
            )


async def test_run_12_without_a_context_function_a_run_starts_empty(
    store: Store, crew: Crew
) -> None:
    """Not with what the code that started the worker had set."""
    LEAK.set("of the test")
    seen: list[str] = []

    async def ask() -> str:
        """Look."""
        seen.append(LEAK.get())
        return "looked"

    model = FakeModel().turn(tool_calls=[("ask", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, ask))
    await run_to_end(store, await admit(store, agent("ask")))
    assert seen == ["clean"]


async def test_run_12_a_tool_knows_its_call(store: Store, crew: Crew) -> None:
    """Scope, Run, call, key and epoch are handed over, each call its own."""
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context)
        return "looked"

    scope = Scope(tenant="acme", principal="ann", attributes={"team": "red"})
    model = FakeModel().turn(tool_calls=[("look", {}), ("look", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, look))
    run = await admit(store, agent("look"), scope=scope)
    await run_to_end(store, run)
    assert {(one.run_id, one.epoch) for one in seen} == {(run, 1)}
    assert all(one.scope == scope for one in seen)
    assert len({one.call_id for one in seen}) == 2
    assert all(one.idempotency_key == one.call_id for one in seen)
