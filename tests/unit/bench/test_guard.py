"""The guard says when the machine was too busy to believe."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.bench.guard import Guard, Spin, why_not, work


def test_bench_a_quiet_machine_is_believed() -> None:
    """The processor time of a known loop is the same each time, and it never waits."""
    assert why_not([Spin(0.010, 0.0101), Spin(0.0102, 0.0103), Spin(0.0099, 0.01)]) == ""


def test_bench_a_loop_that_waits_for_others_tells() -> None:
    """Its wall time is longer than its processor time."""
    assert why_not([Spin(0.01, 0.015)] * 3) == "a loop waited 50% of its time for others"


def test_bench_a_loop_that_varies_tells() -> None:
    """A shared core, or one that changes its speed."""
    spins = [Spin(cpu, cpu) for cpu in (0.01, 0.01, 0.02, 0.02)]
    assert why_not(spins) == "the same loop's processor time varied by 67%"


def test_bench_both_reasons_are_said() -> None:
    """One does not hide the other."""
    spins = [Spin(cpu, 2 * cpu) for cpu in (0.01, 0.01, 0.02, 0.02)]
    assert why_not(spins).count("; ") == 1


def test_bench_nothing_watched_is_nothing_believed() -> None:
    """A guard that never looked has seen nothing."""
    guard = Guard()
    assert guard.problem == "nothing was watched"
    guard.look()
    assert len(guard.spins) == 1


def test_bench_the_known_loop_takes_processor_time() -> None:
    """What is timed is really done."""
    assert work().cpu_seconds > 0


HOG = """
import os
os.sched_setaffinity(0, {%d})
print("hogging", flush=True)
while True:
    os.getpid()
"""


@pytest.fixture
def hog() -> Iterator[None]:
    """Share one core with a process that is never idle."""
    cores = os.sched_getaffinity(0)
    core = min(cores)
    process = subprocess.Popen([sys.executable, "-c", HOG % core], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"hogging\n"
    os.sched_setaffinity(0, {core})
    yield
    os.sched_setaffinity(0, cores)
    process.kill()
    process.wait()
    process.stdout.close()


def test_bench_a_hog_beside_us_is_noticed(hog: None) -> None:
    """Half of a core is not a quiet machine."""
    guard = Guard()
    for _ in range(10):
        guard.look()
    assert guard.problem.startswith("a loop waited ")
