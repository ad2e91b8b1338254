"""`docs/examples/demo.py` keeps what the README says of it (RUN-1, DOC-1)."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

_DEMO = Path(__file__).parents[3] / "docs" / "examples" / "demo.py"
_BOUND_SECONDS = 90.0


async def _run(folder: Path, **more: str) -> str:
    """Run the demonstration to its end and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(_DEMO),
        cwd=folder,
        env=_environment(os.environ) | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_BOUND_SECONDS):
            out, problems = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, problems.decode()
    assert problems == b""
    return out.decode()


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what names a real model."""
    names = ("OPENAI_API_KEY", "PSYCH_BASE_URL", "PSYCH_MODEL")
    return {name: value for name, value in given.items() if name not in names}


def _told(text: str) -> None:
    """Check that a worker was killed, another finished, and the report says so."""
    assert text.count("kill -9") == 1
    log, _, after = text.partition("kill -9")
    assert log.rstrip().splitlines()[-1].split()[-1] != "tool.completed"
    assert re.search(r"epoch 1 +tool\.started\s+$", log)
    assert re.search(r"epoch 2 +attempt\.started", after)
    assert re.search(r"epoch 2 +run\.settled", after)
    assert re.search(r"look_up_order +ok \(recovered\) +2 ", after)
    assert "ran again under the same id after a worker died" in after
    assert "done: completed" in after


async def test_run_1_the_demo_survives_its_worker(tmp_path: Path) -> None:
    """Exit code 0, the answer, the kill, and a report that names the recovered call."""
    text = await _run(tmp_path)
    assert "< Order 4711 has shipped; it travels by pigeon post." in text
    _told(text)
    assert list(tmp_path.iterdir()) == []


async def test_run_1_the_demo_with_a_model_of_ones_own(tmp_path: Path) -> None:
    """With PSYCH_BASE_URL it asks that server: once before the kill, once after it."""
    asks = answer(
        sse(
            call_chunk(0, id="a", name="look_up_order", arguments='{"number": 4711}'),
            finish_chunk("tool_calls"),
            usage_chunk(10, 2),
            "[DONE]",
        )
    )
    done = answer(sse(text_chunk("It flies."), finish_chunk(), usage_chunk(20, 3), "[DONE]"))
    async with OpenAIServer(asks, done) as server:
        text = await _run(tmp_path, PSYCH_BASE_URL=server.base_url, PSYCH_MODEL="tiny")
    assert "< It flies." in text
    _told(text)
    assert [seen.json["model"] for seen in server.seen] == ["tiny", "tiny"]
    assert "pigeon post" in server.seen[1].body.decode()
