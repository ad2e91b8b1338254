"""What needs no HTTP client does not load it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "loads"),
    [
        ("psych_runtime.testing.fake_model", "False"),
        ("psych_runtime.model", "False"),
        ("psych_runtime.model.transient", "False"),
        ("psych_runtime.ports.model", "False"),
        ("psych_runtime.model.openai", "True"),
    ],
)
def test_the_http_client_is_loaded_by_the_adapter_only(module: str, loads: str) -> None:
    """The browser playground and a process without a model do without it."""
    program = f"import sys, {module}; print('httpx2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == loads
