"""A blob store that is away, full or broken while a result is to be kept (TOOL-6, S5, R-19)."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from psych_runtime.api import interrupt
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.errors import (
    BlobError,
    BlobStoreClosed,
    BlobStoreFull,
    BlobStoreUnusable,
    BlobUnavailable,
)
from psych_runtime.ports.store import Store
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.common import BlobRef
from psych_schema.record import AttemptEnded, ToolCompleted, ToolStarted
from tests.functional.engine.behaviour.talk import Tool, knows, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, eventually, of_type, only
from tests.functional.engine.results.desk import (
    CAT,
    Reader,
    Turn,
    desk,
    made,
    read,
    search,
)

LONG: Final = "long\n" * 1000


class Failing(MemoryBlobStore):
    """Fails each put for as long as it is told to, or hangs in it."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.failures = 0
        self.keeps, self.gives = asyncio.Event(), asyncio.Event()
        self.keeps.set()
        self.gives.set()
        self.puts = self.reads = 0
        self.cancelled = 0

    def fail(self, failure: Exception, times: int = 1 << 30) -> None:
        """Fail `times` puts from now on."""
        self.failure, self.failures = failure, times

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Fail, hang, or keep the bytes."""
        self.puts += 1
        try:
            await self.keeps.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None and self.failures:
            self.failures -= 1
            raise self.failure
        return await super().put(tenant, run_id, data, media_type=media_type)

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Hang, or give the bytes."""
        self.reads += 1
        await self.gives.wait()
        return await super().read(tenant, run_id, hash, start=start, stop=stop)


class Bench:
    """A tool that counts, and brings much or a file."""

    def __init__(self, value: object) -> None:
        self.ran = 0
        self._value = value

    def tool(self, *, safe: bool = False) -> Tool:
        """Return it."""

        @tool(name="act", safe_to_retry=safe)
        async def act(context: ToolContext) -> object:
            """Act."""
            self.ran += 1
            return self._value

        return act


AWAY: Final = BlobUnavailable(problem="away")
VALUES: Final = pytest.mark.parametrize(
    "value", [LONG, Attachment(CAT, "image/png"), ["a", Attachment(CAT, "image/png"), LONG]]
)


@VALUES
async def test_tool_6_a_result_is_kept_once_the_blob_store_is_back(
    store: Store, crew: Crew, value: object
) -> None:
    """However often it had to be tried; the tool ran once."""
    blob, bench = Failing(), Bench(value)
    blob.fail(AWAY, times=3)
    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act")))
    assert found.answer == "Done."
    assert only(found.every(ToolCompleted)).outcome == "ok"
    kept = len(await blob.listed(ACME.tenant, found.run_id))
    assert (bench.ran, blob.puts) == (1, 3 + kept)
    assert kept


@VALUES
@pytest.mark.parametrize(
    "failure",
    [
        BlobStoreFull(problem="no space left"),
        BlobStoreUnusable(problem="it is a file", remedy="move it"),
        BlobStoreClosed(),
    ],
    ids=lambda one: one.code,
)
async def test_s5_a_result_that_nothing_keeps_is_an_error_of_its_call(
    store: Store,
    crew: Crew,
    caplog: pytest.LogCaptureFixture,
    value: object,
    failure: BlobError,
) -> None:
    """It is not waited for what does not come; the model is told that the call was executed."""
    blob, bench = Failing(), Bench(value)
    blob.fail(failure)
    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act")))
    assert found.answer == "Done."
    [(outcome, code, words)] = found.calls
    assert (outcome, code) == ("error", failure.code)
    assert words.startswith("what act returned could not be kept: the blob store ")
    assert words.endswith(". It was executed.")
    assert failure.args[0] not in words  # it is for whoever runs the store
    assert [one for one in caplog.messages if failure.args[0] in one]
    assert (bench.ran, blob.puts) == (1, 1)
    ended = only(found.every(ToolCompleted))
    assert (ended.attachments, ended.elided, ended.shown_bytes) == ((), None, None)


@VALUES
async def test_s5_a_bug_of_a_blob_store_is_an_error_of_the_call(
    store: Store, crew: Crew, value: object
) -> None:
    """What its port does not know of: the call was executed, and is not repeated."""
    blob, bench = Failing(), Bench(value)
    blob.fail(RuntimeError("a bug"))
    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act")))
    [(outcome, code, words)] = found.calls
    assert (outcome, code) == ("error", "blob_store_unusable")
    assert words == (
        "what act returned could not be kept: the blob store cannot be used. It was executed."
    )
    assert bench.ran == 1


async def test_tool_6_a_short_result_needs_no_blob_store(store: Store, crew: Crew) -> None:
    """The neighbour: whatever is wrong with it."""
    blob, bench = Failing(), Bench("short")
    blob.fail(BlobStoreClosed())
    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act")))
    assert found.calls == [("ok", "", "short")]
    assert blob.puts == 0


def _fails(blob: Failing) -> None:
    blob.fail(AWAY)


def _hangs(blob: Failing) -> None:
    blob.keeps.clear()


BROKEN: Final = pytest.mark.parametrize("breaks", [_fails, _hangs])


@BROKEN
async def test_r_19_an_interrupt_ends_a_run_whose_blob_store_is_away(
    store: Store, crew: Crew, breaks: Callable[[Failing], None]
) -> None:
    """Also where it does not answer at all; that the call was executed stands in the log."""
    blob, bench = Failing(), Bench(LONG)
    breaks(blob)
    model = Reader([("act", {})], "never said")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    run = await admit(store, desk("act"))
    await eventually(lambda: blob.puts)
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    [(outcome, code, words)] = found.calls
    assert (outcome, code) == ("error", "blob_unavailable")
    assert words.endswith(". It was executed.")
    assert len(model.requests) == 1


async def test_run_4_what_may_not_be_interrupted_is_kept_before_the_run_ends(
    store: Store, crew: Crew
) -> None:
    """The Run was to stop already when there was something to keep; a store takes its time."""
    blob, begun, go_on = Failing(), asyncio.Event(), asyncio.Event()
    blob.keeps.clear()

    @tool(interruptible=False)
    async def act() -> str:
        """Act."""
        begun.set()
        await go_on.wait()
        return LONG

    model = Reader([("act", {})], "never said")
    worker = await crew.start(made(store, model, act, blob=blob, offload_bytes=1024))
    run = await admit(store, desk("act"))
    await begun.wait()
    receipt = await interrupt(store, run, scope=ACME)
    await knows(worker, run, receipt.seq)
    go_on.set()
    await eventually(lambda: blob.puts)
    blob.keeps.set()
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    ended = only(found.every(ToolCompleted))
    assert ended.outcome == "ok"
    assert ended.elided is not None
    assert await blob.read(ACME.tenant, run, ended.elided.blob.hash) == LONG.encode()


@BROKEN
async def test_r_19_a_deadline_ends_a_run_whose_blob_store_is_away(
    store: Store, crew: Crew, breaks: Callable[[Failing], None]
) -> None:
    """As it ends any other."""
    blob, bench = Failing(), Bench(LONG)
    breaks(blob)
    model = Reader([("act", {})], "never said")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    run = await admit(store, desk("act"), deadline_seconds=0.5)
    found = await told(store, run)
    assert found.end == ("timed_out", "timed_out")
    assert bench.ran <= 1


@pytest.mark.parametrize("asks", [read(), search("long")], ids=["read", "search"])
async def test_r_19_an_interrupt_ends_a_run_that_reads_from_a_store_that_hangs(
    store: Store, crew: Crew, asks: Turn
) -> None:
    """Nothing was read, so nothing has happened."""
    blob, bench = Failing(), Bench(LONG)
    blob.gives.clear()
    model = Reader([("act", {})], asks, "never said")
    await crew.start(made(store, model, bench.tool(), blob=blob, offload_bytes=1024))
    run = await admit(store, desk("act"))
    await eventually(lambda: blob.reads)
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    assert [outcome for outcome, _, _ in found.calls] == ["ok"]


async def test_run_9_a_drain_waits_for_the_blob_store(store: Store, crew: Crew) -> None:
    """A worker that stops has its time of grace, and the result is not lost."""
    blob, bench = Failing(), Bench(LONG)
    blob.fail(AWAY)
    model = Reader([("act", {})], "Done.")
    runtime = made(store, model, bench.tool(), blob=blob, offload_bytes=1024)
    first = await crew.start(runtime, grace_seconds=20.0)
    run = await admit(store, desk("act"))
    await eventually(lambda: blob.puts)
    first.stop()
    puts = blob.puts
    await eventually(lambda: blob.puts > puts)
    blob.failures = 0
    await crew.running(first)
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    await crew.start(runtime)
    found = await told(store, run)
    assert found.answer == "Done."
    assert bench.ran == 1


async def test_run_9_a_drain_ends_without_the_blob_store(store: Store, crew: Crew) -> None:
    """When the time of grace is over the call is an error, and the next worker goes on."""
    blob, bench = Failing(), Bench(LONG)
    blob.keeps.clear()
    model = Reader([("act", {})], "Done.")
    runtime = made(store, model, bench.tool(), blob=blob, offload_bytes=1024)
    first = await crew.start(runtime, grace_seconds=0.1)
    run = await admit(store, desk("act"))
    await eventually(lambda: blob.puts)
    await crew.stop(first)
    blob.keeps.set()
    await crew.start(runtime)
    found = await told(store, run)
    assert found.answer == "Done."
    assert [code for _, code, _ in found.calls] == ["blob_unavailable"]
    assert [one.reason for one in found.every(AttemptEnded)] == ["drained"]
    assert (bench.ran, blob.cancelled) == (1, 1)


@pytest.mark.parametrize(("safe", "outcome"), [(True, "ok"), (False, "unknown")])
async def test_run_1_who_dies_before_the_result_was_kept_leaves_an_open_call(
    store: Store, flaky: Flaky, crew: Crew, safe: bool, outcome: str
) -> None:
    """A safe one runs again under its key; of another nobody knows."""
    blob, bench = Failing(), Bench(LONG)
    blob.fail(AWAY)
    model = Reader([("act", {})], "Done.")
    act = bench.tool(safe=safe)
    first = await crew.start(made(flaky, model, act, blob=blob, offload_bytes=1024))
    run = await admit(store, desk("act"))
    await eventually(lambda: blob.puts)

    async def started() -> bool:
        return bool(await of_type(store, run, ToolStarted))

    await eventually(started)
    await die(flaky, store, first)
    other = MemoryBlobStore()
    await crew.start(made(store, model, act, blob=other, offload_bytes=1024))
    found = await told(store, run)
    assert found.answer == "Done."
    assert only(found.every(ToolCompleted)).outcome == outcome
    assert bench.ran == 1 + safe
    assert len(await other.listed(ACME.tenant, run)) == safe
