"""`docs/examples/http_tools` does what its page says: an agent from YAML only (DOC-1, TOOL-4)."""

import os
import subprocess
import sys
from pathlib import Path

from psych_runtime.core.spec_file import load_spec
from psych_schema.spec import HttpTool

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "http_tools"


def test_doc_1_the_agent_works_with_the_shop() -> None:
    """The list came at the second try, the note was written once, and the answer is there."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENAI_API_KEY", "PSYCH_BASE_URL")
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "ask.py")],
        capture_output=True,
        text=True,
        env=environment | {"SHOP_PORT": "0"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [*lines[:3], *sorted(lines[3:5]), *lines[5:]] == [  # two calls of one turn run at once
        "Order 4711 is a lamp. I noted that it is to be green.",
        "GET /orders?limit=10&state=open",
        "GET /orders?limit=10&state=open",
        "GET /orders/1",
        "GET /orders/4711",
        "POST /orders/4711/notes",
        "[{'by': {'role': 'agent'}, 'text': 'The customer wants it in green.'}]",
    ]


def test_doc_1_the_agent_is_data_only() -> None:
    """No tool of it is a function."""
    spec = load_spec(EXAMPLE / "agent.yaml")
    assert [type(tool) for tool in spec.tools] == [HttpTool] * 3
