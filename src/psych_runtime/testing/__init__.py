"""What tests of an agent need: a scripted model."""

from psych_runtime.testing.fake_model import FakeModel, FakeRouter

__all__ = ["FakeModel", "FakeRouter"]
