"""What a turn costs in the log does not depend on how long the Run is (LOG-2)."""

import json
from collections import defaultdict

from pydantic import JsonValue

from psych_runtime.core.codec import record_text
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Usage
from psych_schema.spec import AgentSpec
from psych_schema.store import RecordRow
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, agent, run_to_end, runtime

_TURNS = 30
_PROMPT = "Be exact. " * 400


def _size(rows: list[RecordRow]) -> int:
    return sum(len(row.body) + len(row.content or "") for row in rows)


def _size_without_digits(rows: list[RecordRow]) -> int:
    return sum(len(json.dumps(_blank(json.loads(record_text(row))))) for row in rows)


def _blank(value: JsonValue) -> JsonValue:
    """Return `value` with every number a 0: how many digits it has is chance."""
    if isinstance(value, dict):
        return {name: _blank(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_blank(one) for one in value]
    return 0 if isinstance(value, int | float) and not isinstance(value, bool) else value


async def look(text: str) -> str:
    """Look something up, at length.

    Args:
        text: What to look for.
    """
    return text * 10


async def find(text: str) -> str:
    """Find something.

    Args:
        text: What to find.
    """
    return text


def _model() -> FakeModel:
    model = FakeModel()
    for turn in range(_TURNS - 1):
        usage = Usage(input_tokens=1000 + turn, output_tokens=10)
        model.turn(
            text="I look again.",
            tool_calls=[("look", {"text": f"{turn:04d}"}), ("find", {"text": f"{turn:04d}"})],
            usage=usage,
        )
    return model.turn(text="Done.")


def _spec() -> AgentSpec:
    made = agent("find", "look", max_turns=_TURNS)
    return made.model_copy(update={"instructions": _PROMPT})


async def test_log_2_bytes_per_turn_are_constant(store: Store, crew: Crew) -> None:
    """Each of 28 equal turns takes as many bytes as the second one, up to digits."""
    model = _model()
    await crew.start(runtime(store, model, look, find))
    run = await admit(store, _spec())
    await run_to_end(store, run)
    assert len(model.requests) == _TURNS

    turns: defaultdict[int, list[RecordRow]] = defaultdict(list)
    turn = 0
    for row in await store.read(ACME.tenant, run):
        turn += row.type == "turn.started"
        turns[turn].append(row)
    middle = [turns[n] for n in range(2, _TURNS)]
    assert len({_size_without_digits(rows) for rows in middle}) == 1
    sizes = [_size(rows) for rows in middle]
    assert max(sizes) - min(sizes) < 128
    assert max(sizes) < 6_000


async def test_log_2_prompt_and_definitions_are_stored_once(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """One document each for 30 turns and a second Run; no record repeats a word of them."""
    model = _model()
    await crew.start(runtime(flaky, model, look, find))
    runs = []
    for n in range(2):
        runs.append(await admit(store, _spec(), f"Run {n}."))
        await run_to_end(store, runs[-1])
    assert flaky.faults.calls["put_document"] == 3

    for run in runs:
        rows = await store.read(ACME.tenant, run)
        whole = "".join(row.body + (row.content or "") for row in rows)
        assert "Be exact." not in whole
        assert "Look something up" not in whole
        assert sum(row.type == "tools.offered" for row in rows) == 1
        assert whole.count("0007" * 10) == 1


async def test_log_2_the_documents_can_be_read_by_hash(store: Store, crew: Crew) -> None:
    """What the log names is there: prompt and definitions as the model got them."""
    model = FakeModel().turn(text="Done.")
    await crew.start(runtime(store, model, look, find))
    run = await admit(store, _spec())
    await run_to_end(store, run)
    rows = await store.read(ACME.tenant, run)
    [offered] = [json.loads(row.body) for row in rows if row.type == "tools.offered"]
    assert await store.document(ACME.tenant, offered["system_ref"]) == _PROMPT
    for tool, sent in zip(offered["tools"], model.requests[0].tools, strict=True):
        text = await store.document(ACME.tenant, tool["definition"])
        assert text is not None
        assert json.loads(text) == sent.model_dump(mode="json")
