"""A prompt extends the one before it, also where results are shown in part (MOD-8, R-25)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest

from psych_runtime.api import dispatch, publish
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.testing._pairing import unpaired
from psych_runtime.testing.fake_model import ScriptedCall
from psych_runtime.tools.attachment import Attachment
from psych_schema.model import ModelRequest
from psych_schema.record import ModelStarted, ToolCompleted, ToolsOffered
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, eventually, of_type
from tests.functional.engine.results.desk import Reader, desk, made, names_in, read, search

OURS: Final = ["read_result", "search_result"]


def small() -> str:
    """Say little."""
    return "little"


def large() -> object:
    """Say much."""
    return [{"number": number, "of": "Zoë \U0001f600"} for number in range(3000)]


def files() -> list[object]:
    """Give files."""
    return [Attachment(b"a,b\n" * 2000, "text/csv", name="a.csv"), Attachment(b"\x89", "image/png")]


def _extends(requests: Sequence[ModelRequest]) -> None:
    for before, after in pairwise(requests):
        assert after.system == before.system
        assert after.messages[: len(before.messages)] == before.messages
        assert set(before.attachments.items()) <= set(after.attachments.items())
    for request in requests:
        assert unpaired(request.messages) is None


def _offers(requests: Sequence[ModelRequest]) -> list[list[str]]:
    return [[one.name for one in request.tools] for request in requests]


@pytest.mark.parametrize("offload_bytes", [1024, 256 * 1024])
@pytest.mark.parametrize("makes", ["large", "files"])
async def test_mod_8_the_prefix_changes_once_when_something_is_shown_in_part(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int, makes: str
) -> None:
    """In the request behind it, by a record that says so; what was offered before is the same."""
    names = ["files", "large", "small"]
    model = Reader([("small", {})], [(makes, {})], read(0, 50), [(makes, {})], search("9"), "Done.")
    runtime = made(store, model, small, large, files, blob=blob, offload_bytes=offload_bytes)
    await crew.start(runtime)
    found = await told(store, await admit(store, desk(*names)))
    assert found.answer == "Done."
    _extends(model.requests)
    assert _offers(model.requests) == [sorted(names)] * 2 + [sorted([*names, *OURS])] * 4
    for before, after in pairwise(model.requests):
        defined = {one.name: one for one in after.tools}
        assert [defined[one.name] for one in before.tools] == list(before.tools)
    first, second = found.every(ToolsOffered)
    assert [one.identity for one in second.tools if one not in first.tools] == [
        "builtin:read_result",
        "builtin:search_result",
    ]
    asked = found.every(ModelStarted)
    assert [one.offer for one in asked] == [first.hash] * 2 + [second.hash] * 4


@pytest.mark.parametrize("offload_bytes", [1024, 256 * 1024])
async def test_mod_8_the_prompt_is_the_same_behind_a_takeover_and_in_the_next_run(
    store: Store, flaky: Flaky, crew: Crew, blob: FileBlobStore, offload_bytes: int
) -> None:
    """To the byte: whoever reads the log shows what the worker showed that wrote it."""
    calls: list[ScriptedCall] = [("large", {}), ("files", {}), ("small", {})]
    dying = Reader(calls, read(100, 50, place=0), "never said")
    dying.stalls_at = 2
    functions = (small, large, files)
    first = await crew.start(made(flaky, dying, *functions, blob=blob, offload_bytes=offload_bytes))
    version = await publish(store, desk("files", "large", "small"), scope=ACME)
    run = await admit(store, version)
    await eventually(lambda: len(dying.requests) == 3)

    async def stored() -> bool:
        return len(await of_type(store, run, ToolCompleted)) == 4

    await eventually(stored)
    await die(flaky, store, first)

    model = Reader(calls, read(100, 50, place=0), search("99", place=1), "Done.", "Again.")
    await crew.start(made(store, model, *functions, blob=blob, offload_bytes=offload_bytes))
    assert (await told(store, run)).answer == "Done."
    second = await dispatch(store, version, scope=ACME, input={"message": "Go on."}, continues=run)
    assert (await told(store, second.run_id)).answer == "Again."

    again = model.requests[0]
    assert again.model_dump_json() == dying.requests[2].model_dump_json()
    _extends([*dying.requests[:2], *model.requests])
    assert _offers(model.requests) == [sorted(["files", "large", "small", *OURS])] * 3
    assert len(await of_type(store, run, ToolsOffered)) == 2
    assert len(await of_type(store, second.run_id, ToolsOffered)) == 1
    assert len(names_in(model.requests[-1])) == 2
