"""How much is measured: enough to be believed, or just enough to see that it runs."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    import_rounds: int
    fold_rounds: int
    fold_turns: int  # of the Run whose log is folded
    turn_rounds: int
    turn_window: int  # turns of one round
    long_turns: tuple[int, int]
    run_rounds: int
    runs: int  # of one round; one at a time, an eighth of that
    server_rounds: int
    slow_rounds: int  # on DynamoDB's emulator
    slow_runs: int
    step_rounds: int
    steps: int  # of one round
    wake_rounds: int
    pickups: int  # of one round
    burst_runs: int  # to learn of the rate that readers are measured at
    paced_seconds: float  # of one round
    lasting_rounds: int
    recoveries: int  # on each store
    lease_seconds: float
    waiting: tuple[int, int]  # Runs, tenants
    look_rounds: int
    looks: int  # of one round
    idle_runs: tuple[int, int]  # parked, streaming
    idle_rounds: int
    idle_seconds: float
    counted_rounds: int
    counted_runs: int  # of one round; one at a time, an eighth of that
    concurrencies: tuple[int, ...] = (1, 16, 64)


FULL = Sizes(
    import_rounds=15,
    fold_rounds=40,
    fold_turns=200,
    turn_rounds=25,
    turn_window=20,
    long_turns=(1_000, 10_000),
    run_rounds=9,
    runs=192,
    server_rounds=7,
    slow_rounds=3,
    slow_runs=64,
    step_rounds=15,
    steps=40,
    wake_rounds=5,
    pickups=20,
    burst_runs=192,
    paced_seconds=5.0,
    lasting_rounds=15,
    recoveries=3,
    lease_seconds=6.0,
    waiting=(100_000, 1_000),
    look_rounds=15,
    looks=20,
    idle_runs=(256, 64),
    idle_rounds=3,
    idle_seconds=10.0,
    counted_rounds=2,
    counted_runs=64,
)
QUICK = Sizes(
    import_rounds=1,
    fold_rounds=2,
    fold_turns=4,
    turn_rounds=2,
    turn_window=2,
    long_turns=(40, 44),
    run_rounds=1,
    runs=2,
    server_rounds=1,
    slow_rounds=1,
    slow_runs=2,
    step_rounds=1,
    steps=2,
    wake_rounds=1,
    pickups=2,
    burst_runs=4,
    paced_seconds=0.5,
    lasting_rounds=1,
    recoveries=1,
    lease_seconds=1.5,
    waiting=(1_000, 100),
    look_rounds=1,
    looks=1,
    idle_runs=(2, 1),
    idle_rounds=1,
    idle_seconds=0.5,
    counted_rounds=1,
    counted_runs=4,
)
