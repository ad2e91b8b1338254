"""LOG-4: what one version wrote, every later one reads: golden files are frozen.

A file in tests/golden may be added, and never changed or removed: logs like it are in databases.
A new minor version of the schema gets a file of its own beside the old ones. A failure here
means that a build cannot read, or reads otherwise, what an older one has written.
"""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from psych_runtime.core.codec import content_fits, decode, parse_record, record_text, sha256
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, fold
from psych_schema.store import RecordRow
from psych_schema.transitions import PHASES, TRANSITIONS

GOLDEN = Path(__file__).parents[2] / "golden"
FROZEN = {
    "log_v1.jsonl": "1b9fa536e970e660262ea0641247e6f1059b3f81e591c34264be54300e4879f0",
}
"""Each file with its SHA-256: lines are added here, never changed."""


def read(name: str) -> tuple[list[RecordRow], dict[str, JsonValue]]:
    """Return the rows of a golden log, and what its last line says of it."""
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    outcome = json.loads(lines[-1])
    assert isinstance(outcome, dict)
    return [RecordRow.model_validate_json(line) for line in lines[:-1]], outcome


def summary(state: RunState) -> dict[str, JsonValue]:
    """Return what a log came to, in words that no version of the fold changes."""
    return {
        "phase": state.phase,
        "epoch": state.epoch,
        "turns": state.last_turn,
        "head": state.position.seq,
        "head_hash": state.position.hash,
        "objects": {
            kind: {key: one.phase for (of, key), one in sorted(state.objects.items()) if of == kind}
            for kind in sorted(PHASES)
        },
    }


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_a_golden_log_is_frozen(name: str) -> None:
    """Byte by byte."""
    assert sha256((GOLDEN / name).read_text(encoding="utf-8")) == FROZEN[name]


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_a_golden_log_is_read_as_it_was_meant(name: str) -> None:
    """Every record decodes, the chain holds, and the fold comes to what it came to then."""
    rows, outcome = read(name)
    entries = [decode(row) for row in rows]
    assert all(map(content_fits, rows))
    assert summary(fold(entries)) == outcome
    for row, entry in zip(rows, entries, strict=True):
        assert parse_record(record_text(row)) == entry.record


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_log_4_a_golden_log_has_a_conversation(name: str) -> None:
    """The model could go on with it."""
    rows, _ = read(name)
    conversation = Conversation()
    for row in rows:
        conversation.add(decode(row).record)
    assert conversation.complete()


def test_log_4_the_golden_logs_have_every_record_type() -> None:
    """A new type needs a new file."""
    found = {row.type for name in FROZEN for row in read(name)[0]}
    assert found == set(TRANSITIONS)


def test_log_4_every_golden_log_is_tested() -> None:
    """No file lies beside the tests."""
    assert {path.name for path in GOLDEN.glob("log_*.jsonl")} == set(FROZEN)
