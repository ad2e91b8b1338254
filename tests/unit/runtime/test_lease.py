"""What a worker's own clock proves of its lease, and of the store's clock (R-5, R-9, R-14)."""

from datetime import UTC, datetime, timedelta

from psych_runtime._system import System
from psych_runtime.runtime.lease import Lease

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Clock(System):
    """A monotonic clock that stands until it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


def enlisted() -> tuple[Clock, Lease]:
    """Return a lease of 6 s that began when the clock stood at 1000."""
    clock = Clock()
    lease = Lease(clock, seconds=6.0)
    lease.enlisted("wrk_1", now=NOON, sent=1000.0)
    return clock, lease


def test_r_9_effects_may_start_until_a_sixth_before_the_end() -> None:
    """Five of six seconds after the last good renewal was sent."""
    clock, lease = enlisted()
    clock.seconds = 1004.9
    assert lease.fresh()
    clock.seconds = 1005.0
    assert not lease.fresh()


def test_r_9_nothing_may_start_without_an_id() -> None:
    """Neither before there is one nor after it was lost."""
    assert not Lease(Clock(), seconds=6.0).fresh()
    _, lease = enlisted()
    lease.lost()
    assert not lease.fresh()


def test_r_9_renewal_counts_from_when_it_was_sent() -> None:
    """Its answer took 3 s: those are gone."""
    clock, lease = enlisted()
    clock.seconds = 1004.0
    lease.renewed("wrk_1", now=NOON + timedelta(seconds=2), sent=1001.0)
    clock.seconds = 1005.9
    assert lease.fresh()
    clock.seconds = 1006.0
    assert not lease.fresh()


def test_r_5_late_answer_of_an_older_renewal_takes_nothing_back() -> None:
    """Answers come in any order."""
    clock, lease = enlisted()
    lease.renewed("wrk_1", now=NOON + timedelta(seconds=3), sent=1003.0)
    lease.renewed("wrk_1", now=NOON + timedelta(seconds=1), sent=1001.0)
    clock.seconds = 1007.9
    assert lease.fresh()


def test_r_5_answer_for_a_dead_id_renews_nothing() -> None:
    """The new id has a lease of its own."""
    clock, lease = enlisted()
    lease.lost()
    lease.enlisted("wrk_2", now=NOON, sent=1000.0)
    lease.renewed("wrk_1", now=NOON + timedelta(seconds=4), sent=1004.0)
    clock.seconds = 1005.0
    assert not lease.fresh()


def test_r_14_stores_clock_is_known_from_above() -> None:
    """The shortest round trip says most: what the store calls due is due here."""
    clock, lease = enlisted()
    clock.seconds = 1010.0
    lease.observe(NOON + timedelta(seconds=9), sent=1009.5)
    assert lease.store_now() == NOON + timedelta(seconds=9.5)
    lease.observe(NOON + timedelta(seconds=9.4), sent=1009.0)
    assert lease.store_now() == NOON + timedelta(seconds=9.5)


def test_r_14_clock_that_is_set_forward_is_followed() -> None:
    """An answer that the known offset makes impossible replaces it."""
    clock, lease = enlisted()
    clock.seconds = 1010.0
    lease.observe(NOON + timedelta(seconds=40), sent=1009.9)
    assert lease.store_now() == NOON + timedelta(seconds=40.1)


def test_r_14_clock_that_is_set_back_is_followed() -> None:
    """The smaller offset wins at once."""
    clock, lease = enlisted()
    clock.seconds = 1010.0
    lease.observe(NOON - timedelta(seconds=20), sent=1010.0)
    assert lease.store_now() == NOON - timedelta(seconds=20)


def test_r_14_before_any_answer_the_own_clock_must_do() -> None:
    """Nothing is known of the store yet."""
    before = System().now()
    assert Lease(Clock(), seconds=6.0).store_now() >= before
