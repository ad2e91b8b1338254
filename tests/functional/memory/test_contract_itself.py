"""The contract is whole, and it notices memories that break it."""

from typing import ClassVar

import pytest

from psych_runtime.memory.contract import CHECKS, Check
from psych_runtime.memory.in_process import InProcessMemory
from psych_runtime.ports.memory import MemoryStore
from tests.functional.memory.broken import BROKEN
from tests.functional.memory.harness import InProcessHarness

_BY_NAME = {check.name: check for check in CHECKS}


def test_r_1_every_port_method_has_a_check() -> None:
    """What no check exercises, an adapter may get wrong unseen."""
    public = [name for name in vars(MemoryStore) if not name.startswith("_")]
    methods = {name for name in public if callable(getattr(MemoryStore, name))}
    assert methods == {"remember", "forget", "recall"}
    assert {method for check in CHECKS for method in check.methods} == methods


class _Recording(InProcessMemory):
    """Notices which methods are called."""

    called: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> object:
        _Recording.called.add(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_a_check_calls_the_methods_that_it_names(check: Check) -> None:
    """A claim to exercise a method is no exercise."""
    _Recording.called.clear()
    await check(InProcessHarness(_Recording))
    assert check.methods - _Recording.called == set()


def test_r_1_checks_have_names_of_their_own_and_say_what_they_promise() -> None:
    """A report names a check; promises and docstrings say why it is there."""
    assert len(_BY_NAME) == len(CHECKS) == 10
    for check in CHECKS:
        assert check.promises
        assert check.run.__doc__
        assert str(check) == check.name


def test_r_1_every_check_notices_a_broken_memory() -> None:
    """A check that no broken memory fails is not known to check anything."""
    assert set(_BY_NAME) == {name for _, name in BROKEN}


@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_r_1_a_broken_memory_is_noticed(kind: type[InProcessMemory], name: str) -> None:
    """By the check that is named, which the whole memory passes."""
    await _BY_NAME[name](InProcessHarness())
    with pytest.raises(AssertionError):
        await _BY_NAME[name](InProcessHarness(kind))
