"""Workers die, sleep and wake where the service is not as calm as an emulator (RUN-1, RUN-2)."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

import pytest

from psych_runtime._system import System
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.functional.engine.durability import test_recovery, test_threads, test_zombies
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import Crew
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.unruly import KINDS, Kind, Trouble, troubled
from tests.together import Together

type Death = Callable[..., Awaitable[None]]

DEATHS: Final[tuple[Death, ...]] = (
    test_recovery.test_run_1_open_unsafe_call_is_unknown_and_not_run_again,
    test_recovery.test_run_1_open_safe_call_runs_again_under_its_key,
    test_recovery.test_run_1_finished_sibling_never_runs_again,
    test_recovery.test_run_1_open_model_call_is_made_again_in_its_turn,
    test_recovery.test_r_7_risky_runs_are_held_one_at_a_time,
    test_zombies.test_run_2_woken_worker_writes_nothing,
    test_zombies.test_run_2_start_that_comes_late_is_refused_and_executes_nothing,
    test_zombies.test_r_5_worker_that_finds_itself_dead_goes_on_under_a_new_id,
    test_zombies.test_r_6_worker_that_stays_away_is_declared_dead,
    test_threads.test_st_8_settlement_that_never_arrives_leaves_neither,
    test_threads.test_r_18_entry_consumed_before_a_crash_is_not_consumed_again,
)
"""What is true on every store of recovery, of zombies, and of linked changes."""

_CHANCES: Final[dict[Kind, float]] = {
    "conflict": 0.1,
    "in_progress": 0.03,
    "throttled": 0.05,
    "unanswered": 0.05,
    "unprocessed": 0.3,
}


@pytest.fixture(scope="session")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """What has struck: trouble that never came proves nothing."""
    return Together(tmp_path_factory, "deaths", [each.__name__ for each in DEATHS])


@pytest.mark.parametrize("death", DEATHS, ids=lambda each: str(each.__name__))
async def test_run_1_a_death_is_outlived_on_an_unruly_dynamodb(
    death: Death, new_harness: NewHarness, struck: Together
) -> None:
    """The dying worker is in a process of its own: who takes over finds its Runs in an index."""
    trouble = Trouble(_CHANCES)
    harness = new_harness(troubled(trouble))
    crew = Crew()
    async with AsyncExitStack() as opened:
        ours, theirs = [
            await opened.enter_async_context(
                DynamoStore(harness.options, System(), make_client=harness.make_client)
            )
            for _ in range(2)
        ]
        await ours.migrate()
        flaky = Flaky(theirs)
        given = {"store": ours, "flaky": flaky, "crew": crew}
        try:
            await death(**{name: given[name] for name in inspect.signature(death).parameters})
        finally:
            flaky.faults.away = False
            flaky.faults.before.clear()
            flaky.faults.after.clear()
            await crew.close()
    counts = {str(kind): count for kind, count in trouble.struck.items()}
    deaths = struck.add(death.__name__, {"struck": counts})
    if deaths is not None:
        assert {kind for each in deaths for kind in each["struck"]} == set(KINDS)
