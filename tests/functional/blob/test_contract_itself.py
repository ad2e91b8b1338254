"""The contract is whole, and it notices blob stores that break it."""

from typing import ClassVar

import pytest

from psych_runtime.blob.contract import CHECKS, Check
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.ports.blob import BlobStore
from tests.functional.blob.broken import BROKEN
from tests.functional.blob.harness import MemoryBlobHarness

_BY_NAME = {check.name: check for check in CHECKS}
_ENTERING = {"__aenter__", "__aexit__"}


def _port_methods() -> set[str]:
    return {
        name
        for name, value in vars(BlobStore).items()
        if callable(value) and (not name.startswith("_") or name in _ENTERING)
    }


def test_r_23_every_port_method_has_a_check() -> None:
    """What no check exercises, an adapter may get wrong unseen."""
    exercised: set[str] = set()
    for check in CHECKS:
        exercised |= check.methods
    assert exercised == _port_methods()
    assert {"put", "sweep", "__aenter__"} <= _port_methods()


class _Recording(MemoryBlobStore):
    """Notices which methods are called."""

    called: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> object:
        _Recording.called.add(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_23_a_check_calls_the_methods_that_it_names(check: Check) -> None:
    """A claim to exercise a method is no exercise."""
    _Recording.called.clear()
    await check(MemoryBlobHarness(_Recording))
    assert check.methods - _ENTERING - _Recording.called == set()


def test_r_23_checks_have_names_of_their_own_and_say_what_they_promise() -> None:
    """A report names a check; promises and docstrings say why it is there."""
    assert len(_BY_NAME) == len(CHECKS) == 25
    for check in CHECKS:
        assert check.promises
        assert check.run.__doc__
        assert str(check) == check.name


def test_r_23_every_check_notices_a_broken_store() -> None:
    """A check that no broken store fails is not known to check anything."""
    assert set(_BY_NAME) - {name for _, name in BROKEN} == set()


@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_r_23_a_broken_store_is_noticed(kind: type[MemoryBlobStore], name: str) -> None:
    """By the check that is named, which the whole store passes."""
    await _BY_NAME[name](MemoryBlobHarness())
    with pytest.raises(AssertionError):
        await _BY_NAME[name](MemoryBlobHarness(kind))
