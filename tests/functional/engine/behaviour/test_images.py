"""Images and files that messages name: read for the model, and only for it (MOD-9, R-23)."""

from base64 import b64encode
from contextlib import aclosing
from typing import cast

from pydantic import JsonValue

from psych_runtime.api import dispatch, publish
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.core.preview import MAX_ATTACHED_BYTES
from psych_runtime.errors import BlobUnavailable
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing import LogBuilder
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.policy import AllowAll
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, ToolMessage
from psych_schema.record import ModelFailed, ModelStarted, ToolResult
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.harness import ACME, Crew, agent, registry, texts_of
from tests.servers.openai_server import OpenAIServer, answer, finish_chunk, sse, text_chunk

_PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
_URL = f"data:image/png;base64,{b64encode(_PNG).decode()}"
_WHOLE = answer(sse(text_chunk("A cat."), finish_chunk(), "[DONE]"))
_NOWHERE = BlobRef(hash="0" * 64, bytes=3, media_type="image/png")


class _Outage(MemoryBlobStore):
    """Fails its first read, as a blob store does that is away."""

    failures = 1

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Fail once."""
        if self.failures:
            self.failures -= 1
            raise BlobUnavailable(problem="away")
        return await super().read(tenant, run_id, hash, start=start, stop=stop)


def look() -> str:
    """Look."""
    return "seen"


def _runtime(store: Store, model: ModelClient, blob: MemoryBlobStore | None) -> Runtime:
    return Runtime(store=store, model=model, blob=blob, registry=registry(look), policy=AllowAll())


async def _asked(store: Store, *refs: BlobRef, continues: str | None = None) -> str:
    """Dispatch a Run whose input names blobs."""
    version = await publish(store, agent(), scope=ACME)
    parts: list[JsonValue] = [{"kind": "text", "text": "What is it?"}]
    parts += [cast("JsonValue", BlobPart(blob=ref).model_dump()) for ref in refs]
    made = await dispatch(store, version, scope=ACME, input={"message": parts}, continues=continues)
    return made.run_id


async def _kept(blob: MemoryBlobStore, run_id: str, data: bytes = _PNG) -> BlobRef:
    return await blob.put(ACME.tenant, run_id, data, media_type="image/png")


async def test_mod_9_an_image_of_a_user_is_sent(store: Store, crew: Crew) -> None:
    """As the format has it, in its place among the parts; the log has the name only."""
    blob = MemoryBlobStore()
    ref = await _kept(blob, "run_of_nobody")
    run = await _asked(store, ref)
    await _kept(blob, run)
    async with (
        OpenAIServer(_WHOLE) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        await crew.start(_runtime(store, client, blob))
        found = await told(store, run)
        [seen] = server.seen
    assert found.end == ("completed", None)
    assert cast("list[JsonValue]", seen.json["messages"])[-1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": _URL}},
        ],
    }
    assert all(_URL not in one.model_dump_json() for one in found.records)


async def test_mod_9_an_image_of_a_tool_is_sent_after_a_restart(store: Store, crew: Crew) -> None:
    """One worker got it and is gone; the next one's request has it, behind the tool's answer."""
    blob = MemoryBlobStore()
    version = await publish(store, agent("look"), scope=ACME)
    log = LogBuilder()
    log.admit("Look.", version=version.hash)
    ref = await _kept(blob, log.run_id)
    log.claim()
    [call] = log.turn(["look"])
    log.start(call)
    log.finish(call, result=ToolResult(parts=(BlobPart(blob=ref, name="cat.png"),)))
    log.end("drained")
    await log.commit_to(store)
    async with (
        OpenAIServer(_WHOLE) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        await crew.start(_runtime(store, client, blob))
        found = await told(store, log.run_id)
        [seen] = server.seen
    assert found.end == ("completed", None)
    *_, result, shown = cast("list[JsonValue]", seen.json["messages"])
    assert result == {
        "role": "tool",
        "tool_call_id": call,
        "content": "What it returned follows in the next user message.",
    }
    assert shown == {
        "role": "user",
        "content": [
            {"type": "text", "text": f"Returned by the call {call}:"},
            {"type": "image_url", "image_url": {"url": _URL}},
        ],
    }


async def test_mod_9_an_image_of_an_earlier_run_is_sent_again(store: Store, crew: Crew) -> None:
    """A Run that goes on with a thread reads what its predecessors' messages name."""
    blob, model = MemoryBlobStore(), FakeModel().turn("A cat.").turn("Grey.").turn("Yes.")
    ref = await _kept(blob, "run_of_nobody")
    run = await _asked(store, ref)
    await _kept(blob, run)
    await crew.start(_runtime(store, model, blob))
    await told(store, run)
    second = await _asked(store, continues=run)
    await told(store, second)
    third = await told(store, await _asked(store, continues=second))
    assert third.end == ("completed", None)
    expected = {ref.hash: b64encode(_PNG).decode()}
    assert [one.attachments for one in model.requests] == [expected] * 3


async def test_mod_9_a_blob_that_is_not_there_fails_the_run(store: Store, crew: Crew) -> None:
    """A typed reason, before anything is sent; another tenant's and Run's is not there either."""
    blob, model = MemoryBlobStore(), FakeModel().turn("never")
    ref = await _kept(blob, "run_of_nobody")
    await blob.put("globex", "run_of_nobody", _PNG, media_type="image/png")
    await crew.start(_runtime(store, model, blob))
    for one in (_NOWHERE, ref):
        found = await told(store, await _asked(store, one))
        assert found.end == ("failed", "blob_not_found")
        [failed] = found.every(ModelFailed)
        assert (failed.next, failed.failure.transient) == ("give_up", False)
    assert model.requests == []


async def test_mod_9_without_a_blob_store_the_reason_says_so(store: Store, crew: Crew) -> None:
    """Nobody could read it."""
    model = FakeModel().turn("never")
    await crew.start(_runtime(store, model, None))
    found = await told(store, await _asked(store, _NOWHERE))
    assert found.end == ("failed", "unsendable_request")
    [failed] = found.every(ModelFailed)
    assert failed.said is not None
    assert "pass blob=" in (failed.said.message or "")
    assert model.requests == []


async def test_mod_9_a_blob_store_that_is_away_is_asked_again(store: Store, crew: Crew) -> None:
    """It is a transient failure of the call, and no model's."""
    blob, model = _Outage(), FakeModel().turn("A cat.")
    ref = await _kept(blob, "run_of_nobody")
    run = await _asked(store, ref)
    await _kept(blob, run)
    await crew.start(_runtime(store, model, blob))
    found = await told(store, run)
    assert found.end == ("completed", None)
    [failed] = found.every(ModelFailed)
    assert (failed.next, failed.failure.code) == ("retry", "blob_unavailable")
    assert len(found.every(ModelStarted)) == 2


async def test_sec_3_what_is_too_large_together_is_not_read(store: Store, crew: Crew) -> None:
    """By what the messages say, in words; and by what there is when they say something else."""
    blob, model = MemoryBlobStore(), FakeModel().turn("I cannot see it.")
    large = _NOWHERE.model_copy(update={"bytes": MAX_ATTACHED_BYTES + 1})
    data = bytes(MAX_ATTACHED_BYTES + 1)
    ref = await _kept(blob, "run_of_nobody", data)
    lying = await _asked(store, ref.model_copy(update={"bytes": 1}))
    await _kept(blob, lying, data)
    await crew.start(_runtime(store, model, blob))
    assert (await told(store, lying)).end == ("failed", "unsendable_request")
    assert model.requests == []
    assert (await told(store, await _asked(store, large))).end == ("completed", None)
    [request] = model.requests
    [line] = [text for text in texts_of(request.messages) if "cannot be shown" in text]
    assert line.startswith(f"What is it?[a file, image/png, {MAX_ATTACHED_BYTES + 1} bytes, ")
    assert request.attachments == {}


async def test_mod_9_each_blob_is_read_once_in_an_attempt(store: Store, crew: Crew) -> None:
    """The second turn has it already."""

    class Counting(MemoryBlobStore):
        """Counts reads."""

        reads = 0

        async def read(
            self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
        ) -> bytes:
            """Count."""
            self.reads += 1
            return await super().read(tenant, run_id, hash, start=start, stop=stop)

    blob, model = Counting(), FakeModel().turn("", [("look", {})]).turn("A cat.")
    ref = await _kept(blob, "run_of_nobody")
    version = await publish(store, agent("look"), scope=ACME)
    parts: JsonValue = [cast("JsonValue", BlobPart(blob=ref).model_dump())]
    made = await dispatch(store, version, scope=ACME, input={"message": parts})
    await _kept(blob, made.run_id)
    await crew.start(_runtime(store, model, blob))
    found = await told(store, made.run_id)
    assert found.end == ("completed", None)
    assert isinstance(model.requests[1].messages[-1], ToolMessage)
    assert model.requests[0].attachments == model.requests[1].attachments != {}
    assert blob.reads == 1
