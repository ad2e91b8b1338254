"""The in-memory store does not look at Runs that it is not asked for."""

from collections.abc import Iterator, Mapping

from psych_runtime.ports.store import HeaderChange
from psych_runtime.store._memory_index import MemoryIndex
from psych_runtime.store.contract._build import START, admit, change, new_id, unit
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RunRow


class _Counting(Mapping[str, RunRow]):
    """Headers that count how often one is looked up."""

    def __init__(self) -> None:
        self.rows: dict[str, RunRow] = {}
        self.lookups = 0

    def __getitem__(self, run_id: str) -> RunRow:
        self.lookups += 1
        return self.rows[run_id]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("every Run is looked at")

    def __len__(self) -> int:
        return len(self.rows)


def _add(index: MemoryIndex, rows: _Counting, **columns: object) -> str:
    header = admit(columns=columns).header
    rows.rows[header.run_id] = header
    index.add(header)
    return header.run_id


def test_r_15_settled_runs_cost_a_claim_nothing() -> None:
    """10,000 of them, and every look-up is for a Run that was asked for."""
    rows = _Counting()
    index = MemoryIndex(rows)
    for _ in range(10_000):
        _add(index, rows, state="settled")
    ready = [_add(index, rows) for _ in range(3)]
    held = _add(index, rows, state="running", worker="wrk_1")
    late = _add(index, rows, state="suspended", deadline_at=START)

    (runs,) = index.claimable(START, "", {"wrk_1"}, lambda _: True, lambda _: None)
    assert [row.run_id for row in runs] == ready
    assert [row.run_id for row in index.held("wrk_1")] == [held]
    assert [row.run_id for row in index.overdue(START, {"wrk_1"})] == [late]
    page = index.newest_first("acme", None)
    assert next(page).run_id == late
    assert rows.lookups == 6


async def test_r_15_a_run_leaves_every_index_that_it_was_in() -> None:
    """After it has settled it is only listed."""
    store = MemoryStore()
    admitted = admit(columns={"worker": "wrk_1", "abort": "forced", "wake_at": START})
    await store.commit([unit(admitted._replace(deadline_seconds=-1.0))])
    run_id = admitted.run_id
    assert [row.run_id for row in (await store.ready(9)).headers] == [run_id]
    assert [row.run_id for row in await store.overdue(9)] == [run_id]
    edit = HeaderChange(state="settled", worker=None)
    await store.commit([unit(change(run_id, 1, edit=edit))])
    assert (await store.ready(9)).headers == ()
    assert await store.overdue(9) == []
    assert [row.run_id for row in (await store.list_runs("acme")).headers] == [run_id]
    index = store._shared._index
    assert not index.named("wrk_1")
    assert not any((index._ready, index._sleeping, index._deadlines, index._aborted, index._held))
    assert not index.named(new_id("wrk"))
