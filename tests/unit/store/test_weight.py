"""What loading a store loads with it (REF-1)."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("psych_runtime.store.memory", {"sqlite3", "sqlalchemy", "httpx2"}),
        ("psych_runtime.store.open", {"sqlite3", "sqlalchemy", "httpx2"}),
        ("psych_runtime.store.sqlite.store", {"sqlalchemy", "httpx2"}),
        ("psych_runtime.store.contract", {"pytest", "sqlite3", "sqlalchemy"}),
    ],
)
def test_ref_1_a_store_loads_only_what_it_runs_on(module: str, absent: set[str]) -> None:
    """No database for the one in memory, no statement builder for the one in a file."""
    script = f"import sys, {module}; print(*[name for name in sys.modules if '.' not in name])"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    loaded = set(done.stdout.split())
    assert "psych_runtime" in loaded
    assert loaded & absent == set()
