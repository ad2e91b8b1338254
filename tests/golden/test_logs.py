"""LOG-4: what one version wrote, every later one reads: golden logs are frozen.

A log in tests/golden/logs may be added (`python -m tests.golden.write_logs`), and never changed
or removed: logs like it are in databases. A failure here means that a build cannot read, or reads
otherwise, what an older one has written. A view that has grown is no failure of the log: see
there.
"""

from pathlib import Path

import pytest
from pydantic import JsonValue

from psych_runtime import Scope, verify
from psych_runtime.core.codec import decode_anew, is_erased, parse_record, record_text, sha256
from psych_runtime.core.rebuild import differences
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Admit, Sealed, Unit
from psych_runtime.store.memory import MemoryStore
from psych_schema.types import RECORD_TYPES
from tests.golden import write_logs
from tests.golden.folding import (
    LOGS,
    changes,
    names,
    outcome,
    read_header,
    read_rows,
    stored,
)
from tests.golden.stories import STORIES

FROZEN = {
    "v1_aborted": "3557ad86ede82aebe635ce3f3c13bda9fcfd2f7704a46301d84a2cc6b28b3e68",
    "v1_admitted": "7132efa5ecad821e69f21d9d515906999a2b565cc838818c649f1c8c390002ef",
    "v1_approvals": "e04c8cc2fea5fa5722fd4ba872a930e4b27d1197442361db92449ec1b9240252",
    "v1_asking": "5fdc97589c45d378761550e303317751d93e2022fba950e745894a0e19589358",
    "v1_child": "cc10dc114ff3288a7152f93fd97c3374c69761d955d9766eab3648ca26e87640",
    "v1_compaction": "d2ce423fa8445d5feb601e30e55a312ec8515043e799d67c4ac27e80444b6e7a",
    "v1_erased": "9dde30345225dbd6a27ec7b500145871143b225203d0f5b102ac5471dc2b69e2",
    "v1_every_type": "a0d426f900506b4b93986ea50467afd3d6da66781bfa3a31cf95642126258702",
    "v1_fork": "9a0a75a7d9315dd03cb4e664c35d3cccb3d5a6a821ac71df422ea33202c0f5ab",
    "v1_handed_over": "c1f435289f17c982a30da974dfcc661df8d57774b29b1e6fecbcdfd947448dcc",
    "v1_lived_answer": "f8ff1b366e5f58acef7578495edee5336fb42a0574b203be937da7f7a76b7ec7",
    "v1_lived_failure": "8a9fb5d627f33abb22f244bc37679d494d1db88dbce6d568f84d6e77c34fab1e",
    "v1_lived_interrupted": "c228f2e7e584151615c9ebe4b4d960f20cd945faa9e9355e83b1120e27e3f5a5",
    "v1_next_run": "f2a90d845b80fe6481216bd8987a691fda54310279a0ac885950406fa44dab76",
    "v1_odds_and_ends": "e9f727f55afdeb8c3c90c73174c933574db02c847541d362ef16edfe4218b79c",
    "v1_one_tool": "d1096d758b83fe06c341b59bf68d84f055a118da0247c46cdc44b511affec00d",
    "v1_parent": "20ef3eebf1dfae5a98926d9e3360d1d611dafb3ae027b0428ea3b14133a307d8",
    "v1_parked": "36d17a87f75fbf6dec65d646974402b1077066cb2ed180de7940d84772a89e9c",
    "v1_queues": "1ff11961901bd5ee28a7a1f8da6f9af1658d697060a55036f0c6fd67a612dfb9",
    "v1_retries": "104ddf6c50e22d3b0f472c2e7b18c9d49c945dea86be46b97c9c652492856fd3",
    "v1_timed_out": "a1c59660b5062678f1f89d95aa92382c1f9ab810f5aa2ca878d1912101a8a403",
    "v1_waits": "76d2f4bdfec58f8398b2de65db905119cb3038504921f5367b757393c3de1c1a",
    "v1_walk_1": "a784ea17446a90bf16881f6c171f69aca15872dc829ada230291331789828f3c",
    "v1_walk_2": "5cb25b3bde173db3e1bdb637b6e0bb204b0952d1cca10d3edb1df23ba6585dbf",
    "v1_worker_died": "9cd99d1136e50918d6f8b05d36b763f644049419d2bff7e2832f3e033176d03e",
    "v1_workflow": "5238126602fa71b36722fa544b625a8025e85cbf8acb1948cba905027876be02",
}
"""Each log with the SHA-256 of its file: lines are added here, never changed."""


def test_log_4_every_golden_log_is_tested() -> None:
    """No file lies beside the tests, each log has its fold, and each story is told."""
    assert names() == sorted(FROZEN)
    files = {path.name for path in LOGS.iterdir()}
    assert files == {f"{name}{end}" for name in FROZEN for end in (".jsonl", ".fold.json")}
    assert set(STORIES) | set(write_logs.LIVED) <= set(FROZEN)


def test_log_4_the_golden_logs_have_every_record_type() -> None:
    """Those that no engine writes yet, too; a new type needs a new log."""
    found = {row.type for name in FROZEN for row in read_rows(name)}
    assert set(RECORD_TYPES) - found == set()
    assert len(RECORD_TYPES) == 35


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_a_golden_log_is_frozen(name: str) -> None:
    """Byte by byte."""
    assert sha256((LOGS / f"{name}.jsonl").read_bytes().decode()) == FROZEN[name]


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_a_golden_log_folds_to_exactly_what_it_came_to(name: str) -> None:
    """Objects, position, registers, header, conversation, and what people are told of it."""
    now = outcome(read_header(name), read_rows(name))
    assert list(changes(stored(name), now)) == []
    assert now == stored(name)


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_the_records_of_a_golden_log_are_read_from_their_text(name: str) -> None:
    """What `psych log --json` printed then is parsed now."""
    for row in read_rows(name):
        assert parse_record(record_text(row)) == decode_anew(row).record


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_r_1_the_header_of_a_golden_log_is_its_recomputation(name: str) -> None:
    """Instants of the store's clock aside."""
    assert differences(read_header(name), map(decode_anew, read_rows(name))) == ()


@pytest.mark.parametrize("name", sorted(FROZEN))
async def test_log_6_a_golden_log_is_consistent_and_proven_in_a_store(name: str) -> None:
    """Up to each of its records; the texts that it names were not kept with it."""
    header, rows = read_header(name), read_rows(name)
    entries = [decode_anew(row) for row in rows]
    sealed = tuple(
        Sealed(row, entry.record, entry.hash) for row, entry in zip(rows, entries, strict=True)
    )
    async with MemoryStore() as store:
        unit = Unit("com_x", header.tenant, (Admit(header, sealed, None),))
        assert await store.commit([unit]) == [Committed()]
        for entry in entries:
            view = await verify(
                store, header.run_id, scope=Scope(tenant=header.tenant), expected_head=entry.hash
            )
            problems = {problem.code for problem in view.problems}
            assert problems <= {"version_missing", "document_missing"}
            assert view.proven is True
            assert view.expected_seq == entry.record.seq


def test_r_11_the_golden_logs_have_an_erased_one() -> None:
    """Its contents are gone, its facts are told; nobody could go on with it."""
    assert any(is_erased(decode_anew(row).record) for row in read_rows("v1_erased"))
    came = stored("v1_erased")
    assert came["conversation"] is None
    assert stored("v1_one_tool")["conversation"] is not None


def test_log_4_the_writer_refuses_a_golden_log_that_is_there(tmp_path: Path) -> None:
    """Nothing of it changes; one that is missing is written with its fold."""
    header, rows = read_header("v1_one_tool"), read_rows("v1_one_tool")
    line = write_logs.write("v1_one_tool", header, rows, tmp_path)
    assert line == f'"v1_one_tool": "{FROZEN["v1_one_tool"]}",'
    assert stored("v1_one_tool", tmp_path) == stored("v1_one_tool")
    with pytest.raises(FileExistsError):
        write_logs.write("v1_one_tool", header, rows[:3], tmp_path)
    text = (tmp_path / "v1_one_tool.jsonl").read_bytes()
    assert text == (LOGS / "v1_one_tool.jsonl").read_bytes()


def test_log_4_the_writer_adds_to_a_fold_and_changes_nothing_in_it(tmp_path: Path) -> None:
    """A new member is added on request; another value, or one that is gone, is told."""
    header, rows = read_header("v1_child"), read_rows("v1_child")
    write_logs.write("v1_child", header, rows, tmp_path)
    before = stored("v1_child", tmp_path)
    grown: dict[str, JsonValue] = before | {"mood": "good"}

    assert write_logs.extend("v1_child", grown, grow=False, folder=tmp_path) == []
    assert stored("v1_child", tmp_path) == before
    assert write_logs.extend("v1_child", grown, grow=True, folder=tmp_path) == []
    assert stored("v1_child", tmp_path) == grown
    assert write_logs.extend("v1_child", before, grow=True, folder=tmp_path) == ["v1_child: /mood"]
    other = grown | {"epoch": 2}
    assert write_logs.extend("v1_child", other, grow=True, folder=tmp_path) == ["v1_child: /epoch"]
    assert stored("v1_child", tmp_path) == grown


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": [{"x": 1}]}, {"a": [{"x": 1, "y": 2}]}, []),
        ({"a": 1}, {"a": 2}, ["/a"]),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": 1}, {"b": 1}, ["/a"]),
        ({"a": [1, 2]}, {"a": [1]}, ["/a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["/a/1"]),
        ({"a": None}, {"a": {}}, ["/a"]),
        ({"a": {"b": {}}}, {"a": {"b": []}}, ["/a/b"]),
    ],
)
def test_log_4_what_counts_as_a_change(before: JsonValue, now: JsonValue, found: list[str]) -> None:
    """Anything but a new member of an object."""
    assert list(changes(before, now)) == found
