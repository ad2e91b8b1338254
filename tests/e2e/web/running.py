"""The example as it would be run: servers and workers in processes of their own."""

import re
from pathlib import Path
from typing import Final

from tests.e2e.web.programs import Job
from tests.functional.engine.harness import eventually
from tests.processes import ROOT
from tests.processes.nursery import Nursery, Process

__all__ = ["START_SECONDS", "WEB", "Site"]

WEB: Final = ROOT / "docs" / "examples" / "web"
"""The example."""

START_SECONDS: Final = 60.0
"""How long a test waits for what needs a new process; only a busy machine needs it all."""


class Site:
    """Starts the processes of one store."""

    def __init__(self, folder: Path, environment: dict[str, str], nursery: Nursery[Job]) -> None:
        self._folder = folder
        self._environment = environment
        self._nursery = nursery
        self._started = 0

    async def serve(self) -> tuple[Process, str]:
        """Start a web server; return it with its address once it takes requests."""
        options = ["--app-dir", str(WEB), "--port", "0", "--no-access-log"]
        process, log = self._start(["-m", "uvicorn", *options, "app:app"])

        def running() -> re.Match[str] | None:
            text = log.read_text() if log.exists() else ""
            assert not process.has_ended(), text
            return re.search(r"running on (http://127\.0\.0\.1:\d+)", text)

        await eventually(running, START_SECONDS)
        found = running()
        assert found is not None
        return process, found[1]

    def work(self, **more: str) -> Process:
        """Start a worker."""
        return self._start([str(WEB / "worker.py")], more)[0]

    def _start(
        self, arguments: list[str], more: dict[str, str] | None = None
    ) -> tuple[Process, Path]:
        self._started += 1
        log = self._folder / f"{self._started}.log"
        job = Job(str(log), arguments, self._environment | (more or {}))
        return self._nursery.start(job), log

    def said(self) -> str:
        """Return what all of them have logged."""
        return "".join(log.read_text() for log in sorted(self._folder.glob("*.log")))
