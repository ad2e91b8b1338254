"""What went wrong with a model's client is read where one looks, not only in the log."""

from collections.abc import AsyncGenerator

from psych_runtime import AgentSpec, ModelRef, answer, report, session, status, wait
from psych_runtime.ports.store import Store
from psych_schema.model import ModelEvent, ModelRequest
from psych_schema.spec import Limits

_SAID = (
    "model call failed: client_error: the model client failed: AttributeError: "
    "'Client' object has no attribute 'key'"
)


class Client:
    """A client with a bug."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        raise AttributeError("'Client' object has no attribute 'key'")

    def models(self) -> frozenset[str] | None:
        return None


def _spec(budget: int) -> AgentSpec:
    return AgentSpec(
        name="one",
        instructions="Say a.",
        model=ModelRef(model="scripted"),
        limits=Limits(transient_retry_budget=budget),
    )


async def test_doc_2_a_failing_client_is_quoted_in_hint_and_report(store: Store) -> None:
    """The exception's type and text."""
    async with session(Client(), store=store) as made:
        found = await made.ask(_spec(0), "x")
        told = await report(made.store, found.run_id, scope=made.scope)
    assert found.text is None
    assert found.ended is not None
    assert found.ended.code == "retries_exhausted"
    assert found.hint is not None
    assert found.hint.startswith(f"{_SAID}; ")
    assert f"The last failure: {_SAID}" in told.notes


async def test_run_14_a_run_that_waits_for_a_retry_says_why(store: Store) -> None:
    """Status and answer, while it waits."""
    async with session(Client(), store=store) as made:
        run = await made.start(_spec(3), "x")
        until = 0
        while True:
            until = (await wait(made.store, run.run_id, scope=made.scope, until=until + 1)).head
            found = await status(made.store, run.run_id, scope=made.scope)
            if found.blocked_on is not None:
                break
        hint = (await answer(made.store, run.run_id, scope=made.scope)).hint
    assert found.lifecycle in ("running", "waiting")
    assert found.blocked_on.code == "model_retry"
    assert found.blocked_on.message.startswith(f"{_SAID}; the model is tried again at ")
    assert hint is not None
