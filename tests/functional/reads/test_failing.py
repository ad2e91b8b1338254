"""What went wrong with a model is read where one looks, not only in the log."""

from collections.abc import AsyncGenerator
from typing import Final

from psych_runtime import AgentSpec, ModelRef, answer, report, session, status, wait
from psych_runtime.errors import ModelTransient
from psych_runtime.ports.store import Store
from psych_schema.model import ModelEvent, ModelRequest

SPEC: Final = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))
_SAID: Final = (
    "model call failed: client_error: the model client failed: AttributeError: "
    "'Client' object has no attribute 'key'"
)


class Client:
    """A client that always fails alike."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        raise self._error

    def models(self) -> frozenset[str] | None:
        return None


async def test_doc_2_a_failing_client_is_quoted_in_hint_and_report(store: Store) -> None:
    """The exception's type and text; nobody has to read the log."""
    client = Client(AttributeError("'Client' object has no attribute 'key'"))
    spec = SPEC.model_copy(
        update={"limits": SPEC.limits.model_copy(update={"transient_retry_budget": 0})}
    )
    async with session(client, store=store) as made:
        found = await made.ask(spec, "x")
        told = await report(made.store, found.run_id, scope=made.scope)
    assert found.text is None
    assert found.status == "failed"
    assert found.hint is not None
    assert found.hint.startswith(f"{_SAID}; ")
    assert f"The last failure: {_SAID}" in told.notes


async def test_run_14_a_run_that_waits_for_a_retry_says_why(store: Store) -> None:
    """Status and answer, while it waits."""
    client = Client(ModelTransient("529: too busy", retry_after_seconds=3600.0))
    async with session(client, store=store) as made:
        run = await made.start(SPEC, "x")
        for seq in range(1, 20):
            found = await wait(made.store, run.run_id, scope=made.scope, until=seq)
            if found.state == "suspended":
                break
        found = await status(made.store, run.run_id, scope=made.scope)
        hint = (await answer(made.store, run.run_id, scope=made.scope)).hint
    assert found.lifecycle == "waiting"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "model_retry"
    assert found.blocked_on.message.startswith(
        "model call failed: model_transient: 529: too busy; the model is tried again at "
    )
    assert hint == found.blocked_on.message
