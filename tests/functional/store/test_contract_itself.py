"""The contract is whole, and it notices stores that break it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest

from psych_runtime.ports import checks
from psych_runtime.ports.store import Store
from psych_runtime.store.contract import CHECKS, Check, faulty, outages, racing
from psych_runtime.store.contract._faults import CALLS
from psych_runtime.store.faults import Faults, FaultyStore
from psych_runtime.store.memory import MemoryStore
from tests.functional.store.broken import BROKEN, BrokenHarness
from tests.functional.store.harness import MemoryHarness

_BY_NAME = {check.name: check for check in CHECKS}


def _port_methods() -> set[str]:
    entering = {"__aenter__", "__aexit__"}
    return {
        name
        for name, value in vars(Store).items()
        if callable(value) and (not name.startswith("_") or name in entering)
    }


def test_r_1_every_port_method_has_a_check() -> None:
    """What no check exercises, an adapter may get wrong unseen."""
    exercised: set[str] = set()
    for check in CHECKS:
        exercised |= check.methods
    assert _port_methods() - exercised == set()
    assert exercised - _port_methods() == set()
    assert {"commit", "renew", "__aenter__"} <= _port_methods()


def test_r_8_every_question_to_a_store_is_asked_of_one_that_is_away() -> None:
    """A method that is new to the port must be; what asks the store nothing cannot be refused."""
    asks_nothing = {"__aenter__", "__aexit__", "arrival", "close", "migrate", "twin"}
    assert _port_methods() - set(CALLS) == asks_nothing
    for name in ("a_store_that_was_away_has_nothing_half_written", "calls_that_hang_land_together"):
        assert _BY_NAME[name].methods == set(CALLS)


class _Recording(MemoryStore):
    """Notes which methods are called."""

    called: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> object:
        _Recording.called.add(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_a_check_calls_the_methods_that_it_names(check: Check) -> None:
    """A claim to exercise a method is no exercise."""
    _Recording.called.clear()
    await check(BrokenHarness(_Recording))
    entering = {"__aenter__", "__aexit__"}
    assert check.methods - entering - _Recording.called == set()


def test_r_1_a_method_without_a_check_is_noticed() -> None:
    """Taking the checks of one method away leaves a hole."""
    rest: set[str] = set()
    for check in CHECKS:
        if "sweep" not in check.methods:
            rest |= check.methods
    assert _port_methods() - rest == {"sweep"}


def test_r_1_checks_have_names_of_their_own_and_say_what_they_promise() -> None:
    """A report names a check; promises and docstrings say why it is there."""
    assert len(_BY_NAME) == len(CHECKS)
    for check in CHECKS:
        assert check.promises
        assert check.run.__doc__
        assert str(check) == check.name


class _FaultlessHarness(MemoryHarness):
    """Handles behind faults that never strike."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        async with super().open() as store, FaultyStore(store, Faults(self.system, {})) as wrapped:
            yield wrapped


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_20_behind_faults_that_never_strike_is_a_store(check: Check) -> None:
    """The wrapper passes on every argument and every answer as they are."""
    await check(_FaultlessHarness())


def test_st_1_every_check_behind_faults_notices_a_broken_store() -> None:
    """A check that no broken store fails is not known to check anything."""
    behind = {check.name for check in checks.checks_in(checks.Check, faulty, outages, racing)}
    assert len(behind) == 14
    assert behind - {name for _, name in BROKEN} == set()


@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_r_1_a_broken_store_is_noticed(kind: type[MemoryStore], name: str) -> None:
    """By the check that is named, which the whole store passes."""
    await _BY_NAME[name](MemoryHarness())
    with pytest.raises(AssertionError):
        await _BY_NAME[name](BrokenHarness(kind))
