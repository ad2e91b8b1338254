"""Other processes of tests: started, spoken to, killed and stopped, and ended with the test."""

from pathlib import Path
from typing import Final

__all__ = ["ROOT"]

ROOT: Final = Path(__file__).parents[2]
"""From where they find the packages of the tests."""
