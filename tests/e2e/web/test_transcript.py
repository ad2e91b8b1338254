"""The example's transcript is what its story prints (DOC-1)."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.web.running import START_SECONDS, WEB


def masked(text: str) -> list[str]:
    """Return the lines without what is a matter of timing: how many deltas there are."""
    kept = [line for line in text.splitlines() if "event: model.delta" not in line]
    return [re.sub(r"((?:id:|ID:|after=) ?)\d+ *", r"\1N ", line) for line in kept]


async def test_doc_1_the_transcript_is_what_the_story_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line, apart from the number of deltas."""
    for name in ("OPENAI_API_KEY", "PSYCH_BASE_URL", "PSYCH_MODEL", "PSYCH_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(WEB / "story.py"),
        cwd=tmp_path,
        env=dict(os.environ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            out, problems = await process.communicate()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)  # so that it ends what it has started
            await process.wait()
    assert (process.returncode, problems.decode()) == (0, "")
    said = (WEB / "transcript.md").read_text().partition("```console\n")[2].partition("```")[0]
    assert said.count("event: model.delta") > 3
    assert masked(out.decode().strip()) == masked(said.strip())
    assert list(tmp_path.iterdir()) == []
