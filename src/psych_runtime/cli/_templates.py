"""The files of a new project."""

from typing import Final

__all__ = ["project"]

_AGENT_YAML: Final = """\
# What the agent is. Tools are named here and written in run.py.
# `psych validate agent.yaml` checks this file; `psych schema agent` says what may stand in it.
kind: agent
name: NAME
description: Counts words.
instructions: |
  You answer questions about texts.
  Count with the tool instead of guessing, and answer in one sentence.
model:
  model: gpt-4o-mini
tools:
  - kind: code
    name: count_words
limits:
  max_turns: 8
"""

_AGENT_PY: Final = """
# What the agent is. Tools are named here and passed to session() below.
AGENT = AgentSpec(
    name="NAME",
    description="Counts words.",
    instructions=(
        "You answer questions about texts.\\n"
        "Count with the tool instead of guessing, and answer in one sentence.\\n"
    ),
    model=ModelRef(model="gpt-4o-mini"),
    tools=[CodeTool(name="count_words")],
    limits=Limits(max_turns=8),
)
"""

_RUN_PY: Final = '''\
"""Runs the agent NAME once.

Every Run is kept in runs.db beside this file.

With OPENAI_API_KEY (or PSYCH_BASE_URL, for any server that speaks the same protocol) in the
environment the model is a real one; otherwise it follows the script below and nothing leaves
this machine.
"""

import asyncio
import os
import sys
from pathlib import Path

IMPORTS

HERE = Path(__file__).resolve().parent
QUESTION = "How many words are in 'the quick brown fox'?"
AGENT

@tool(annotations={"read-only"})
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text whose words are counted.
    """
    return len(text.split())


def make_model() -> ModelClient:
    """Return a real model when the environment names one, else a scripted one."""
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("PSYCH_BASE_URL")
    if key or url:
        return OpenAIClient(url or "https://api.openai.com/v1", api_key=key)
    script = FakeModel()
    script.turn(tool_calls=[("count_words", {"text": "the quick brown fox"})])
    script.turn(text="There are 4 words.")
    return script


async def main() -> int:
    """Ask once. Returns the exit code."""
    question = " ".join(sys.argv[1:]) or QUESTION
    store = f"sqlite:///{HERE / 'runs.db'}"
    async with session(make_model(), tools=[count_words], store=store) as s:
        answer = await s.ask(SPEC, question)
    completed = answer.ended is not None and answer.ended.state == "completed"
    print(answer.text if completed else answer)
    print(f"\\npsych report {answer.run_id} --store {store}", file=sys.stderr)
    return 0 if completed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
'''

_FROM_YAML: Final = "ModelClient, OpenAIClient, load_spec, session, tool"
_FROM_PYTHON: Final = (
    "AgentSpec,\n    CodeTool,\n    Limits,\n    ModelClient,\n    ModelRef,\n    OpenAIClient,\n"
    "    session,\n    tool,"
)


def project(name: str, *, python: bool) -> dict[str, str]:
    """Return the files of a project by name."""
    names = f"(\n    {_FROM_PYTHON}\n)" if python else _FROM_YAML
    imports = f"from psych_runtime import {names}\nfrom psych_runtime.testing import FakeModel"
    run = _RUN_PY.replace("IMPORTS", imports)
    run = run.replace("AGENT\n\n@tool", f"{_AGENT_PY if python else ''}\n\n@tool", 1)
    run = run.replace("SPEC", "AGENT" if python else 'load_spec(HERE / "agent.yaml")')
    run = run.replace("NAME", name)
    files = {"run.py": run}
    return files if python else {"agent.yaml": _AGENT_YAML.replace("NAME", name), **files}
