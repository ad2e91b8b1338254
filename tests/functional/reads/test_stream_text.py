"""stream_text: what the model says, and what it takes back."""

import pytest

from psych_runtime import AgentSpec, ModelRef, TextChunk, session, stream_text
from psych_runtime.errors import CorruptLog, RunFailed
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import CountingSystem, FakeModel, LogBuilder
from psych_schema.model import ReasoningPart, TextPart
from psych_schema.record import Broken, ModelDelta, Said
from tests.functional.reads.logs import ACME, mark_corrupt
from tests.stores.opening import EVERYWHERE


def claimed() -> LogBuilder:
    log = LogBuilder(system=CountingSystem())
    log.admit("hi", deltas=True)
    log.claim()
    return log


def delta(log: LogBuilder, call: str, text: str, channel: str = "text") -> int:
    return log.write(ModelDelta, call=call, channel=channel, text=text).seq


async def chunks(log: LogBuilder, after: int = 0) -> list[TextChunk]:
    """Return what a reader of the whole log gets, up to the end or the error."""
    store = MemoryStore()
    await log.commit_to(store)
    return [c async for c in stream_text(store, log.run_id, scope=ACME, after=after)]


def shown(found: list[TextChunk]) -> dict[str, str]:
    """Return the texts that a reader has who does what the chunks say."""
    texts: dict[str, str] = {}
    for chunk in found:
        if chunk.replaces is not None:
            texts.pop(chunk.replaces, None)
        texts[chunk.call] = texts.get(chunk.call, "") + chunk.text
    return texts


async def test_stream_text_without_deltas_comes_call_by_call() -> None:
    """The whole text of each model call, with the seq to go on behind."""
    log = claimed()
    log.turn(text="One.")
    log.turn(text="Two.")
    log.settle()

    found = await chunks(log)

    assert [(chunk.text, chunk.replaces) for chunk in found] == [("One.", None), ("Two.", None)]
    assert [chunk.seq for chunk in found] == [
        entry.record.seq for entry in log.entries if entry.record.type == "model.completed"
    ]


async def test_stream_text_with_deltas_comes_piece_by_piece_and_once() -> None:
    """What model.completed repeats is not told again."""
    log = claimed()
    log.begin_turn()
    call = log.ask()
    delta(log, call, "It ")
    delta(log, call, "is.")
    log.answer(call, text="It is.")
    log.settle()

    assert [chunk.text for chunk in await chunks(log)] == ["It ", "is."]


async def test_stream_text_completes_what_the_deltas_did_not_bring() -> None:
    """The last pieces of a stream may come with model.completed only."""
    log = claimed()
    log.begin_turn()
    call = log.ask()
    delta(log, call, "It ")
    log.answer(call, text="It is 42.")
    log.settle()

    assert [(c.call, c.text) for c in await chunks(log)] == [(call, "It "), (call, "is 42.")]


async def test_stream_text_leaves_reasoning_and_arguments_out() -> None:
    """They have channels and parts of their own."""
    log = claimed()
    log.begin_turn()
    call = log.ask()
    delta(log, call, "hmm", "reasoning")
    delta(log, call, '{"a":', "arguments")
    parts = (ReasoningPart(text="hmm"), TextPart(text="42"))
    log.answer(call, said=Said(parts=parts))
    log.settle()

    assert [chunk.text for chunk in await chunks(log)] == ["42"]


async def test_stream_text_replaces_deltas_that_do_not_fit_the_whole() -> None:
    """A character that was cut in two is right in model.completed only."""
    log = claimed()
    log.begin_turn()
    call = log.ask()
    delta(log, call, "smile \ufffd")
    log.answer(call, text="smile \U0001f642")
    log.settle()

    found = await chunks(log)

    assert found[-1].replaces == call
    assert shown(found) == {call: "smile \U0001f642"}


async def test_run_11_a_retried_call_takes_its_text_back_in_its_first_chunk() -> None:
    """Only that chunk names the call that failed."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    log.fail(first, said=Broken(parts=(TextPart(text="It w"),)))
    second = log.ask(tries=2)
    delta(log, second, "It ")
    delta(log, second, "is.")
    log.answer(second, text="It is.")
    log.settle()

    found = await chunks(log)

    assert [(c.call, c.replaces) for c in found] == [(first, None), (second, first), (second, None)]
    assert shown(found) == {second: "It is."}


async def test_run_11_a_retry_that_said_nothing_leaves_the_text_to_the_next() -> None:
    """The first call's text is taken back by the third, which is the next to speak."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    log.fail(first)
    log.fail(log.ask(tries=2))
    third = log.ask(tries=3)
    log.answer(third, text="It is.")
    log.settle()

    found = await chunks(log)

    assert [(c.call, c.replaces) for c in found] == [(first, None), (third, first)]


async def test_run_11_a_failed_call_without_text_takes_nothing_back() -> None:
    """There is nothing to name."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask())
    log.answer(log.ask(tries=2), text="It is.")
    log.settle()

    assert [chunk.replaces for chunk in await chunks(log)] == [None]


async def test_run_1_a_call_cut_off_by_a_crash_is_taken_back() -> None:
    """No record says that it failed: the next attempt just calls again."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    log.claim()
    second = log.ask(tries=2)
    log.answer(second, text="It is.")
    log.settle()

    assert shown(await chunks(log)) == {second: "It is."}


async def test_run_11_a_retry_that_only_calls_tools_takes_the_text_back() -> None:
    """An empty chunk says so."""
    log = claimed()
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    log.fail(first)
    second = log.ask(tries=2)
    [call] = log.answer(second, ["look"], text="")
    log.refuse(call)
    log.turn(text="Done.")
    log.settle()

    found = await chunks(log)

    assert found[1] == TextChunk(second, "", first, found[1].seq)
    assert list(shown(found).values()) == ["", "Done."]


async def test_stream_text_of_the_turn_before_is_never_taken_back() -> None:
    """A retry belongs to its turn."""
    log = claimed()
    one = log.turn(text="One.")
    assert one == []
    log.begin_turn()
    log.fail(log.ask())
    log.answer(log.ask(tries=2), text="Two.")
    log.settle()

    assert [(c.text, c.replaces) for c in await chunks(log)] == [("One.", None), ("Two.", None)]


async def test_stream_text_does_not_tell_compactions() -> None:
    """A summary is for the model."""
    log = claimed()
    log.turn(text="One.")
    summary = log.ask(purpose="compaction")
    delta(log, summary, "They")
    log.answer(summary, text="They talked.")
    log.settle()

    assert [chunk.text for chunk in await chunks(log)] == ["One."]


async def test_str_1_a_text_reader_cut_at_any_record_has_the_same_text() -> None:
    """Whatever of a call it had before: nothing twice, and what is void goes."""
    log = claimed()
    log.turn(["look"], text="Let me look.")
    [call] = log.state.ids("call", "asked")
    log.refuse(call)
    log.begin_turn()
    first = log.ask()
    delta(log, first, "It w")
    delta(log, first, "as")
    log.fail(first)
    second = log.ask(tries=2)
    delta(log, second, "It ")
    delta(log, second, "is ")
    log.answer(second, text="It is 42.")
    log.turn(text="Bye.")
    log.settle()
    whole = await chunks(log)

    for cut in range(len(log.entries) + 1):
        before = [chunk for chunk in whole if chunk.seq <= cut]
        assert before + await chunks(log, after=cut) == whole


async def test_str_1_a_long_turn_is_found_however_far_back_it_began() -> None:
    """A reader that goes on in the middle of 200 deltas is not told them again."""
    log = claimed()
    log.turn(text="One.")
    log.begin_turn()
    call = log.ask()
    seqs = [delta(log, call, f"{number} ") for number in range(200)]
    log.answer(call, text="".join(f"{number} " for number in range(200)) + "end")
    log.settle()

    found = await chunks(log, after=seqs[-1])

    assert [chunk.text for chunk in found] == ["end"]


@pytest.mark.parametrize(
    ("state", "code"), [("failed", "turn_limit"), ("aborted", None), ("timed_out", "timed_out")]
)
async def test_stream_text_of_a_run_that_did_not_complete_raises(
    state: str, code: str | None
) -> None:
    """After the text that there was; state and reason are facts of the error."""
    log = claimed()
    log.turn(text="One.")
    log.settle(state, code=code)
    store = MemoryStore()
    await log.commit_to(store)
    reading = stream_text(store, log.run_id, scope=ACME)

    assert (await anext(reading)).text == "One."
    with pytest.raises(RunFailed) as caught:
        await anext(reading)
    assert caught.value.code == "run_failed"
    assert (caught.value.run_id, caught.value.state) == (log.run_id, state)
    assert caught.value.reason == (code or state)


async def test_stream_text_that_begins_behind_the_end_still_tells_of_the_failure() -> None:
    """A reader that comes late must not take a failure for an answer."""
    log = claimed()
    log.settle("failed", code="empty_answer")

    with pytest.raises(RunFailed) as caught:
        await chunks(log, after=len(log.entries))
    assert caught.value.reason == "empty_answer"


async def test_log_3_stream_text_of_a_corrupt_run_raises(store: Store) -> None:
    """As the stream of records does."""
    log = claimed()
    log.turn(text="One.")
    await log.commit_to(store)
    await mark_corrupt(store, log)
    reading = stream_text(store, log.run_id, scope=ACME)

    assert (await anext(reading)).text == "One."
    with pytest.raises(CorruptLog):
        await anext(reading)


@EVERYWHERE
async def test_run_11_a_real_run_streams_its_retry_as_a_replacement(store: Store) -> None:
    """A provider that breaks off mid-token, a worker that tries again, a reader that follows."""
    model = FakeModel().aborts_mid_token("It w").turn(text="It is 42, they say.")
    agent = AgentSpec(name="oracle", instructions="Be brief.", model=ModelRef(model="any"))
    async with session(model, store=store) as s:
        run = await s.start(agent, "hi")
        found = [c async for c in stream_text(store, run.run_id, scope=s.scope)]

    assert [chunk.replaces for chunk in found if chunk.replaces is not None] == [found[0].call]
    assert list(shown(found).values()) == ["It is 42, they say."]
