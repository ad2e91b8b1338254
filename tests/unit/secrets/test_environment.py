"""Secrets in environment variables: of a prefix, and no others (SEC-2)."""

from typing import Final

import pytest

from psych_runtime import EnvironmentSecrets, InvalidArgument, Scope, SecretNotFound, SecretResolver
from tests.canary import CANARY, in_texts

ACME: Final = Scope(tenant="acme")
GLOBEX: Final = Scope(tenant="globex")


async def test_sec_2_a_variable_is_read_by_prefix_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """In capitals; what is no letter or digit is `_`."""
    monkeypatch.setenv("PSYCH_SECRET_STRIPE_LIVE_KEY_1", CANARY)
    secrets: SecretResolver = EnvironmentSecrets()
    for name in ("stripe_live_key_1", "Stripe/live.key-1", "STRIPE_LIVE_KEY_1"):
        assert await secrets.resolve(ACME, name) == CANARY


async def test_sec_2_a_changed_variable_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is gone is not there."""
    secrets = EnvironmentSecrets()
    monkeypatch.setenv("PSYCH_SECRET_KEY", "first value")
    assert await secrets.resolve(ACME, "key") == "first value"
    monkeypatch.setenv("PSYCH_SECRET_KEY", "second value")
    assert await secrets.resolve(ACME, "key") == "second value"
    monkeypatch.delenv("PSYCH_SECRET_KEY")
    with pytest.raises(SecretNotFound):
        await secrets.resolve(ACME, "key")


@pytest.mark.parametrize("name", ["path", "PATH", "other_key", "../path", "psych_secret_key"])
async def test_sec_2_no_other_variable_is_reached(name: str) -> None:
    """A name is never a variable's."""
    secrets = EnvironmentSecrets(environ={"PATH": CANARY, "OTHER_KEY": CANARY, "_PATH": CANARY})
    with pytest.raises(SecretNotFound) as caught:
        await secrets.resolve(ACME, name)
    assert in_texts({"error": caught.value}, CANARY) == []


async def test_sec_2_a_missing_one_says_what_to_set() -> None:
    """The variable of the tenant itself, where it has a prefix."""
    secrets = EnvironmentSecrets(tenants={"acme": "ACME_"}, environ={"PSYCH_SECRET_KEY": ""})
    with pytest.raises(SecretNotFound, match=r"no secret 'a-b' for this tenant; set ACME_A_B"):
        await secrets.resolve(ACME, "a-b")
    with pytest.raises(SecretNotFound, match="set PSYCH_SECRET_KEY") as caught:
        await secrets.resolve(GLOBEX, "key")
    assert caught.value.name == "key"


async def test_sec_2_a_tenant_reads_its_own_before_what_all_may() -> None:
    """Another tenant's it cannot name."""
    secrets = EnvironmentSecrets(
        tenants={"acme": "ACME_", "globex": "GLOBEX_"},
        environ={"ACME_KEY": "of acme", "PSYCH_SECRET_KEY": "of all", "GLOBEX_ONLY": "of globex"},
    )
    assert await secrets.resolve(ACME, "key") == "of acme"
    assert await secrets.resolve(GLOBEX, "key") == "of all"
    for name in ("only", "globex_only", "GLOBEX_ONLY"):
        with pytest.raises(SecretNotFound):
            await secrets.resolve(ACME, name)


async def test_sec_2_tenants_may_share_nothing() -> None:
    """A tenant without a prefix has no secrets then."""
    secrets = EnvironmentSecrets(None, tenants={"acme": "ACME_"}, environ={"ACME_KEY": "of acme"})
    assert await secrets.resolve(ACME, "key") == "of acme"
    with pytest.raises(SecretNotFound, match="this tenant has no prefix"):
        await secrets.resolve(GLOBEX, "key")


@pytest.mark.parametrize("prefix", ["", "P", "_", "psych_", "PSYCH", "A-", "1_", "A_\n", "Ä_"])
def test_sec_2_a_prefix_ends_a_word(prefix: str) -> None:
    """With `P` as prefix, `ath` would be a secret."""
    with pytest.raises(InvalidArgument, match="write capitals, digits and _, with a _ at the end"):
        EnvironmentSecrets(prefix)
    with pytest.raises(InvalidArgument, match="with a _ at the end"):
        EnvironmentSecrets(tenants={"acme": prefix})


@pytest.mark.parametrize(
    ("prefix", "tenants"),
    [
        (None, {"acme": "ACME_", "acme eu": "ACME_EU_"}),
        (None, {"acme": "ACME_", "globex": "ACME_"}),
        ("ALL_", {"acme": "ALL_ACME_"}),
        ("ALL_ACME_", {"acme": "ALL_"}),
    ],
)
def test_sec_2_prefixes_keep_tenants_apart(prefix: str | None, tenants: dict[str, str]) -> None:
    """`eu_key` of the one would be `key` of the other."""
    with pytest.raises(InvalidArgument, match="no prefix may begin with another one"):
        EnvironmentSecrets(prefix, tenants=tenants)


def test_sec_2_it_shows_its_prefix_only() -> None:
    """Not the variables."""
    secrets = EnvironmentSecrets(environ={"PSYCH_SECRET_KEY": CANARY})
    assert repr(secrets) == "EnvironmentSecrets('PSYCH_SECRET_')"
