"""What a process has remembered outlives it."""

import asyncio
from pathlib import Path

from psych_runtime.memory.stored import StoredMemory
from psych_runtime.store.open import open_store
from psych_schema.common import Scope
from tests.functional.memory.program import SCOPES
from tests.processes.tasks import next_line, started


async def test_r_20_after_kill_9_the_same_principal_alone_recalls(tmp_path: Path) -> None:
    """All that was said to be kept, each for whoever said it; nobody else has anything."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with started("tests.functional.memory.program", url) as process:
        said = [await asyncio.to_thread(next_line, process) for _ in range(20)]
    async with open_store(url) as store:
        memory = StoredMemory(store)
        for scope in SCOPES:
            found = await memory.recall(scope, limit=200)
            kept = {entry.value for entry in found}
            assert {f"{scope.principal} {number}" for number in said} <= kept
            assert all(value.startswith(f"{scope.principal} ") for value in kept)
        for other in (Scope(tenant="acme"), Scope(tenant="globex", principal="anna")):
            assert await memory.recall(other) == []
