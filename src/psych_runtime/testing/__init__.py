"""What tests of an agent need: a scripted model, logs that were never lived, chance that counts."""

from psych_runtime.testing.counting import CountingSystem
from psych_runtime.testing.fake_model import FakeModel, FakeRouter
from psych_runtime.testing.log_builder import LogBuilder

__all__ = ["CountingSystem", "FakeModel", "FakeRouter", "LogBuilder"]
