"""What agents remember, for whom they work for (TOOL-2; the memory port)."""

from pydantic import JsonValue

from psych_runtime.errors import StoreUnavailable
from psych_runtime.memory.stored import StoredMemory
from psych_runtime.ports.memory import MemoryEntry
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Scope
from psych_schema.record import MemoryChanged
from psych_schema.spec import AgentSpec
from tests.functional.engine.behaviour.people import asker
from tests.functional.engine.behaviour.talk import Told, told
from tests.functional.engine.harness import Crew, admit, only, runtime

ANN, BOB = Scope(tenant="acme", principal="ann"), Scope(tenant="acme", principal="bob")
OTHER = Scope(tenant="globex", principal="ann")
NOBODY = Scope(tenant="acme")


def minds() -> AgentSpec:
    """Return an agent that remembers."""
    return asker("remember", "recall", "forget")


async def says(
    store: Store, crew: Crew, scope: Scope, *calls: tuple[str, dict[str, JsonValue]]
) -> Told:
    """Have an agent make calls, in a worker of its own that is gone afterwards."""
    worker = await crew.start(
        Runtime(store=store, model=FakeModel().turn(tool_calls=[*calls]).turn(text="Done."))
    )
    run_id = await admit(store, minds(), scope=scope)
    try:
        return await told(store, run_id, tenant=scope.tenant)
    finally:
        await crew.stop(worker)


async def test_what_is_remembered_is_recalled_by_the_same_principal_only(
    store: Store, crew: Crew
) -> None:
    """In another Run and by another worker; nobody has to consent to it."""
    kept = await says(store, crew, ANN, ("remember", {"key": "shoes", "value": "Size 38."}))
    assert kept.calls == [("ok", "", "It is remembered.")]
    changed = only(kept.every(MemoryChanged))
    assert (changed.key, changed.op) == ("shoes", "put")
    assert "Size 38" not in changed.model_dump_json()
    for scope, found in (
        (ANN, '[{"key": "shoes", "value": "Size 38."}]'),
        (BOB, "[]"),
        (OTHER, "[]"),
        (NOBODY, "[]"),
    ):
        asked = await says(store, crew, scope, ("recall", {}))
        assert asked.calls == [("ok", "", found)]


async def test_what_is_remembered_can_be_searched_and_forgotten(store: Store, crew: Crew) -> None:
    """The newest first; what was forgotten is gone."""
    await says(store, crew, ANN, ("remember", {"key": "shoes", "value": "Size 38."}))
    await says(store, crew, ANN, ("remember", {"key": "hat", "value": "None."}))
    found = await says(store, crew, ANN, ("recall", {}), ("recall", {"query": "size"}))
    short, long = sorted((text for _, _, text in found.calls), key=len)
    assert long.index("hat") < long.index("shoes")
    assert short == '[{"key": "shoes", "value": "Size 38."}]'
    gone = await says(store, crew, ANN, ("forget", {"key": "shoes"}), ("forget", {"key": "x"}))
    assert sorted(text for _, _, text in gone.calls) == [
        "It is forgotten.",
        "There was nothing under that name.",
    ]
    assert [(one.key, one.op) for one in gone.every(MemoryChanged)] == [("shoes", "delete")]
    left = await says(store, crew, ANN, ("recall", {}))
    assert left.calls == [("ok", "", '[{"key": "hat", "value": "None."}]')]


async def test_what_cannot_be_remembered_is_told(store: Store, crew: Crew) -> None:
    """In words, and nothing has changed."""
    found = await says(
        store,
        crew,
        ANN,
        ("remember", {"key": "k" * 129, "value": "x"}),
        ("remember", {"key": "k", "value": "x" * 9000}),
    )
    assert [outcome for outcome, _, _ in found.calls] == ["error", "error"]
    assert [code for _, code, _ in found.calls] == ["invalid_payload", "payload_too_large"]
    assert found.every(MemoryChanged) == []
    assert (await says(store, crew, ANN, ("recall", {}))).calls == [("ok", "", "[]")]


class Away:
    """A memory that is away at first."""

    def __init__(self, inner: StoredMemory) -> None:
        self.inner = inner
        self.failures = 2

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable(problem="away")

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        """Keep it, the third time."""
        self._fail()
        await self.inner.remember(scope, key, value)

    async def forget(self, scope: Scope, key: str) -> bool:
        """Forget it."""
        return await self.inner.forget(scope, key)

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        """Recall."""
        return await self.inner.recall(scope, query, limit=limit)


async def test_r_8_a_memory_that_is_away_is_asked_again(store: Store, crew: Crew) -> None:
    """Nothing is lost, and the model hears nothing of it."""
    call: dict[str, JsonValue] = {"key": "shoes", "value": "Size 38."}
    model = FakeModel().turn(tool_calls=[("remember", call)]).turn(text="Done.")
    memory = Away(StoredMemory(store))
    made = Runtime(store=store, model=model, memory=memory)
    await crew.start(made)
    run_id = await admit(store, minds(), scope=ANN)
    found = await told(store, run_id)
    assert found.calls == [("ok", "", "It is remembered.")]
    assert memory.failures == 0
    assert [one.key for one in await StoredMemory(store).recall(ANN)] == ["shoes"]


async def test_a_runtime_without_memory_of_its_own_uses_the_store(store: Store) -> None:
    """So that what is remembered is as durable as the Runs are."""
    assert isinstance(runtime(store, FakeModel()).memory, StoredMemory)
