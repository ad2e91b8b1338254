"""What one worker's attempts share: ports, clock, lease, flusher. No state of any Run (RUN-12)."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.runtime.journal import Flushes
from psych_runtime.runtime.lease import Lease
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.tools.code import CodeExecutor

__all__ = ["Host"]


@dataclass(slots=True)
class Host:
    """A worker as its attempts see it."""

    runtime: Runtime
    lease: Lease
    flushes: Flushes
    tools: CodeExecutor
    spawn: Callable[[Coroutine[None, None, None], Context | None], asyncio.Task[None]]
    max_attempts: int
    draining: bool = False
    grace_over: bool = False
    left: set[object] = field(default_factory=set)
    documents: set[tuple[str, str]] = field(default_factory=set)  # (tenant, hash) that are stored

    @property
    def store(self) -> Store:
        """The executor's handle of the store."""
        return self.runtime.store

    @property
    def system(self) -> System:
        """Clock, ids and randomness."""
        return self.runtime.system

    def keep[T](self, task: asyncio.Task[T]) -> None:
        """Hold on to a task that nobody awaits until it ends; what it raises is not news."""
        self.left.add(task)
        task.add_done_callback(self._forget)

    def _forget[T](self, task: asyncio.Task[T]) -> None:
        self.left.discard(task)
        if not task.cancelled():
            task.exception()
