"""No Run sees another Run's context (RUN-12, R-21)."""

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar

from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.common import Scope
from psych_schema.model import ModelEvent, ModelRequest
from tests.functional.engine.harness import ACME, Crew, admit, agent, run_to_end, runtime

WHO: ContextVar[str] = ContextVar("who", default="nobody")
MARK: ContextVar[str] = ContextVar("mark", default="clean")


async def test_run_12_runs_do_not_share_contextvars(store: Store, crew: Crew) -> None:
    """Thirty Runs of three tenants at once: each tool sees its own scope and no other's mark."""
    seen: list[tuple[str, str, str]] = []

    @tool
    async def look(context: ToolContext) -> str:
        """Look around."""
        seen.append((context.scope.tenant, WHO.get(), MARK.get()))
        MARK.set(context.run_id)
        await asyncio.sleep(0)
        return MARK.get()

    @tool
    def look_in_a_thread(context: ToolContext) -> str:
        """Look around from a thread."""
        seen.append((context.scope.tenant, WHO.get(), MARK.get()))
        MARK.set(context.run_id)
        return MARK.get()

    def enter(scope: Scope | None) -> None:
        WHO.set("worker" if scope is None else scope.tenant)

    model = FakeModel().turn(tool_calls=[("look", {}), ("look_in_a_thread", {})])
    model.turn(tool_calls=[("look", {})]).turn(text="Done.")
    WHO.set("whoever started the worker")
    made = runtime(store, model, look, look_in_a_thread, context=enter)
    await crew.start(made, concurrency=16)
    scopes = [ACME.model_copy(update={"tenant": name}) for name in ("a", "b", "c")]
    runs = [
        (scope, await admit(store, agent("look", "look_in_a_thread"), scope=scope))
        for scope in scopes * 10
    ]
    for scope, run in runs:
        await run_to_end(store, run, tenant=scope.tenant)

    assert len(seen) == 90
    assert all(tenant == who for tenant, who, _ in seen)
    assert {mark for _, _, mark in seen} == {"clean"}


async def test_run_12_the_workers_own_tasks_have_their_own_context(
    store: Store, crew: Crew
) -> None:
    """`context` is called with None for them, never inside the caller's context."""
    scopes: list[Scope | None] = []

    def enter(scope: Scope | None) -> None:
        assert WHO.get() == "nobody"
        WHO.set("set")
        scopes.append(scope)

    WHO.set("the caller")
    scope = ACME.model_copy(update={"attributes": {"plan": "free"}})
    await crew.start(runtime(store, FakeModel().turn(text="Hello."), context=enter))
    run = await admit(store, agent(), scope=scope)
    await run_to_end(store, run)

    assert WHO.get() == "the caller"
    assert [one for one in scopes if one is not None] == [scope]
    assert None in scopes


async def test_run_12_model_client_is_called_in_its_runs_context(store: Store, crew: Crew) -> None:
    """A client that reads a contextvar finds the Run's scope there."""
    seen: list[str] = []

    class Reading(FakeModel):
        async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            seen.append(WHO.get())
            async for event in super()._play(request):
                yield event

    def enter(scope: Scope | None) -> None:
        WHO.set("worker" if scope is None else scope.tenant)

    await crew.start(runtime(store, Reading().turn(text="Hello."), context=enter))
    for name in ("a", "b"):
        scope = ACME.model_copy(update={"tenant": name})
        run = await admit(store, agent(), scope=scope)
        await run_to_end(store, run, tenant=name)

    assert seen == ["a", "b"]
