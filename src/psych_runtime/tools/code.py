"""Runs a registered function once; it validates, asks, records and retries nothing (TOOL-2).

What foreign code raises is data (MOD-7): the model reads its type and message, no traceback.
An async function runs on the caller's loop, any other in the worker's pool (RUN-8), each in a
copy of the caller's context (RUN-12).
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Final

from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.executed import Executed, failed
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.results import MAX_RESULT_BYTES
from psych_runtime.tools.returned import TOO_LARGE, described
from psych_schema.record import Failure, ToolResult

__all__ = ["CLOSE_SECONDS", "CodeExecutor"]

CLOSE_SECONDS: Final = 2.0
"""How long a cancelled async function may take to end before it is left alone."""

_AT_ONCE_BYTES: Final = 8 * 1024  # of a value that the loop stops for: 30 ms of small lists


type _Answer = Executed | Awaitable[object] | None
"""What calling a function brings at once; None: it was not called."""


def _always() -> bool:
    return True


class CodeExecutor:
    """Runs registered functions, sync ones in `pool`.

    The pool is the caller's, to size and to shut down. None, where there are no threads: sync
    functions run on the loop, and a timeout cannot cut them off. A result may have `max_bytes`
    as JSON, its attachments apart.
    """

    def __init__(
        self,
        pool: Executor | None,
        *,
        max_bytes: int = MAX_RESULT_BYTES,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._pool = pool
        self._max_bytes = max_bytes
        self._close_seconds = close_seconds
        self._running: dict[object, str] = {}  # task or thread's future: call id

    async def execute(
        self,
        tool: RegisteredTool,
        arguments: Arguments,
        context: ToolContext,
        *,
        may_start: Callable[[], bool] = _always,
    ) -> Executed | None:
        """Run `tool` once, for at most its timeout; raises only cancellation.

        `may_start` is asked last, in the thread that a sync function may have waited for (R-9);
        None: it said no, and nothing was executed.

        When it is given up, an async function is cancelled and gets CLOSE_SECONDS to end; a sync
        one goes on in its thread. What either brings then is dropped; `left_running` tells of it.
        """
        call = partial(_call, tool, arguments.values, context, may_start, self._max_bytes)
        task = asyncio.create_task(self._run(tool, call, context.call_id))
        self._track(task, context.call_id)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait({task}, timeout=tool.timeout_seconds)
        except asyncio.CancelledError:
            await self._close(task)
            raise
        if not task.done():
            await self._close(task)
            return _timed_out(tool, task)
        if task.cancelled():
            return failed("tool_error", f"{tool.name} raised CancelledError: it ended itself.")
        return task.result()

    def left_running(self, call_id: str) -> bool:
        """Tell whether code of this call still runs although the call was given up."""
        return call_id in list(self._running.values())

    async def _run(
        self, tool: RegisteredTool, call: Callable[[], _Answer], call_id: str
    ) -> Executed | None:
        if tool.is_async or self._pool is None:
            answer = call()
        else:
            answer = await self._in_pool(self._pool, tool, call, call_id)
        if answer is None or isinstance(answer, Executed):
            return answer
        try:
            value = await answer
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            return _raised(tool, error)
        return await self._brought(tool, value)

    async def _brought(self, tool: RegisteredTool, value: object) -> Executed:
        """Return what an async function's value is; a large one is not read on the loop."""
        if self._pool is None:
            return tool.brought(value, self._max_bytes)
        executed = tool.brought(value, _AT_ONCE_BYTES)
        if executed.failure is None or executed.failure.code != TOO_LARGE:
            return executed
        return await asyncio.to_thread(tool.brought, value, self._max_bytes)

    async def _in_pool(
        self,
        pool: Executor,
        tool: RegisteredTool,
        call: Callable[[], _Answer],
        call_id: str,
    ) -> _Answer:
        ambient = contextvars.copy_context()
        try:
            future = pool.submit(ambient.run, call)
        except RuntimeError:  # the pool's word for a shutdown
            return _stopping(tool)
        self._track(future, call_id)
        future.add_done_callback(self._forget)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancel():
                raise  # it runs, and nobody can stop it
            task = asyncio.current_task()
            given_up = task is not None and task.cancelling()
            return _no_thread(tool) if given_up else _stopping(tool)

    async def _close(self, task: asyncio.Task[Executed | None]) -> None:
        """Cancel the task and give it a moment; one that goes on is left alone."""
        task.cancel()
        await asyncio.wait({task}, timeout=self._close_seconds)

    def _track(self, work: object, call_id: str) -> None:
        self._running[work] = call_id

    def _forget(self, work: object) -> None:
        self._running.pop(work, None)


def _call(
    tool: RegisteredTool,
    values: Mapping[str, object],
    context: ToolContext,
    may_start: Callable[[], bool],
    max_bytes: int,
) -> _Answer:
    """Call the function, if it still may start; what must be awaited is given back."""
    if not may_start():
        return None
    try:
        value = tool.call(values, context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit, too, is only what this tool did
        return _raised(tool, error)
    if inspect.isawaitable(value):
        return value
    return tool.brought(value, max_bytes)


def _raised(tool: RegisteredTool, error: BaseException) -> Executed:
    return failed("tool_error", f"{tool.name} raised {described(error)}")


def _timed_out(tool: RegisteredTool, task: asyncio.Task[Executed | None]) -> Executed:
    """Say that time is up; the task itself knows when it never got a thread."""
    if task.done() and not task.cancelled():
        late = task.result()
        if late is not None and late.outcome == "timed_out":
            return late
    return _no_time(f"{tool.name} took longer than {tool.timeout_seconds:g} s and was given up.")


def _no_thread(tool: RegisteredTool) -> Executed:
    waited = f"no thread was free for {tool.timeout_seconds:g} s"
    return _no_time(f"{tool.name} was not executed: {waited}.")


def _no_time(message: str) -> Executed:
    failure = Failure(code="tool_timeout", transient=False)
    return Executed("timed_out", ToolResult(message=message), failure)


def _stopping(tool: RegisteredTool) -> Executed:
    said = f"{tool.name} was not executed: the worker is stopping."
    return failed("worker_stopping", said, transient=True)
