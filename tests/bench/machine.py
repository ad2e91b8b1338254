"""What the figures were taken on, without its name."""

import os
import platform
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

__all__ = ["facts", "load"]


def facts() -> Mapping[str, str | int]:
    """Return the processor and the versions that the figures depend on."""
    return {
        "cores": os.cpu_count() or 1,
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "pydantic": version("pydantic"),
        "pydantic_core": version("pydantic-core"),
        "sqlite": sqlite3.sqlite_version,
    }


def load() -> float:
    """Return how many processes wanted to run in the last minute, on average."""
    return round(os.getloadavg()[0], 2)


def _cpu() -> str:
    """Return the processor's name, as far as the system tells it."""
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
