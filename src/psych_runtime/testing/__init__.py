"""What tests of an agent need: a scripted model, made-up logs, chance that counts, and crashes."""

from psych_runtime.testing.counting import CountingSystem
from psych_runtime.testing.fake_model import FakeModel, FakeRouter
from psych_runtime.testing.log_builder import LogBuilder
from psych_runtime.testing.simulation import (
    Simulation,
    SimulationFailed,
    SimulationReport,
    simulate,
)

__all__ = [
    "CountingSystem",
    "FakeModel",
    "FakeRouter",
    "LogBuilder",
    "Simulation",
    "SimulationFailed",
    "SimulationReport",
    "simulate",
]
