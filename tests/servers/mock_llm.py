"""Runs the independent server of npm `@dwmkerr/mock-llm` on an ephemeral loopback port."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from pydantic import JsonValue

__all__ = ["mock_llm", "rule"]

_MAIN = Path(__file__).parents[2] / "node_modules/@dwmkerr/mock-llm/dist/main.js"
_READY = b"server running on"
_TRIES = 3


def rule(
    body: JsonValue, *, match: str = "@", status: int = 200, sequence: int | None = None
) -> dict[str, JsonValue]:
    """Return a rule: a request that `match` (JMESPath) finds gets `body`; the last rule wins.

    Args:
        sequence: only the request with this number, from 0, among those with such a rule.
    """
    found: dict[str, JsonValue] = {
        "path": "/v1/chat/completions",
        "match": match,
        "response": {"status": status, "content": json.dumps(body)},
    }
    if sequence is not None:
        found["sequence"] = sequence
    return found


@contextlib.asynccontextmanager
async def mock_llm(
    folder: Path, rules: Sequence[dict[str, JsonValue]], *, chunk_characters: int = 5
) -> AsyncGenerator[str]:
    """Start the server with `rules`; give its base URL; stop it at the end."""
    config = folder / "mock-llm.yaml"
    streaming: JsonValue = {"chunkSize": chunk_characters, "chunkIntervalMs": 1}
    config.write_text(json.dumps({"streaming": streaming, "rules": list(rules)}))
    process, port = await _start(config)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        await process.communicate()


async def _start(config: Path) -> tuple[asyncio.subprocess.Process, int]:
    node = shutil.which("node")
    assert node is not None, "node is not on PATH; install Node 20 or newer"
    assert _MAIN.exists(), "run `npm ci` in the repository first"
    for _ in range(_TRIES):  # somebody may take the port first
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            node,
            str(_MAIN),
            "--config",
            str(config),
            env={"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        async for line in process.stdout:
            if _READY in line:
                return process, port
        await process.wait()
    raise AssertionError("mock-llm did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port
