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
from typing import Final, Literal, NamedTuple

from pydantic import ValidationError

from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools._core_schema import check_python
from psych_runtime.tools._explain import explain
from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import RegisteredTool
from psych_runtime.tools.results import to_result
from psych_runtime.tools.text import clip, ended
from psych_schema.record import Failure, ToolResult

__all__ = ["CLOSE_SECONDS", "CodeExecutor", "Executed"]

CLOSE_SECONDS: Final = 2.0
"""How long a cancelled async function may take to end before it is left alone."""

_MESSAGE_BYTES: Final = 2048
_MAX_INNER_ERRORS: Final = 3
_RAN: Final = "It was executed."


class Executed(NamedTuple):
    """What one execution brought; `failure` is None exactly when it is ok."""

    outcome: Literal["ok", "error", "timed_out"]
    result: ToolResult
    failure: Failure | None = None


type _Answer = Executed | Awaitable[object] | None
"""What calling a function brings at once; None: it was not called."""


def _always() -> bool:
    return True


class CodeExecutor:
    """Runs registered functions, sync ones in `pool`.

    The pool is the caller's, to size and to shut down. None, where there are no threads: sync
    functions run on the loop, and a timeout cannot cut them off.
    """

    def __init__(self, pool: Executor | None, *, close_seconds: float = CLOSE_SECONDS) -> None:
        self._pool = pool
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
        call = partial(_call, tool, arguments.values, context, may_start)
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
            return _failed("tool_error", f"{tool.name} raised CancelledError: it ended itself.")
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
        if isinstance(value, Executed) and tool.misfit is not None:
            return value
        return _returned(tool, value)

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
    return _returned(tool, value)


def _returned(tool: RegisteredTool, value: object) -> Executed:
    try:
        if tool.signature.returns is not None:
            check_python(tool.signature.returns, value)
        return Executed("ok", to_result(tool.name, value))
    except ValidationError as error:
        said = explain(error, value, "result")
        problem = ended(f"{tool.name} returned what its return type does not allow: {said}")
        return _failed("result_invalid", f"{problem} {_RAN}")
    except InvalidPayload as error:
        return _failed("result_invalid", f"{ended(f'{error.what}: {error.problem}')} {_RAN}")
    except PayloadTooLarge as error:
        sizes = f"at least {error.size_bytes} bytes, the bound is {error.bound_bytes}"
        problem = f"{error.what} is too large: {sizes}; ask for less. {_RAN}"
        return _failed("result_too_large", problem)
    except (Exception, SystemExit) as error:  # what it returned brings code of its own
        problem = ended(f"{tool.name} returned what cannot be read: {_described(error)}")
        return _failed("result_invalid", f"{problem} {_RAN}")


def _raised(tool: RegisteredTool, error: BaseException) -> Executed:
    return _failed("tool_error", f"{tool.name} raised {_described(error)}")


def _described(error: BaseException) -> str:
    """Return type and message; of a group also its first errors."""
    try:
        text = str(error)
    except Exception:  # foreign code
        text = "(its text cannot be read)"
    said = clip(type(error).__name__, 80) + (f": {clip(text, 1024)}" if text else "")
    if not isinstance(error, BaseExceptionGroup):
        return said
    inner = [_described(one) for one in error.exceptions[:_MAX_INNER_ERRORS]]
    return clip(f"{said}: {'; '.join(inner)}", _MESSAGE_BYTES)


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
    return _failed("worker_stopping", f"{tool.name} was not executed: the worker is stopping.")


def _failed(code: str, message: str) -> Executed:
    failure = Failure(code=code, transient=code == "worker_stopping")
    return Executed("error", ToolResult(message=clip(message, _MESSAGE_BYTES)), failure)
