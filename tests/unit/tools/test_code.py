"""One execution of a registered function: where it runs, and what it raises (MOD-7)."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Annotated

import pytest

from psych_runtime.tools.code import CodeExecutor
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.executed import Executed
from psych_schema.model import JsonPart, TextPart
from psych_schema.record import Failure, ToolResult
from tests.unit.tools.tooling import (
    CALL_ID,
    CONTEXT,
    arguments,
    async_tool,
    both,
    registered,
    run,
    sync_tool,
)

ambient: ContextVar[str] = ContextVar("ambient", default="unset")


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_tool_2_a_function_is_run_once_with_its_arguments_and_context(
    pool: ThreadPoolExecutor,
) -> None:
    """What it returns is the result; it can read its idempotency key (R-9)."""

    def greet(
        name: Annotated[str, "Whom."], context: ToolContext, times: Annotated[int, "How often."] = 2
    ) -> str:
        """Greet."""
        return f"{name} {times} {context.idempotency_key} {context.epoch}"

    tool = registered(greet)
    executed = await CodeExecutor(pool).execute(tool, arguments(tool, '{"name": "Ada"}'), CONTEXT)
    assert executed == Executed("ok", ToolResult(parts=(TextPart(text=f"Ada 2 {CALL_ID} 3"),)))


async def test_run_8_sync_functions_run_in_the_pool_and_leave_the_loop_free(
    pool: ThreadPoolExecutor,
) -> None:
    """The tool waits for something that only the loop can do."""
    go = threading.Event()
    asyncio.get_running_loop().call_soon(go.set)
    tool = sync_tool(lambda: [go.wait(60), threading.get_ident()])
    executed = await run(tool, pool)
    (part,) = executed.result.parts
    assert isinstance(part, JsonPart)
    assert isinstance(part.value, list)
    assert part.value[0] is True
    assert part.value[1] != threading.get_ident()


async def test_run_8_async_functions_run_on_the_callers_loop(pool: ThreadPoolExecutor) -> None:
    """So does everything where there are no threads."""
    here = threading.get_ident()

    async def ident() -> int:
        return threading.get_ident()

    result = ToolResult(parts=(JsonPart(value=here),))
    assert await run(async_tool(ident), pool) == Executed("ok", result)
    assert await run(sync_tool(threading.get_ident), None) == Executed("ok", result)


async def test_mod_7_calls_run_at_the_same_time(pool: ThreadPoolExecutor) -> None:
    """Two sync and two async ones, each waiting for its sibling."""
    threads, tasks = threading.Barrier(2), asyncio.Barrier(2)

    async def meet() -> int:
        return await tasks.wait()

    executed = await asyncio.gather(
        *(run(sync_tool(threads.wait), pool) for _ in range(2)),
        *(run(async_tool(meet), pool) for _ in range(2)),
    )
    assert [one.outcome for one in executed] == ["ok"] * 4


def boom(error: BaseException) -> Callable[[], object]:
    def body() -> object:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (Silent(), "Silent: (its text cannot be read)"),
        (SystemExit(3), "SystemExit: 3"),
        (GeneratorExit(), "GeneratorExit"),
        (TimeoutError("slow peer"), "TimeoutError: slow peer"),
        (asyncio.InvalidStateError("odd"), "InvalidStateError: odd"),
        (ValueError("a\ud800b\x00"), "ValueError: a\\ud800b\x00"),
        (
            ExceptionGroup("two", [ValueError("a"), ExceptionGroup("in", [KeyError("b")])]),
            (
                "ExceptionGroup: two (2 sub-exceptions): ValueError: a; "
                "ExceptionGroup: in (1 sub-exception): KeyError: 'b'"
            ),
        ),
        (
            BaseExceptionGroup("odd", [SystemExit(1)]),
            "BaseExceptionGroup: odd (1 sub-exception): SystemExit: 1",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_mod_7_what_a_tool_raises_is_data(
    pool: ThreadPoolExecutor, error: BaseException, said: str
) -> None:
    """Type and message, no traceback; sync, async, and without threads."""
    failed = Executed(
        "error",
        ToolResult(message=f"probe raised {said}"),
        Failure(code="tool_error", transient=False),
    )
    for tool in both(boom(error)):
        assert await run(tool, pool) == failed
        assert await run(tool, None) == failed
    assert ToolResult.model_validate_json(failed.result.model_dump_json()) == failed.result


async def test_mod_7_stop_iteration_is_data(pool: ThreadPoolExecutor) -> None:
    """Futures and coroutines both treat it specially."""
    sync, awaited = both(boom(StopIteration("end")))
    assert (await run(sync, pool)).result.message == "probe raised StopIteration: end"
    assert (await run(awaited, pool)).outcome == "error"


async def test_mod_7_a_long_message_is_cut(pool: ThreadPoolExecutor) -> None:
    """20 MB of text, also ten times in a group."""
    errors = [
        ValueError("x" * 20_000_000),
        ExceptionGroup("y" * 9_000, [OSError("z" * 9_000)] * 10),
    ]
    for error in errors:
        message = (await run(sync_tool(boom(error)), pool)).result.message
        assert message is not None
        assert 1_000 < len(message.encode()) <= 2_048


async def test_mod_7_a_tool_that_cancels_itself_has_failed(pool: ThreadPoolExecutor) -> None:
    """Nobody cancelled the call: the siblings and the attempt go on."""

    async def cancel_me() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    async def await_cancelled() -> None:
        other = asyncio.ensure_future(asyncio.Event().wait())
        other.cancel()
        await other

    tools = [*both(boom(asyncio.CancelledError())), async_tool(cancel_me)]
    for tool in [*tools, async_tool(await_cancelled)]:
        executed = await run(tool, pool)
        assert executed.outcome == "error"
        assert executed.failure == Failure(code="tool_error", transient=False)
        assert str(executed.result.message).startswith("probe raised CancelledError")
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("threads", [True, False])
def test_mod_7_a_keyboard_interrupt_is_the_persons_not_the_tools(threads: bool) -> None:
    """Ctrl-C ends the process, whatever runs."""
    pool = ThreadPoolExecutor(1) if threads else None
    for tool in both(boom(KeyboardInterrupt())):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(run(tool, pool))
    if pool is not None:
        pool.shutdown()


async def test_run_12_calls_do_not_see_each_others_context(pool: ThreadPoolExecutor) -> None:
    """Each has a copy of the caller's; what it sets stays in it."""

    def body() -> str:
        found = ambient.get()
        ambient.set("left behind")
        return found

    token = ambient.set("the caller's")
    expected = Executed("ok", ToolResult(parts=(TextPart(text="the caller's"),)))
    for tool in both(body) * 2:
        assert await run(tool, pool) == expected
        assert await run(tool, None) == expected
    assert ambient.get() == "the caller's"
    ambient.reset(token)


async def test_tool_2_what_a_tool_prints_is_not_its_result(
    pool: ThreadPoolExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes where the process prints."""
    executed = await run(sync_tool(lambda: print("to stdout")), pool)
    assert executed == Executed("ok", ToolResult(parts=(JsonPart(value=None),)))
    assert capsys.readouterr().out == "to stdout\n"
