"""One execution of a registered function: outcomes, time limits, cancelling, threads (MOD-7)."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Annotated, cast

import pytest
from pydantic import BaseModel

from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.code import CodeExecutor, Executed
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import RegisteredTool
from psych_schema.model import JsonPart, TextPart
from psych_schema.record import Failure, ToolResult
from tests.unit.tools.tooling import CALL_ID, CONTEXT, arguments, registered

NOTHING = Arguments({}, "{}", {})
SOON = 0.02

ambient: ContextVar[str] = ContextVar("ambient", default="unset")


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Report(BaseModel):
    lines: list[str]


class Hostile(Mapping[str, int]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise OSError("gone")

    def __len__(self) -> int:
        return 1


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Two threads."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def sync_tool(body: Callable[[], object], timeout_seconds: float = 60.0) -> RegisteredTool:
    """Register a sync tool without parameters that does `body`."""

    def probe() -> object:
        """Probe."""
        return body()

    return registered(probe, timeout_seconds=timeout_seconds)


def async_tool(
    body: Callable[[], Awaitable[object]], timeout_seconds: float = 60.0
) -> RegisteredTool:
    """Register an async tool without parameters that awaits `body`."""

    async def probe() -> object:
        """Probe."""
        return await body()

    return registered(probe, timeout_seconds=timeout_seconds)


def both(body: Callable[[], object]) -> list[RegisteredTool]:
    """Register `body` as a sync and as an async tool."""

    async def awaited() -> object:
        return body()

    return [sync_tool(body), async_tool(awaited)]


async def run(tool: RegisteredTool, pool: ThreadPoolExecutor | None) -> Executed:
    return await CodeExecutor(pool).execute(tool, NOTHING, CONTEXT)


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


async def test_run_7_an_async_tool_is_cut_off_at_its_timeout(pool: ThreadPoolExecutor) -> None:
    """It is cancelled and may clean up; what it returns then does not count."""
    seen: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cleaned up")
        return "late"

    executor = CodeExecutor(pool)
    executed = await executor.execute(async_tool(hang, SOON), NOTHING, CONTEXT)
    assert executed == Executed(
        "timed_out",
        ToolResult(message="probe took longer than 0.02 s and was given up."),
        Failure(code="tool_timeout", transient=False),
    )
    assert seen == ["cleaned up"]
    assert not executor.left_running(CALL_ID)


async def test_run_7_an_async_tool_that_will_not_end_is_left_alone(
    pool: ThreadPoolExecutor,
) -> None:
    """Timed out and cancelled alike; it is known to run until it ends."""
    release = asyncio.Event()
    ended = asyncio.Barrier(3)

    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        await ended.wait()
        return "late"

    executor = CodeExecutor(pool, close_seconds=SOON)
    executed = await executor.execute(async_tool(stubborn, SOON), NOTHING, CONTEXT)
    assert executed.outcome == "timed_out"
    call = asyncio.create_task(executor.execute(async_tool(stubborn), NOTHING, CONTEXT))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert executor.left_running(CALL_ID)
    release.set()
    await ended.wait()
    while executor.left_running(CALL_ID):
        await asyncio.sleep(0)


async def test_run_7_a_sync_tool_is_given_up_at_its_timeout(pool: ThreadPoolExecutor) -> None:
    """Its thread goes on, and what it brings is dropped."""
    release = threading.Event()
    executor = CodeExecutor(pool)
    executed = await executor.execute(sync_tool(lambda: release.wait(60), SOON), NOTHING, CONTEXT)
    assert executed.outcome == "timed_out"
    assert executor.left_running(CALL_ID)
    release.set()
    pool.shutdown()
    assert not executor.left_running(CALL_ID)


async def test_run_7_a_call_that_got_no_thread_says_it_was_not_executed() -> None:
    """All threads are taken: it never starts, also not later."""
    release, ran = threading.Event(), list[str]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(release.wait, 60)
        executor = CodeExecutor(pool)
        tool = sync_tool(lambda: ran.append("late"), SOON)
        executed = await executor.execute(tool, NOTHING, CONTEXT)
        assert not executor.left_running(CALL_ID)
        release.set()
    assert executed.outcome == "timed_out"
    assert executed.result.message == ("probe was not executed: no thread was free for 0.02 s.")
    assert ran == []


async def test_r_19_cancelling_the_call_cancels_an_async_tool(pool: ThreadPoolExecutor) -> None:
    """The tool cleans up first, then the cancellation goes on."""
    started, seen = asyncio.Event(), list[str]()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    executor = CodeExecutor(pool)
    call = asyncio.create_task(executor.execute(async_tool(hang), NOTHING, CONTEXT))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert seen == ["cleaned up"]
    assert not executor.left_running(CALL_ID)


async def test_r_19_cancelling_the_call_leaves_a_sync_tool_in_its_thread(
    pool: ThreadPoolExecutor,
) -> None:
    """Its outcome is unknown: code of the call still runs."""
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(60)

    executor = CodeExecutor(pool)
    call = asyncio.create_task(executor.execute(sync_tool(block), NOTHING, CONTEXT))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert executor.left_running(CALL_ID)
    assert not executor.left_running("call_of_somebody_else")
    release.set()
    pool.shutdown()
    assert not executor.left_running(CALL_ID)


async def test_r_19_cancelling_a_call_that_waits_for_a_thread_keeps_it_from_running() -> None:
    """It is aborted, not unknown."""
    release, ran = threading.Event(), list[str]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(release.wait, 60)
        executor = CodeExecutor(pool)
        tool = sync_tool(lambda: ran.append("late"))
        call = asyncio.create_task(executor.execute(tool, NOTHING, CONTEXT))
        while not executor.left_running(CALL_ID):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not executor.left_running(CALL_ID)
        release.set()
    assert ran == []


async def test_run_9_a_pool_that_shuts_down_is_an_error_not_a_hang() -> None:
    """Before the call, and while it waits for a thread; it was not executed."""
    release = threading.Event()
    pool = ThreadPoolExecutor(1)
    pool.submit(release.wait, 60)
    tool = sync_tool(lambda: "never")
    call = asyncio.create_task(run(tool, pool))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pool.shutdown(wait=False, cancel_futures=True)
    stopping = Executed(
        "error",
        ToolResult(message="probe was not executed: the worker is stopping."),
        Failure(code="worker_stopping", transient=True),
    )
    assert await call == stopping
    assert await run(tool, pool) == stopping
    release.set()
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


async def returned(value: object, hint: object) -> Executed:
    """Run a tool with that return annotation that returns `value`."""

    def probe() -> object:
        """Probe."""
        return value

    probe.__annotations__["return"] = hint
    return await run(registered(probe), None)


@pytest.mark.parametrize(
    ("value", "hint", "words"),
    [
        ("3", int, "result should be a valid integer, got a string"),
        (True, int, "result should be a valid integer, got a boolean"),
        (None, str, "result should be a valid string, got null"),
        ("text", None, "result should be None, got a string"),
        ({"a": [1, "canary"]}, dict[str, list[int]], "result.a[1] should be a valid integer"),
        ({"lines": [1]}, Report, "result.lines[0] should be a valid string, got an integer"),
        ([1], tuple[int, ...], "result should be a valid tuple, got an array"),
        (Report(lines=[]), str, "result should be a valid string, got Report"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_tool_7_a_result_that_does_not_fit_its_annotation_is_an_error(
    value: object, hint: object, words: str
) -> None:
    """With the place, without the value; the model learns that it ran."""
    executed = await returned(value, hint)
    assert executed.outcome == "error"
    assert executed.failure == Failure(code="result_invalid", transient=False)
    message = str(executed.result.message)
    assert message.startswith("probe returned what its return type does not allow: ")
    assert words in message
    assert message.endswith("It was executed.")
    assert "canary" not in message


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (3, float),
        (None, str | None),
        (Report(lines=["a"]), Report),
        ([Report(lines=["a"])], list[Report]),
        ({"lines": ["a"]}, Report),
        ({"a": 1}, dict[str, int]),
        ("text", Annotated[str, "What was found."]),
        (7, object),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_tool_7_a_result_that_fits_is_kept(value: object, hint: object) -> None:
    """The neighbours of each refusal."""
    assert (await returned(value, hint)).outcome == "ok"


async def test_tool_7_what_an_awaitable_brings_is_checked(pool: ThreadPoolExecutor) -> None:
    """Async functions, and sync ones that return a coroutine."""

    async def count() -> int:
        """Count."""
        return 3

    async def miscount() -> int:
        """Count."""
        return cast("int", "3")

    def later() -> Awaitable[int]:
        """Count later."""
        return count()

    @functools.wraps(miscount)
    def wrapped() -> Awaitable[int]:
        return miscount()

    assert [
        (await run(registered(one), pool)).outcome for one in (count, miscount, later, wrapped)
    ] == ["ok", "error", "ok", "error"]


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ({1}, "result_invalid", "the result of probe: result is a set"),
        (float("nan"), "result_invalid", "result is the number nan"),
        ("a\ud800", "result_invalid", "lone surrogate at character 1"),
        (Hostile(), "result_invalid", "returned what cannot be read: OSError: gone"),
        (
            "x" * 20_000_000,
            "result_too_large",
            "the result of probe is too large: at least 20000002 bytes, the bound is 262144",
        ),
    ],
    ids=["set", "nan", "surrogate", "hostile", "20 MB"],
)
async def test_log_5_a_result_that_cannot_be_stored_is_a_tool_error(
    pool: ThreadPoolExecutor, value: object, code: str, words: str
) -> None:
    """Named tool, place or size, and that it ran; sync and async."""
    for tool in both(lambda: value):
        executed = await run(tool, pool)
        assert executed.outcome == "error"
        assert executed.failure == Failure(code=code, transient=False)
        assert words in str(executed.result.message)
        assert str(executed.result.message).endswith("It was executed.")


async def test_tool_2_what_a_tool_prints_is_not_its_result(
    pool: ThreadPoolExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes where the process prints."""
    executed = await run(sync_tool(lambda: print("to stdout")), pool)
    assert executed == Executed("ok", ToolResult(parts=(JsonPart(value=None),)))
    assert capsys.readouterr().out == "to stdout\n"
