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
)
