"""Writes golden logs: `python -m tests.golden.write_logs` (LOG-4).

It adds what is missing: a story of its own, or a Run that the engine of this build lives. What
is there is frozen, since logs like it are in databases: a log that comes out otherwise is left
as it is, and a fold that comes to something else is an error. With `--extend` a fold gains
members that it did not have: a view that has grown.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import to_json

from psych_runtime import AgentSpec, CodeTool, ModelRef, Scope, interrupt, session, tool
from psych_runtime.core.codec import sha256
from psych_runtime.ports.store import Store
from psych_runtime.testing import FakeModel
from psych_schema.store import RecordRow, RunRow
from tests.golden.folding import LOGS, changes, names, outcome, read_header, read_rows, stored
from tests.golden.stories import STORIES

__all__ = ["extend", "main", "write"]

SPEC = AgentSpec(
    name="clerk",
    instructions="Be brief.",
    model=ModelRef(model="scripted"),
    tools=(CodeTool(name="price"),),
)

type Run = tuple[RunRow, Sequence[RecordRow]]


@tool(annotations={"read-only"}, safe_to_retry=True)
def price(item: str) -> str:
    """Return what an item costs.

    Args:
        item: its name.
    """
    return f"{item}: 7 dollars"


async def _read(store: Store, run_id: str) -> Run:
    return await store.header("local", run_id), await store.read("local", run_id)


async def _live(name: str) -> Run:
    """Let this build's worker run an agent: to an answer, to a failure, or until it is stopped."""
    model = FakeModel()
    match name:
        case "v1_lived_answer":
            model.turn(text="Let me look.", tool_calls=[("price", {"item": "tea"})])
            model.turn(text="Tea costs 7 dollars.", reasoning="7.")
        case "v1_lived_failure":
            model.raises_transient(503).raises_permanent(400)
        case _:
            model.turn(text="Let me look.", tool_calls=[("price", {"item": "tea"})]).stalls()
    async with session(model, tools=[price]) as s:
        run = await s.start(SPEC, "What does tea cost?")
        if name == "v1_lived_interrupted":
            async for record in s.stream(run.run_id):
                if record.type == "model.started" and record.seq > 5:
                    scope = Scope(tenant="local")
                    await interrupt(s.store, run.run_id, scope=scope, reason="enough", by="ann")
        await s.wait(run.run_id, timeout_seconds=60)
        return await _read(s.store, run.run_id)


LIVED = ("v1_lived_answer", "v1_lived_failure", "v1_lived_interrupted")


def write(name: str, header: RunRow, rows: Sequence[RecordRow], folder: Path = LOGS) -> str:
    """Write a golden log and what it comes to; return its line for the table in test_logs.py.

    FileExistsError: it is there, and frozen.
    """
    text = "".join(f"{row.model_dump_json()}\n" for row in rows)
    with (folder / f"{name}.jsonl").open("x", encoding="utf-8") as file:
        file.write(text)
    with (folder / f"{name}.fold.json").open("x", encoding="utf-8") as file:
        file.write(_document(outcome(header, rows)))
    return f'"{name}": "{sha256(text)}",'


def _document(found: JsonValue) -> str:
    return f"{to_json(found, indent=1).decode()}\n"


def extend(name: str, now: JsonValue, *, grow: bool, folder: Path = LOGS) -> list[str]:
    """Return the places where `now` is not what was stored; with `grow`, add what is new to it.

    Nothing is written when something is another value, or gone.
    """
    before = stored(name, folder)
    lost = list(changes(before, now))
    if grow and not lost and before != now:
        (folder / f"{name}.fold.json").write_text(_document(now), encoding="utf-8")
    return [f"{name}: {pointer}" for pointer in lost]


def main(*, grow: bool) -> int:
    """Add the logs that are missing; return 1 when one that is there is read otherwise."""
    there = names()
    for name, tell in STORIES.items():
        if name not in there:
            log = tell()
            print(write(name, log.header, log.rows))
    for name in LIVED:
        if name not in there:
            print(write(name, *asyncio.run(_live(name))))
    lost: list[str] = []
    for name in there:
        lost += extend(name, outcome(read_header(name), read_rows(name)), grow=grow)
    for pointer in lost:
        print(f"{pointer} is another value now: change the code, not the golden file")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(grow="--extend" in sys.argv[1:]))
