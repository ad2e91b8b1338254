"""The program beside ours does the same work, and keeps as much of it as the table says."""

from collections.abc import Sequence

from tests.bench.by_hand import ByHand
from tests.bench.workload import Model


class Kept:
    """What was kept, commit by commit."""

    def __init__(self) -> None:
        self.commits: list[int] = []

    async def keep(self, run_id: str, texts: Sequence[str]) -> None:
        self.commits.append(len(texts))


async def test_bench_by_hand_a_run_is_six_commits_of_twelve_records() -> None:
    """Admission, beginning, and what belongs together."""
    kept = Kept()
    await ByHand(Model(), kept.keep).one()
    assert kept.commits == [1, 1, 3, 2, 3, 2]


async def test_bench_by_hand_apart_a_run_is_eleven_commits() -> None:
    """Each record for itself, and nothing of what is offered."""
    kept = Kept()
    await ByHand(Model(), kept.keep, apart=True).one()
    assert kept.commits == [1] * 11
