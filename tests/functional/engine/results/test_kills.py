"""A worker is killed between a blob and the record that names it (R-23, RUN-1)."""

import hashlib
from pathlib import Path
from typing import Final

import pytest

from psych_runtime import Scope, dispatch, open_store, publish, sweep
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.ports.store import Store
from psych_schema.record import ToolCompleted
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.harness import of_type, only
from tests.functional.engine.results.desk import desk
from tests.functional.engine.results.program import LONG, PICTURE
from tests.processes.tasks import next_line, started

PROGRAM: Final = "tests.functional.engine.results.program"
ACME: Final = Scope(tenant="acme")


async def _named(store: Store, run: str) -> set[str]:
    """Return the hash of each blob that a record of a Run names."""
    ended = await of_type(store, run, ToolCompleted)
    found = {ref.hash for one in ended for ref in one.attachments}
    return found | {one.elided.blob.hash for one in ended if one.elided}


@pytest.mark.parametrize(
    ("stops", "tool", "outcome"),
    [
        ("before", "text_again", "ok"),
        ("behind", "picture_again", "ok"),
        ("behind", "text", "unknown"),
        ("before", "picture", "unknown"),
    ],
)
async def test_r_23_after_kill_9_no_record_names_a_blob_that_is_not_there(
    tmp_path: Path, stops: str, tool: str, outcome: str
) -> None:
    """What a safe tool brings again is kept; what nobody names is swept."""
    url, folder = f"sqlite:///{tmp_path / 'runs.db'}", tmp_path / "blobs"
    async with open_store(url) as store, FileBlobStore(folder) as blob:
        await store.migrate()
        version = await publish(store, desk(tool), scope=ACME)
        run = (await dispatch(store, version, scope=ACME, input={"message": "Go."})).run_id
        with started(PROGRAM, url, str(folder), stops, tool) as first:
            said = next_line(first)
            first.kill()
            first.wait()
        assert await _named(store, run) == set()
        hash = hashlib.sha256(PICTURE if "picture" in tool else LONG.encode()).hexdigest()
        stored = [one.hash for one in await blob.listed(ACME.tenant, run)]
        is_stored = stops == "behind"
        assert said.endswith(".part") is not is_stored
        assert stored == ([hash] if is_stored else [])

        with started(PROGRAM, url, str(folder), "never", tool):
            found = await told(store, run)
        assert found.answer == "Done."
        assert only(found.every(ToolCompleted)).outcome == outcome
        named = await _named(store, run)
        assert named == ({hash} if outcome == "ok" else set())
        for one in named:
            assert await blob.read(ACME.tenant, run, one)
        orphans = int(is_stored and outcome == "unknown")
        assert await sweep(store, blob, older_than_seconds=0) == orphans
        assert {one.hash for one in await blob.listed(ACME.tenant, run)} == named
