"""Large results and files in each blob store: whole, and gone when erased (R-11, R-23, S5)."""

import re
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from psych_runtime import (
    answer,
    dispatch,
    erase,
    publish,
    records,
    report,
    status,
    sweep,
    thread,
    verify,
)
from psych_runtime.errors import ContentErased
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import ScriptedCall
from psych_runtime.tools.attachment import Attachment
from psych_schema.model import ModelRequest
from psych_schema.record import ToolCompleted
from psych_schema.view import CallMade
from tests.functional.engine.behaviour.talk import Told, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, eventually, of_type
from tests.functional.engine.results.desk import (
    CAT,
    Reader,
    attached,
    content_of,
    desk,
    last_answers,
    made,
    names_in,
    reading,
)

TEXT: Final = "".join(f"{number:06d} é😀€ secret words\x00\n" for number in range(12_000))
CHUNK: Final = 16_001
STARTS: Final = range(0, len(TEXT.encode()), CHUNK - 3)


@pytest.fixture(params=["memory", "files", "s3"])
def blob_kind(request: pytest.FixtureRequest) -> str:
    """Each blob store."""
    name: str = request.param
    return name


def large() -> str:
    """Say much."""
    return TEXT


def everything(request: ModelRequest) -> Sequence[ScriptedCall]:
    """Read all of it at once, each range with what a character at its end may have."""
    name = names_in(request)[0]
    return [reading(name, at, CHUNK) for at in STARTS]


async def test_tool_6_what_is_read_is_the_whole_byte_for_byte(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """With its NULs, and no character lost where a range ends."""
    model = Reader([("large", {})], everything, "Done.")
    await crew.start(made(store, model, large, blob=blob))
    found = await told(store, await admit(store, desk("large", shown_bytes=CHUNK)))
    assert found.answer == "Done."
    whole = b""
    for at, text in zip(STARTS, last_answers(model.requests[2]), strict=True):
        [found_] = re.findall(r"^\[Bytes ([0-9]+) to ([0-9]+) of", text)
        start, stop = map(int, found_)
        given = content_of(text).encode()
        assert stop - start == len(given)
        assert at <= start < at + 4  # behind a character that the range cuts
        assert start <= len(whole)
        whole = whole[:start] + given
    assert whole == TEXT.encode()


async def test_s5_an_image_of_20_mb_is_in_the_next_request_after_a_restart(
    store: Store,
    flaky: Flaky,
    crew: Crew,
    blob: BlobStore,
    place: Callable[[], BlobStore],
) -> None:
    """The worker that got it is gone; another one has another handle."""
    image = CAT * 20_001
    assert len(image) > 20_000_000

    def shoot() -> list[object]:
        """Take a picture."""
        return ["Here.", Attachment(image, "image/png", name="large.png")]

    dying = Reader([("shoot", {})], "never said")
    dying.stalls_at = 1
    first = await crew.start(made(flaky, dying, shoot, blob=blob))
    run = await admit(store, desk("shoot"))
    await eventually(lambda: len(dying.requests) == 2)
    assert attached(dying.requests[1]) == [image]

    async def stored() -> bool:
        return bool(await of_type(store, run, ToolCompleted))

    await eventually(stored)
    await die(flaky, store, first)
    model = Reader([("shoot", {})], "A cat.")
    async with place() as same:
        await crew.start(made(store, model, shoot, blob=same))
        found = await told(store, run)
    assert found.answer == "A cat."
    assert attached(model.requests[0]) == [image]
    [ended] = found.every(ToolCompleted)
    assert [(one.bytes, one.media_type) for one in ended.attachments] == [(len(image), "image/png")]
    rows = await store.read(ACME.tenant, run)
    assert sum(len(row.body) + len(row.content or "") for row in rows) < 20_000


async def _settled(store: Store, crew: Crew, blob: BlobStore) -> Told:
    """Return a Run with a text in a blob, one in the log, a file of text and an image."""

    def files() -> list[object]:
        """Give files."""
        csv = "name,secret words\n" * 400
        picture = Attachment(CAT, "image/png", name="secret words.png")
        return [Attachment(csv.encode(), "text/csv", name="secret words.csv"), picture]

    def some() -> list[str]:
        """Say some."""
        return ["secret words"] * 500

    model = Reader([("large", {}), ("files", {}), ("some", {})], "Done.")
    worker = await crew.start(made(store, model, large, files, some, blob=blob))
    found = await told(store, await admit(store, desk("large", "files", "some")))
    await crew.stop(worker)
    assert found.answer == "Done."
    assert len(await blob.listed(ACME.tenant, found.run_id)) == 3
    return found


async def test_r_11_erasing_takes_the_blobs_and_what_was_shown_of_them(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """What happened stays: every view is as it was, without words."""
    found = await _settled(store, crew, blob)
    run, scope = found.run_id, ACME
    reported = await report(store, run, scope=scope)
    said = (await thread(store, run, scope=scope)).runs[0].said
    made_before = [one for one in said if isinstance(one, CallMade)]
    assert [(one.name, one.outcome) for one in made_before] == [
        ("large", "ok"),
        ("files", "ok"),
        ("some", "ok"),
    ]
    assert (await answer(store, run, scope=scope)).text == "Done."
    assert "secret words" in repr(await records(store, run, scope=scope))

    await erase(store, run, scope=scope, by="ann", blob=blob)

    assert await blob.listed(ACME.tenant, run) == []
    assert await blob.runs() == []
    after = await report(store, run, scope=scope)
    assert after.totals == reported.totals
    assert [(one.outcome, one.identity, one.seconds) for one in after.tool_calls] == [
        (one.outcome, one.identity, one.seconds) for one in reported.tool_calls
    ]
    said = (await thread(store, run, scope=scope)).runs[0].said
    left = [one for one in said if isinstance(one, CallMade)]
    assert [(one.call_id, one.outcome) for one in left] == [
        (one.call_id, one.outcome) for one in made_before
    ]
    answered = await answer(store, run, scope=scope)
    assert (answered.text, answered.output, answered.finished) == (None, None, True)
    assert (await status(store, run, scope=scope)).run_id == run
    kept = await records(store, run, scope=scope)
    assert "secret words" not in repr(kept)
    ended = [one for one in kept if isinstance(one, ToolCompleted)]
    assert [one.result for one in ended] == [None] * 3
    view = await verify(store, run, scope=scope)
    assert (view.consistent, view.problems) == (True, ())
    version = await publish(store, desk("large"), scope=ACME)
    with pytest.raises(ContentErased):
        await dispatch(store, version, scope=ACME, input="x", continues=run)


async def test_r_23_a_sweep_spares_what_a_record_names(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Of texts and files; what nothing names goes, of a Run that has settled."""
    found = await _settled(store, crew, blob)
    named = await blob.listed(ACME.tenant, found.run_id)
    await blob.put(ACME.tenant, found.run_id, b"an orphan", media_type="text/plain")

    assert await sweep(store, blob, older_than_seconds=0) == 1

    left = await blob.listed(ACME.tenant, found.run_id)
    assert [one.hash for one in left] == [one.hash for one in named]
    ended = found.every(ToolCompleted)
    in_records = {ref.hash for one in ended for ref in one.attachments}
    in_records |= {one.elided.blob.hash for one in ended if one.elided}
    assert {one.hash for one in left} == in_records
    await erase(store, found.run_id, scope=ACME, by="ann")
    assert await sweep(store, blob, older_than_seconds=0) == 3
