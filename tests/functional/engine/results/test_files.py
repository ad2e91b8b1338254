"""Images and files of tools: kept beside the log, sent in the next request (TOOL-6, S5)."""

from collections.abc import Callable
from typing import Final

import pytest

from psych_runtime import MappingSecrets
from psych_runtime.core.preview import MAX_ATTACHED_BYTES
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.tools.attachment import Attachment
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import ToolCompleted
from psych_schema.spec import BearerCredential, HttpTool
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.harness import ACME, Crew, admit, only
from tests.functional.engine.results.desk import (
    CAT,
    Reader,
    attached,
    desk,
    http_get,
    last_answers,
    made,
)
from tests.functional.tools.http_service import Answer, answer, service

SECRET: Final = "s3cr3t-of-the-shop"


@pytest.fixture
def blob_kind() -> str:
    """The quickest: blob stores are compared elsewhere."""
    return "memory"


def picture() -> Attachment:
    """Take a picture."""
    return Attachment(CAT, "image/png", name="cat.png")


async def picture_later() -> Attachment:
    """Take a picture."""
    return picture()


@pytest.mark.parametrize("function", [picture, picture_later])
async def test_tool_6_an_image_is_in_the_next_request_and_by_name_in_the_log(
    store: Store, crew: Crew, blob: BlobStore, function: Callable[..., object]
) -> None:
    """And in each behind it; the log has no byte of it."""
    name = function.__name__
    model = Reader([(name, {})], [(name, {})], "A cat.")
    await crew.start(made(store, model, function, blob=blob))
    found = await told(store, await admit(store, desk(name)))
    assert found.answer == "A cat."
    ref = picture().ref
    first, second = found.every(ToolCompleted)
    for ended in (first, second):
        assert (ended.outcome, ended.attachments) == ("ok", (ref,))
        assert ended.result is not None
        assert ended.result.parts == (BlobPart(blob=ref, name="cat.png"),)
        assert (ended.elided, ended.shown_bytes) == (None, None)
    assert model.requests[0].attachments == {}
    for request in model.requests[1:]:
        assert attached(request) == [CAT]
        assert list(request.attachments) == [ref.hash]
        assert [one.name for one in request.tools] == [name]
    stored = await blob.listed(ACME.tenant, found.run_id)
    assert [(one.hash, one.bytes) for one in stored] == [(ref.hash, len(CAT))]
    assert all("89504e47" not in one.model_dump_json() for one in found.records)


async def test_tool_6_files_stand_in_their_places_among_texts(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """As the tool gave them, where nothing is left out."""
    files = Attachment(b"one", "image/gif"), Attachment(b"two", "application/pdf", name="b.pdf")

    def act() -> list[object]:
        """Act."""
        return ["first", files[0], {"then": 2}, files[1]]

    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, act, blob=blob))
    await told(store, await admit(store, desk("act")))
    assert model.requests[1].messages[-1].parts == (
        TextPart(text="first"),
        BlobPart(blob=files[0].ref),
        JsonPart(value={"then": 2}),
        BlobPart(blob=files[1].ref, name="b.pdf"),
    )
    assert attached(model.requests[1]) == [b"one", b"two"]


async def test_tool_6_files_beside_a_text_that_is_shown_in_part_are_sent(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Behind it, whether the log or a blob keeps the text."""

    def act() -> list[object]:
        """Act."""
        return ["x" * 100_000, picture(), "y" * 100_000]

    for offload_bytes in (1024, 256 * 1024):
        model = Reader([("act", {})], "Done.")
        worker = await crew.start(made(store, model, act, blob=blob, offload_bytes=offload_bytes))
        found = await told(store, await admit(store, desk("act")))
        await crew.stop(worker)
        shown, sent = model.requests[1].messages[-1].parts
        assert isinstance(shown, TextPart)
        assert "of 200001 are left out here" in shown.text
        assert shown.text.startswith("x" * 1365 + "\n[Bytes 1365 to 199319")
        assert sent == BlobPart(blob=picture().ref, name="cat.png")
        assert attached(model.requests[1]) == [CAT]
        assert only(found.every(ToolCompleted)).attachments == (picture().ref,)


async def test_s5_a_file_without_a_blob_store_is_an_error_that_says_so(
    store: Store, crew: Crew
) -> None:
    """It was executed; the Run goes on, and nothing is tried again."""
    calls: list[int] = []

    def shoot() -> list[object]:
        """Take a picture of 20 MB."""
        calls.append(1)
        return ["Here.", Attachment(bytes(20_000_000), "image/png")]

    model = Reader([("shoot", {})], "Sorry.")
    await crew.start(made(store, model, shoot, blob=None))
    found = await told(store, await admit(store, desk("shoot")))
    assert found.answer == "Sorry."
    [(outcome, code, words)] = found.calls
    assert (outcome, code) == ("error", "no_blob_store")
    assert words == (
        "what shoot returned could not be kept: it has an image or file, and this Runtime "
        "has no blob store: pass blob=. It was executed."
    )
    assert calls == [1]
    assert only(found.every(ToolCompleted)).attachments == ()


@pytest.mark.parametrize("text_bytes", [0, MAX_ATTACHED_BYTES // 4])
async def test_s5_what_no_request_has_room_for_is_told_of_in_words(
    store: Store, crew: Crew, blob: BlobStore, text_bytes: int
) -> None:
    """Alone, behind others, and beside others of its turn; every request can be sent."""
    half = MAX_ATTACHED_BYTES // 2

    def shoot(n: int, size: int) -> list[object]:
        """Take a picture.

        Args:
            n: Which.
            size: How large.
        """
        text = [str(n) * text_bytes] if text_bytes else []
        return [*text, Attachment(bytes([n]) + bytes(size - 1 - text_bytes), "image/png")]

    model = Reader(
        [("shoot", {"n": 0, "size": MAX_ATTACHED_BYTES + 1})],
        [("shoot", {"n": n, "size": half}) for n in range(3)],
        [("shoot", {"n": 4, "size": text_bytes + 1})],
        "Done.",
    )
    await crew.start(made(store, model, shoot, blob=blob))
    spec = desk("shoot", shown_bytes=None)
    found = await told(store, await admit(store, spec))
    assert found.answer == "Done."
    assert [(outcome, code) for outcome, code, _ in found.calls] == [("ok", "")] * 5
    parts: list[Part] = []
    for request in model.requests:
        parts = [part for message in request.messages for part in message.parts]
        named = {one.blob.hash: one.blob.bytes for one in parts if isinstance(one, BlobPart)}
        assert sum(named.values()) <= MAX_ATTACHED_BYTES
        assert set(request.attachments) == set(named)
    told_of = [one.text for one in parts if isinstance(one, TextPart) and "cannot be" in one.text]
    assert len(told_of) >= 3
    alone = MAX_ATTACHED_BYTES + 1 - text_bytes
    assert told_of[0].startswith(f"[a file, image/png, {alone} bytes, cannot be shown: the images")


async def test_tool_6_a_large_file_of_text_that_is_not_sent_needs_no_room(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """It is read in parts."""

    def act() -> Attachment:
        """Act."""
        return Attachment(b"a,b\n" * 10_000_000, "text/csv")

    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, act, blob=blob))
    found = await told(store, await admit(store, desk("act")))
    assert [outcome for outcome, _, _ in found.calls] == ["ok"]
    assert "text/csv, 40000000 bytes, is not shown here" in only(last_answers(model.requests[1]))
    assert model.requests[1].attachments == {}


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ({"image": picture()}, "result.image is an Attachment inside a value"),
        ([picture()] * 65, "result is 65 attachments, which cannot be stored"),
        (b"bytes", "return an Attachment(data, media_type), or text"),
    ],
)
async def test_tool_7_files_in_the_wrong_place_are_refused_in_words(
    store: Store, crew: Crew, blob: BlobStore, returned: object, words: str
) -> None:
    """And nothing is stored."""

    def act() -> object:
        """Act."""
        return returned

    model = Reader([("act", {})], "Done.")
    await crew.start(made(store, model, act, blob=blob))
    found = await told(store, await admit(store, desk("act")))
    [(outcome, code, said)] = found.calls
    assert (outcome, code) == ("error", "result_invalid")
    assert words in said
    assert said.endswith("It was executed.")
    assert await blob.listed(ACME.tenant, found.run_id) == []


async def test_tool_7_a_return_annotation_may_name_an_attachment(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """What does not fit it is an error."""

    def fits() -> list[str | Attachment] | None:
        """Fit."""
        return ["one", picture()]

    def does_not() -> Attachment:
        """Do not fit."""
        return "no picture"  # type: ignore[return-value]

    model = Reader([("fits", {}), ("does_not", {})], "Done.")
    await crew.start(made(store, model, fits, does_not, blob=blob))
    found = await told(store, await admit(store, desk("fits", "does_not")))
    ends = {(outcome, code) for outcome, code, _ in found.calls}
    assert ends == {("ok", ""), ("error", "result_invalid")}


def _tool(url: str, *, secret: bool = False) -> HttpTool:
    return HttpTool.model_validate(
        http_get("ask", url).model_dump()
        | {"credential": BearerCredential(secret="shop").model_dump() if secret else None}
    )


async def _asked(
    store: Store, crew: Crew, blob: BlobStore | None, there: Answer, *, secret: bool = False
) -> tuple[Reader, ToolCompleted, str]:
    """Let a service answer once; return the model, the call's end, and what it says."""
    model = Reader([("ask", {})], "Done.")
    async with service(there) as one:
        runtime = made(store, model, blob=blob)
        runtime.secrets = MappingSecrets({"shop": SECRET})
        await crew.start(runtime)
        found = await told(store, await admit(store, desk(_tool(one.url, secret=secret))))
        await runtime.aclose()
    assert found.answer == "Done."
    [(_, _, said)] = found.calls
    return model, only(found.every(ToolCompleted)), said


@pytest.mark.parametrize(
    "media_type",
    ["image/png", "IMAGE/PNG; charset=binary", "application/octet-stream", "application/pdf"],
)
async def test_tool_4_a_service_may_answer_a_file(
    store: Store, crew: Crew, blob: BlobStore, media_type: str
) -> None:
    """It is an attachment, byte for byte, of the type that the service says."""
    model, ended, _ = await _asked(store, crew, blob, answer(200, CAT, content_type=media_type))
    assert (ended.outcome, [one.media_type for one in ended.attachments]) == (
        "ok",
        [media_type.partition(";")[0].lower()],
    )
    assert attached(model.requests[1]) == [CAT]


async def test_tool_4_a_file_without_a_blob_store_is_an_error(store: Store, crew: Crew) -> None:
    """As that of a function."""
    _, ended, said = await _asked(store, crew, None, answer(200, CAT, content_type="image/png"))
    assert ended.failure is not None
    assert ended.failure.code == "no_blob_store"
    assert said.startswith("what ask returned could not be kept: ")


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("image/png", CAT + SECRET.encode() + CAT),
        ("application/octet-stream", SECRET.encode()),
        (f"application/{SECRET}", CAT),
    ],
)
async def test_sec_2_a_file_with_the_secret_in_it_is_refused(
    store: Store, crew: Crew, blob: BlobStore, media_type: str, body: bytes
) -> None:
    """Nothing could be taken out of it; nothing is kept, and no word says it."""
    there = answer(200, body, content_type=media_type)
    model, ended, said = await _asked(store, crew, blob, there, secret=True)
    assert ended.failure is not None
    assert ended.failure.code == "answer_unsupported"
    assert "It was executed." in said
    assert SECRET not in ended.model_dump_json()
    assert await blob.runs() == []
    assert model.requests[1].attachments == {}


@pytest.mark.parametrize("media_type", ["image", "image/p ng", "/", "image/" + "x" * 300, "é/x"])
async def test_tool_4_a_file_of_no_type_is_refused(
    store: Store, crew: Crew, blob: BlobStore, media_type: str
) -> None:
    """The model's server would have to be told what it is."""
    there = answer(200, CAT, content_type=media_type)
    _, ended, said = await _asked(store, crew, blob, there)
    assert ended.failure is not None
    assert (ended.outcome, ended.failure.code) == ("error", "answer_unsupported")
    assert "It was executed." in said
