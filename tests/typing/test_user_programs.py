"""What a user writes type-checks: the package is typed for those who import it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PAYLOADS = """
from collections.abc import Mapping

from psych_runtime import AgentSpec, CodeTool, ModelRef, Session, Version


async def ask(session: Session, version: Version, payload: dict[str, str]) -> str | None:
    await session.ask(version, payload)
    await session.ask(version, ["a", {"b": [1, None]}])
    return (await session.ask(version, {"message": "Hi"})).text


def make(tools: list[CodeTool]) -> AgentSpec:
    return AgentSpec(name="a", instructions="b", model=ModelRef(model="c"), tools=tools)
"""

WRONG = """
from psych_runtime import AgentSpec, ModelRef

AgentSpec(name="a", instructions="b", model=ModelRef(model="c"), tools=["charge"])
AgentSpec(name="a", instructions="b")
"""


def _mypy(files: list[Path], cache: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    options = ["--config-file=", f"--cache-dir={cache}"]
    return subprocess.run(
        [*command, *options, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cache,
    )


def test_doc_1_examples_are_strictly_typed(tmp_path: Path) -> None:
    """Each block of the README and the guides, the demo, and payloads as callers have them."""
    programs = [("payloads", PAYLOADS)]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))):
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        programs += [(f"{page.stem.lower()}_{n}", code) for n, code in enumerate(blocks)]
    files = []
    for name, code in programs:
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(code, encoding="utf-8")
    files.append(ROOT / "docs" / "examples" / "demo.py")
    done = _mypy(files, tmp_path)
    assert done.returncode == 0, done.stdout


def test_doc_1_wrong_programs_are_told(tmp_path: Path) -> None:
    """A name where a tool belongs, and a missing model."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    found = _mypy([wrong], tmp_path).stdout
    tools = "CodeTool | HttpTool | BuiltinTool"
    assert f'List item 0 has incompatible type "str"; expected "{tools}"' in found
    assert 'Missing named argument "model" for "AgentSpec"' in found
