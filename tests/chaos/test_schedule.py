"""The schedule of a chaos run."""

from tests.chaos.schedule import HARMS, PROCESS_HARMS, schedule


def test_run_1_a_seed_repeats_its_schedule() -> None:
    """The same strikes from the same seed, others from another."""
    first = schedule(7, seconds=60.0, lease_seconds=6.0, harms=HARMS)
    assert schedule(7, seconds=60.0, lease_seconds=6.0, harms=HARMS) == first
    assert schedule(8, seconds=60.0, lease_seconds=6.0, harms=HARMS) != first


def test_run_1_every_harm_strikes_within_seconds() -> None:
    """A short run sees each kind of harm, whatever the seed."""
    for seed in range(50):
        strikes = schedule(seed, seconds=5.0, lease_seconds=6.0, harms=HARMS)
        assert {strike.harm for strike in strikes} == set(HARMS)
        assert all(strike.at < 5.0 for strike in strikes)


def test_run_2_every_stop_outlasts_a_lease() -> None:
    """Whoever is stopped is declared dead, if anybody is there to see it."""
    for seed in range(50):
        strikes = schedule(seed, seconds=60.0, lease_seconds=6.0, harms=PROCESS_HARMS)
        assert min(one.seconds for one in strikes if one.harm == "stop") > 6.0


def test_st_9_the_database_is_restarted_every_few_seconds() -> None:
    """Both in order and as in a crash; some of the time it is away for longer than a lease."""
    strikes = schedule(7, seconds=120.0, lease_seconds=6.0, harms=["restart"])
    assert {strike.how for strike in strikes} == {"fast", "immediate"}
    assert {strike.seconds > 6.0 for strike in strikes} == {False, True}
    assert strikes[0].seconds == 0.0
    ends = [strike.at + strike.seconds for strike in strikes]
    begins = [*(strike.at for strike in strikes[1:]), 120.0]
    assert all(later - ended <= 9.0 for ended, later in zip(ends, begins, strict=True))
