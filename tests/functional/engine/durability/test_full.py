"""A store without room: whoever waits for an answer hears of it at once (ST-3)."""

from collections.abc import Sequence

import pytest

from psych_runtime.api import dispatch, publish
from psych_runtime.errors import StoreFull
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Unit
from psych_runtime.store.memory import MemoryStore
from tests.functional.engine.harness import ACME, agent


class Full(MemoryStore):
    """Has no room for any commit."""

    asked = 0

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        self.asked += 1
        raise StoreFull(problem="no room")


async def test_st_3_a_dispatch_to_a_full_store_is_not_tried_again_and_again() -> None:
    """Waiting makes no room."""
    store = Full()
    version = await publish(store, agent(), scope=ACME)
    with pytest.raises(StoreFull, match="make room"):
        await dispatch(store, version, scope=ACME, input={"message": "Go."})
    assert store.asked == 1
