"""Golden logs as files, and what a log comes to, in plain JSON (LOG-4).

`logs/NAME.jsonl` has the rows, one on a line, as a store keeps them. `logs/NAME.fold.json` has
the header beside them and what this library makes of both.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json

from psych_runtime.core.codec import Entry, decode_anew
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import fold
from psych_runtime.core.rebuild import SOME, rebuild
from psych_runtime.errors import ContentErased
from psych_runtime.views import answer_view, report_view, status_view
from psych_schema.base import format_instant
from psych_schema.store import RecordRow, RunRow
from psych_schema.transitions import PHASES

__all__ = ["LOGS", "changes", "dumped", "names", "outcome", "read_header", "read_rows", "stored"]

LOGS: Final = Path(__file__).parent / "logs"


def names() -> list[str]:
    """Return the names of the golden logs."""
    return sorted(path.name.removesuffix(".jsonl") for path in LOGS.glob("*.jsonl"))


def read_rows(name: str) -> list[RecordRow]:
    """Return the rows of a golden log."""
    lines = (LOGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [RecordRow.model_validate_json(line) for line in lines]


def stored(name: str, folder: Path = LOGS) -> dict[str, JsonValue]:
    """Return what a golden log came to when it was written, its header included."""
    found: JsonValue = json.loads((folder / f"{name}.fold.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def read_header(name: str) -> RunRow:
    """Return the header beside a golden log."""
    return RunRow.model_validate_json(json.dumps(stored(name)["header"]))


def outcome(header: RunRow, rows: Sequence[RecordRow]) -> dict[str, JsonValue]:
    """Return what a log comes to, and what is told of it to people."""
    entries = [decode_anew(row) for row in rows]
    state = fold(entries)
    seq, hash_, at = state.position
    phases = {
        kind: {key: one.phase for (of, key), one in sorted(state.objects.items()) if of == kind}
        for kind in sorted(PHASES)
    }
    found: dict[str, object] = {
        "header": header,
        "rebuilt": rebuild(entries),
        "position": {"seq": seq, "hash": hash_, "at": at},
        "epoch": state.epoch,
        "registers": {
            "is_fork": state.is_fork,
            "last_turn": state.last_turn,
            "last_model": state.last_model,
            "last_offer": state.last_offer,
            "turn_failures": state.turn_failures,
        },
        "phases": {kind: those for kind, those in phases.items() if those},
        "conversation": _said(entries),
        "status": status_view(header, entries),
        "answer": answer_view(header, entries),
        "report": report_view(header, entries),
    }
    return {name: dumped(value) for name, value in found.items()}


def _said(entries: Sequence[Entry]) -> object:
    """Return the messages, None for a call without an answer; None for all once erased."""
    conversation = Conversation()
    try:
        for entry in entries:
            conversation.add(entry.record)
    except ContentErased:
        return None
    return conversation.messages


def dumped(value: object) -> JsonValue:
    """Return a value as JSON says it."""
    found: JsonValue = json.loads(to_json(_plain(value)))
    return found


def _plain(value: object) -> object:
    """Return instants in their one form; models know it."""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value.value if value is SOME else value


def changes(before: JsonValue, now: JsonValue, where: str = "") -> Iterator[str]:
    """Yield the JSON pointer of each value that is another one now; new members are none."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name, value in before.items():
            if name not in now:
                yield f"{where}/{name}"
            else:
                yield from changes(value, now[name], f"{where}/{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from changes(one, other, f"{where}/{place}")
    elif before != now or isinstance(before, bool) is not isinstance(now, bool):
        yield where
