"""How much of a result a model is shown, and how much the log keeps (TOOL-6, LOG-5)."""

import json
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest
from pydantic import JsonValue

from psych_runtime.api import publish
from psych_runtime.core.preview import compact_text_of, preview, text_of
from psych_runtime.errors import InvalidArgument, InvalidSpec
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.runtime import results
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing import FakeModel
from psych_runtime.testing.fake_model import ScriptedCall
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.results import to_result
from psych_schema.model import BlobPart, JsonPart, ModelRequest, Part, TextPart
from psych_schema.record import ToolCompleted
from tests.functional.engine.behaviour.talk import Told, told
from tests.functional.engine.harness import ACME, Crew, admit, only, texts_of
from tests.functional.engine.results.desk import (
    Reader,
    Turn,
    attached,
    content_of,
    desk,
    http_get,
    last_answers,
    made,
    names_in,
    read,
)
from tests.functional.tools.http_service import answer, service

MOST: Final = 256 * 1024
TEXT: Final = "é😀€ab\n" * 800
VALUE: Final[JsonValue] = {"b": ["é😀€ab"] * 500, "a": {"number": 2**63, "part": 0.1}}


@pytest.fixture
def blob_kind() -> str:
    """The quickest: what is kept is the same in each."""
    return "memory"


class Brought(NamedTuple):
    """What came of a tool's one call."""

    told: Told
    requests: list[ModelRequest]

    @property
    def ended(self) -> ToolCompleted:
        """The record of its end."""
        return next(iter(self.told.every(ToolCompleted)))

    @property
    def parts(self) -> Sequence[Part]:
        """What the log has of its result."""
        return self.ended.result.parts if self.ended.result else ()

    @property
    def shown(self) -> str:
        """The text that the model is shown of it."""
        return only(last_answers(self.requests[1]))


async def bring(
    store: Store,
    crew: Crew,
    value: object,
    *turns: Turn | Sequence[ScriptedCall],
    blob: BlobStore | None,
    shown_bytes: int | None = 2048,
    offload_bytes: int = MOST,
) -> Brought:
    """Let a tool return a value, and a model take these turns behind it."""

    def act() -> object:
        """Act."""
        return value

    model = Reader([("act", {})], *turns, "Done.")
    worker = await crew.start(made(store, model, act, blob=blob, offload_bytes=offload_bytes))
    found = await told(store, await admit(store, desk("act", shown_bytes=shown_bytes)))
    await crew.stop(worker)
    assert found.answer == "Done."
    rows = await store.read(ACME.tenant, found.run_id)
    assert max(len((row.content or "").encode()) for row in rows) <= MOST
    return Brought(found, model.requests)


async def kept(blob: BlobStore, run_id: str) -> list[bytes]:
    """Return the blobs of a Run."""
    return [
        await blob.read(ACME.tenant, run_id, one.hash)
        for one in await blob.listed(ACME.tenant, run_id)
    ]


@pytest.mark.parametrize(
    ("value", "part", "media_type"),
    [
        (TEXT, TextPart(text=TEXT), "text/plain"),
        (VALUE, JsonPart(value=VALUE), "application/json"),
    ],
)
class TestTwoBounds:
    """Neither depends on the other."""

    async def test_tool_6_all_is_shown_and_the_log_keeps_it(
        self, store: Store, crew: Crew, blob: BlobStore, value: object, part: Part, media_type: str
    ) -> None:
        """Null shows all, and nothing is too large for the log."""
        found = await bring(store, crew, value, blob=blob, shown_bytes=None)
        assert found.parts == (part,)
        assert (found.ended.elided, found.ended.shown_bytes, found.ended.attachments) == (
            None,
            None,
            (),
        )
        assert found.requests[1].messages[-1].parts == (part,)
        assert [one.name for one in found.requests[1].tools] == ["act"]
        assert await kept(blob, found.told.run_id) == []

    async def test_tool_6_a_part_is_shown_and_the_log_keeps_it(
        self, store: Store, crew: Crew, blob: BlobStore, value: object, part: Part, media_type: str
    ) -> None:
        """It is read from the log."""
        found = await bring(store, crew, value, read(1000, 100), blob=blob)
        whole = text_of([part])
        assert found.parts == (part,)
        assert (found.ended.elided, found.ended.shown_bytes) == (None, 2048)
        assert found.shown == preview(whole, 2048, result=found.ended.call_id)
        assert content_of(only(last_answers(found.requests[2]))) in whole
        assert await kept(blob, found.told.run_id) == []

    async def test_tool_6_a_part_is_shown_without_a_blob_store(
        self, store: Store, crew: Crew, blob: BlobStore, value: object, part: Part, media_type: str
    ) -> None:
        """None is needed for what the log keeps."""
        found = await bring(store, crew, value, read(1000, 100), blob=None)
        assert found.shown == preview(text_of([part]), 2048, result=found.ended.call_id)
        assert content_of(only(last_answers(found.requests[2]))) in text_of([part])

    async def test_tool_6_all_is_shown_and_a_blob_keeps_it(
        self, store: Store, crew: Crew, blob: BlobStore, value: object, part: Part, media_type: str
    ) -> None:
        """The log names the blob, and the model gets its text, as it would without."""
        found = await bring(store, crew, value, blob=blob, shown_bytes=None, offload_bytes=1024)
        whole = compact_text_of([part]).encode()
        [stands] = found.parts
        assert isinstance(stands, BlobPart)
        assert (stands.blob.bytes, stands.blob.media_type) == (len(whole), media_type)
        assert (found.ended.elided, found.ended.shown_bytes) == (None, None)
        assert found.requests[1].messages[-1].parts == (stands,)
        assert attached(found.requests[1]) == [whole]
        assert [one.name for one in found.requests[1].tools] == ["act"]
        assert await kept(blob, found.told.run_id) == [whole]

    async def test_tool_6_a_part_is_shown_and_a_blob_keeps_it(
        self, store: Store, crew: Crew, blob: BlobStore, value: object, part: Part, media_type: str
    ) -> None:
        """The log has what is shown, and where the whole is; no request has the blob."""
        found = await bring(store, crew, value, read(1000, 100), blob=blob, offload_bytes=1024)
        whole = text_of([part])
        assert found.ended.elided is not None
        assert found.ended.elided.blob.media_type == media_type
        assert found.ended.shown_bytes == 2048
        assert found.parts == (TextPart(text=found.shown),)
        assert found.shown == preview(whole, 2048, result=found.ended.elided.handle)
        assert content_of(only(last_answers(found.requests[2]))) in whole
        assert all(one.attachments == {} for one in found.requests)
        assert await kept(blob, found.told.run_id) == [whole.encode()]


@pytest.mark.parametrize("offload_bytes", [1024, MOST])
@pytest.mark.parametrize("letter", ["x", "é", '"', "\x00"])
async def test_tool_6_what_is_shown_is_bounded_in_bytes_of_text(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int, letter: str
) -> None:
    """At the bound all of it is shown; with one byte more its beginning and its end."""
    wide = len(letter.encode())
    at = letter * (2048 // wide)
    for value, is_whole in ((at, True), (f"{at}.", False), (["at", at], False)):
        found = await bring(store, crew, value, blob=blob, offload_bytes=offload_bytes)
        assert (names_in(found.requests[1]) == []) is is_whole
        if not is_whole:
            continue
        assert found.ended.shown_bytes is None
        said = texts_of(found.requests[1].messages[-1:]) + [
            one.decode() for one in attached(found.requests[1])
        ]
        assert "".join(said) == at


def _json_bytes(value: object) -> int:
    return len(to_result("act", value, max_bytes=1 << 30).model_dump_json().encode())


@pytest.mark.parametrize("offload_bytes", [1024, 5000, MOST])
@pytest.mark.parametrize("shown_bytes", [None, 1024])
@pytest.mark.parametrize("make", [str, lambda text: [text]], ids=["text", "value"])
async def test_tool_6_what_the_log_keeps_is_bounded_in_bytes_of_json(
    store: Store,
    crew: Crew,
    blob: BlobStore,
    offload_bytes: int,
    shown_bytes: int | None,
    make: type[str],
) -> None:
    """At the bound it is in the log; with one byte more it is in a blob."""
    room = offload_bytes - _json_bytes(make(""))
    for text, is_kept in (("x" * room, True), ("x" * room + "x", False)):
        value = make(text)
        assert _json_bytes(value) == offload_bytes + (not is_kept)
        found = await bring(
            store, crew, value, blob=blob, shown_bytes=shown_bytes, offload_bytes=offload_bytes
        )
        assert (await kept(blob, found.told.run_id) == []) is is_kept


async def test_log_5_without_a_blob_store_the_record_is_the_bound(store: Store, crew: Crew) -> None:
    """One byte more, and the call is an error which says that it was executed (S5)."""
    room = MOST - _json_bytes("")
    found = await bring(store, crew, "x" * room, blob=None)
    assert found.parts == (TextPart(text="x" * room),)
    found = await bring(store, crew, "x" * room + "x", blob=None)
    [(outcome, code, words), *_] = found.told.calls
    assert (outcome, code) == ("error", "result_too_large")
    assert words == (
        "the result of act is too large: at least 262145 bytes, the bound is 262144; "
        "ask for less. It was executed."
    )


async def test_log_5_a_blob_store_has_room_for_16_mib(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """More would take seconds to read."""
    room = 16 * 1024 * 1024 - _json_bytes("")
    found = await bring(store, crew, "x" * room, blob=blob)
    assert found.ended.outcome == "ok"
    assert [len(one) for one in await kept(blob, found.told.run_id)] == [room]
    found = await bring(store, crew, "x" * room + "x", blob=blob)
    [(outcome, code, words), *_] = found.told.calls
    assert (outcome, code) == ("error", "result_too_large")
    assert "the bound is 16777216; ask for less. It was executed." in words
    assert await kept(blob, found.told.run_id) == []


async def test_log_5_what_is_long_in_json_is_shown_shorter(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """A record holds 256 KiB, also where each byte shown takes six in it."""
    for letter in ("\x00", '"', "\\", "\n", "x"):
        whole = letter * 400_000
        found = await bring(store, crew, whole, blob=blob, shown_bytes=131_072)
        assert found.ended.outcome == "ok"
        left = found.shown.count(letter)
        at_most = min(131_072, 160 * 1024 // (len(json.dumps(letter)) - 2))
        assert at_most - 200 < left <= at_most + 2
        assert found.shown.startswith(letter * (left // 2))
        assert await kept(blob, found.told.run_id) == [whole.encode()]


@pytest.mark.parametrize("letter", ["\x00", '"', "\n", "x"])
async def test_log_5_what_is_read_is_long_in_json_too(
    store: Store, crew: Crew, blob: BlobStore, letter: str
) -> None:
    """Where a record has no room for all that was asked for, the rest is read with another call."""
    whole = letter * 400_000

    found = await bring(store, crew, whole, read(0, 400_000), blob=blob, shown_bytes=131_072)
    [given] = last_answers(found.requests[2])
    at = len(content_of(given))
    assert at == min(131_072, (160 * 1024 - 2) // (len(json.dumps(letter)) - 2))
    assert given.startswith(f"[Bytes 0 to {at} of 400000; it goes on at {at}]\n")


async def test_log_5_lines_that_are_found_are_long_in_json_too(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Fifty of them, each as long as one can be."""
    line = "\x00" * 500 + "end\n"

    def look(request: ModelRequest) -> Sequence[ScriptedCall]:
        return [("search_result", {"result": names_in(request)[0], "pattern": "end"})]

    found = await bring(store, crew, line * 1000, look, blob=blob, shown_bytes=131_072)
    [given] = last_answers(found.requests[2])
    assert given.count("end") > 20


async def test_log_5_sixty_four_files_beside_a_large_text_fit_a_record(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """The longest names, and the most that is shown of a text."""
    files = [
        Attachment(bytes([place]), "a" * 64 + "/" + "b" * 64, name="😀" * 255)
        for place in range(64)
    ]
    for text in ("\x00" * 400_000, "x" * 250_000, "short"):
        found = await bring(store, crew, [text, *files], blob=blob, shown_bytes=131_072)
        assert found.ended.outcome == "ok"
        assert list(found.ended.attachments) == [one.ref for one in files]
        assert [one for one in found.parts if isinstance(one, BlobPart)] == [
            BlobPart(blob=one.ref, name=one.name) for one in files
        ]
        assert attached(found.requests[1]) == [one.data for one in files]


async def test_tool_6_files_alone_bring_no_other_blob(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """However long their names are: there is no text that could be kept elsewhere."""
    files = [Attachment(bytes([place]), "image/png", name="😀" * 255) for place in range(8)]
    found = await bring(store, crew, files, blob=blob, offload_bytes=1024)
    assert found.parts == tuple(BlobPart(blob=one.ref, name=one.name) for one in files)
    assert len(await kept(blob, found.told.run_id)) == 8


@pytest.mark.parametrize(
    "value",
    [
        *("1e400", "NaN", "1" * 400, '"\\ud800"', '{"a": 1, "a": 2}', "[" * 100 + "]" * 100),
        *('"\\u0000"', str(2**63), "-0.0", "1e308", '"\\ud83d\\ude00"'),
    ],
)
async def test_log_5_odd_json_of_a_service_is_the_same_in_a_large_answer(
    store: Store, crew: Crew, blob: BlobStore, value: str
) -> None:
    """Kept losslessly, or refused in the same words."""
    ends: list[tuple[ToolCompleted, str]] = []
    for filler in ("", "é" * 200_000):
        body = f'{{"value": {value}, "z": "{filler}"}}'.encode()
        model = Reader([("ask", {})], "Done.")
        async with service(answer(200, body, content_type="application/json")) as there:
            runtime = made(store, model, blob=blob)
            worker = await crew.start(runtime)
            found = await told(store, await admit(store, desk(http_get("ask", there.url))))
            await crew.stop(worker)
            await runtime.aclose()
        ends.append((only(found.every(ToolCompleted)), only(last_answers(model.requests[1]))))
    (small, small_text), (large, large_text) = ends
    assert (large.outcome, large.failure) == (small.outcome, small.failure)
    if small.outcome == "error":
        assert large_text == small_text
        return
    assert small.result is not None
    shown = text_of(small.result.parts).removesuffix('""\n}')
    assert large_text.startswith(shown)
    assert len(shown) > len('{\n"value": \n')


async def test_sec_3_a_value_of_many_levels_is_kept(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Its text is not so many times as large that no store would take it."""
    value: object = [0] * 150_000
    for _ in range(60):
        value = [value]
    found = await bring(store, crew, value, blob=blob)
    assert found.ended.outcome == "ok"
    assert len(only(await kept(blob, found.told.run_id))) < 600_000


async def test_run_8_a_large_result_is_read_beside_the_loop(
    store: Store, crew: Crew, blob: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other Runs of the worker go on meanwhile."""
    threads: list[threading.Thread] = []

    def seen(parts: Sequence[Part]) -> str:
        threads.append(threading.current_thread())
        return text_of(parts)

    monkeypatch.setattr(results, "text_of", seen)
    await bring(store, crew, [VALUE] * 100, blob=blob)
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("given", [0, 1023, MOST + 1, -1, True, "2048", 2048.0, None])
def test_bad_input_offload_bytes_is_1_to_256_kib(store: Store, given: object) -> None:
    """What a record cannot hold, or what would offload each word, is refused."""
    with pytest.raises(InvalidArgument) as caught:
        Runtime(store=store, model=FakeModel(), offload_bytes=given)  # type: ignore[arg-type]
    assert caught.value.what == "offload_bytes"


@pytest.mark.parametrize("given", [0, 1023, 131_073, -1, True, "2048", 2048.5])
async def test_bad_input_shown_bytes_is_1_to_128_kib(store: Store, given: object) -> None:
    """Or null."""
    spec = json.loads(desk().model_dump_json()) | {"results": {"shown_bytes": given}}
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME)
    assert "/results/shown_bytes" in str(caught.value)
