"""The real engine in a world of its own: virtual time, seeded chance, processes that die."""

from psych_runtime.testing.simulation.simulate import (
    SimulationFailed,
    SimulationReport,
    live_through,
    simulate,
)
from psych_runtime.testing.simulation.watch import Violation
from psych_runtime.testing.simulation.world import Simulation

__all__ = [
    "Simulation",
    "SimulationFailed",
    "SimulationReport",
    "Violation",
    "live_through",
    "simulate",
]
