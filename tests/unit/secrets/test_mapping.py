"""Secrets in a mapping, and a Runtime that has some or none (SEC-2)."""

import pickle
from typing import Any, Final

import pytest

from psych_runtime import InvalidArgument, MappingSecrets, Runtime, Scope, SecretNotFound
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import FakeModel
from tests.canary import CANARY, in_texts

ACME: Final = Scope(tenant="acme")
GLOBEX: Final = Scope(tenant="globex")


async def test_sec_2_a_tenant_s_value_comes_before_that_for_all() -> None:
    """Another tenant's is not there."""
    secrets = MappingSecrets(
        {"key": "of all"}, tenants={"acme": {"key": "of acme"}, "globex": {"only": "of globex"}}
    )
    assert await secrets.resolve(ACME, "key") == "of acme"
    assert await secrets.resolve(GLOBEX, "key") == "of all"
    with pytest.raises(SecretNotFound, match="no secret 'only' for this tenant; add it to the map"):
        await secrets.resolve(ACME, "only")


async def test_sec_2_a_changed_value_is_used_at_once() -> None:
    """The mapping is asked each time."""
    shared = {"key": "first value"}
    secrets = MappingSecrets(shared)
    assert await secrets.resolve(ACME, "key") == "first value"
    shared["key"] = "second value"
    assert await secrets.resolve(ACME, "key") == "second value"
    del shared["key"]
    with pytest.raises(SecretNotFound):
        await secrets.resolve(ACME, "key")


async def test_sec_2_nothing_of_it_is_shown() -> None:
    """Neither by itself nor by what fails."""
    secrets = MappingSecrets({"key": CANARY}, tenants={"acme": {"a": CANARY}})
    with pytest.raises(SecretNotFound) as caught:
        await secrets.resolve(ACME, "other")
    with pytest.raises(TypeError, match="stay in their process") as refused:
        pickle.dumps(secrets)
    shown = {"itself": secrets, "error": caught.value, "refused": refused.value}
    assert in_texts(shown, CANARY) == []


@pytest.mark.parametrize("wrong", [[("key", CANARY)], CANARY, 7])
def test_sec_2_what_is_no_mapping_is_refused_unseen(wrong: Any) -> None:
    """The error says of what kind it is."""
    for given in ({"shared": wrong}, {"tenants": wrong}):
        with pytest.raises(
            InvalidArgument, match=f"pass a mapping, no {type(wrong).__name__}"
        ) as e:
            MappingSecrets(**given)
        assert in_texts({"error": e.value}, CANARY) == []


async def test_sec_2_a_runtime_without_secrets_says_how_to_give_some() -> None:
    """There is no default: a process's environment is not every tenant's."""
    runtime = Runtime(store=MemoryStore(), model=FakeModel())
    with pytest.raises(SecretNotFound, match=r"give the Runtime some: secrets=EnvironmentSecrets"):
        await runtime.secrets.resolve(ACME, "key")


async def test_sec_2_a_runtime_takes_a_resolver() -> None:
    """Any object that resolves; a class, or something else, is refused."""
    secrets = MappingSecrets({"key": "value 1"})
    assert Runtime(store=MemoryStore(), model=FakeModel(), secrets=secrets).secrets is secrets
    wrong: Any
    for wrong in (MappingSecrets, {"key": CANARY}, object()):
        with pytest.raises(InvalidArgument, match="secrets: ") as caught:
            Runtime(store=MemoryStore(), model=FakeModel(), secrets=wrong)
        assert in_texts({"error": caught.value}, CANARY) == []
