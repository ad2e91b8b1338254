"""MOD-8 and D5: what the model is shown, record by record."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from pydantic import JsonValue

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.conversation import Conversation, input_parts
from psych_runtime.core.preview import MAX_ATTACHED_BYTES, Whole
from psych_runtime.errors import ContentErased, CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.common import BlobRef
from psych_schema.model import (
    AssistantMessage,
    BlobPart,
    JsonPart,
    Message,
    TextPart,
    ToolMessage,
    UserMessage,
)
from psych_schema.record import (
    AdvisoryAdded,
    ContextCompacted,
    ModelDelta,
    ModelStarted,
    QueueCancelled,
    ToolResult,
)
from tests.unit.core.drafts import draft
from tests.unit.core.logs import SUMMARY, asked, claimed, erased, two_turns, whole_log


def advise(log: LogBuilder, text: str) -> None:
    """Write an advisory."""
    log.write(AdvisoryAdded, advisory_id=log.system.new_id("adv"), code="x", message=text)


def compact(log: LogBuilder, upto: str) -> ContextCompacted:
    """Let a summary stand for the conversation up to a record."""
    call = log.ask(purpose="compaction")
    log.answer(call, text="so far")
    return log.write(ContextCompacted, upto=upto, summary=SUMMARY, call=call, reason="asked")


def prompts(log: LogBuilder) -> list[tuple[str | None, tuple[Message, ...]]]:
    """Return, for each model call, the base and the messages that it was shown."""
    conversation, found = Conversation(), []
    for entry in log.entries:
        conversation.add(entry.record)
        if isinstance(entry.record, ModelStarted):
            found.append((conversation.base, tuple(conversation.complete())))
    return found


def text_of(message: Message) -> str:
    """Return the text of a message's parts."""
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def said(log: LogBuilder) -> list[tuple[str, str]]:
    """Return the conversation as roles and texts."""
    return [(one.role, text_of(one)) for one in log.conversation.complete()]


def assert_paired(messages: Sequence[Message]) -> None:
    """Every call has exactly one answer, right behind the message that asked, in its order."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert waiting
            assert message.call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = (
                [call.call_id for call in message.calls]
                if isinstance(message, AssistantMessage)
                else []
            )
    assert not waiting


def lived(seed: int) -> LogBuilder:
    """Return a log of turns whose calls end in any order, with messages in between."""
    random = Random(seed)
    log = claimed()
    for turn in range(8):
        calls = log.turn(calls=["look"] * random.randrange(4), text=f"turn {turn}")
        for call in random.sample(calls, len(calls)):
            log.start(call)
        if random.random() < 0.5:
            advise(log, f"advice in turn {turn}")
        for call in random.sample(calls, len(calls)):
            log.finish(call, f"result of {call}")
        if random.random() < 0.4:
            log.consume(log.send(f"first {turn}"), log.send(f"second {turn}"))
        if random.random() < 0.3:
            compact(log, log.conversation.last)
    log.turn(text="the end")
    return log


@pytest.mark.parametrize("seed", range(6))
def test_mod_8_each_prompt_extends_the_one_before(seed: int) -> None:
    """Except where a compaction takes the place of what went before; always in pairs."""
    found = prompts(lived(seed))
    assert len(found) >= 9
    for (base, before), (next_base, after) in pairwise(found):
        assert_paired(after)
        if base == next_base:
            assert after[: len(before)] == before
        else:
            assert after[0] == SUMMARY


def test_mod_8_a_conversation_of_half_a_log_goes_on_as_the_whole_one() -> None:
    """A taker that reads the log has what the worker had."""
    log = lived(3)
    whole = Conversation()
    for number, entry in enumerate(log.entries, 1):
        whole.add(entry.record)
        again = Conversation()
        for one in log.entries[:number]:
            again.add(decode_anew(log.rows[one.record.seq - 1]).record)
        assert again.messages == whole.messages
        assert (again.last, again.base) == (whole.last, whole.base)


def test_mod_7_answers_stand_in_the_order_asked_whatever_order_they_came_in() -> None:
    """The last one first, an advisory between them."""
    log, [a, b, c] = asked("look", "lock", "pay")
    for call in (a, b):
        log.start(call)
    log.finish(b, "second")
    advise(log, "hurry")
    log.refuse(c)
    with pytest.raises(ValueError, match="no answer yet"):
        log.conversation.complete()
    log.finish(a, "first")
    assert said(log) == [
        ("user", '"hi"'),
        ("assistant", "ok"),
        ("tool", "first"),
        ("tool", "second"),
        ("tool", "It was denied."),
        ("user", "hurry"),
    ]


def test_mod_8_an_advisory_keeps_its_place() -> None:
    """Where it was recorded, also after later turns."""
    log = claimed()
    advise(log, "before")
    log.turn(text="one")
    advise(log, "between")
    log.turn(text="two")
    assert [text for _, text in said(log)] == ['"hi"', "before", "one", "between", "two"]


def test_mod_8_queued_messages_enter_where_they_were_consumed() -> None:
    """In the order the consumption names; what was taken back never does."""
    log = claimed()
    first, gone, second = log.send("first"), log.send("gone"), log.send("second")
    log.turn(text="one")
    log.write(QueueCancelled, entry_id=gone, by="ann")
    assert log.conversation.entry(first) == UserMessage(parts=(TextPart(text="first"),))
    assert log.conversation.entry(gone) is None
    consumed = log.consume(second, first)
    assert log.conversation.last == consumed.id
    assert log.conversation.entry(first) is None
    assert said(log)[1:] == [("assistant", "one"), ("user", "second"), ("user", "first")]


def test_mod_8_an_entry_without_words_adds_none() -> None:
    """It was legal to send it; nothing is there to show."""
    log = claimed()
    log.consume(log.send(message=None), log.send("words"))
    assert said(log) == [("user", '"hi"'), ("user", "words")]


def test_mod_8_calls_inside_a_call_are_not_shown() -> None:
    """What a program binding or a step did is no answer to the model."""
    log, [outer] = asked()
    log.start(outer)
    inner, refused = log.system.new_id("call"), log.system.new_id("call")
    log.start(inner, parent_call=outer)
    log.finish(inner, "inner")
    log.refuse(refused, parent_call=outer)
    log.finish(outer, "outer")
    assert said(log)[2:] == [("tool", "outer")]


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [("ok", False), ("error", True), ("aborted", True), ("timed_out", True), ("unknown", True)],
)
def test_d_5_a_call_that_did_not_succeed_is_flagged(outcome: str, failed: bool) -> None:
    """Whatever its parts say; what went wrong is told behind them, in words."""
    log, [call] = asked()
    log.start(call)
    blob = BlobRef(hash="a" * 64, bytes=3, media_type="image/png")
    parts = (JsonPart(value={"n": None}), BlobPart(blob=blob))
    log.finish(call, outcome=outcome, result=ToolResult(parts=parts, message="so it went"))
    answer = log.conversation.messages[-1]
    assert answer == ToolMessage(
        call_id=call, parts=(*parts, TextPart(text="so it went")), failed=failed
    )


def test_tool_6_files_that_no_request_has_room_for_are_told_of_in_words() -> None:
    """What a tool returned must not make every later request one that cannot be sent."""
    half = MAX_ATTACHED_BYTES // 2
    log, calls = asked("photo", "scan", "photo")
    images = [
        BlobRef(hash=letter * 64, bytes=size, media_type="image/png")
        for letter, size in (("a", half), ("b", half + 1), ("a", half))
    ]
    for call, image in zip(calls, images, strict=True):
        log.start(call)
        part = BlobPart(blob=image, name=f"{call}.png")
        log.finish(call, result=ToolResult(parts=(part,)), attachments=(image,))
    first, second, same = (message.parts for message in log.conversation.messages[-3:] if message)
    assert [part.kind for part in (*first, *second, *same)] == ["blob", "text", "blob"]
    [line] = second
    assert isinstance(line, TextPart)
    assert line.text.startswith(f"[{calls[1]}.png, image/png, {half + 1} bytes, cannot be shown")
    assert sum(one.bytes for one in log.conversation.blobs.values()) <= MAX_ATTACHED_BYTES


def test_tool_6_a_persons_file_that_has_no_room_is_told_of_in_words() -> None:
    """Whatever tools brought before: the thread goes on, and whoever sent it can be told."""
    log, [call] = asked("photo")
    log.start(call)
    image = BlobRef(hash="a" * 64, bytes=MAX_ATTACHED_BYTES - 10, media_type="image/png")
    log.finish(call, result=ToolResult(parts=(BlobPart(blob=image),)), attachments=(image,))
    for letter, size in (("b", 11), ("c", 10)):
        mine = BlobRef(hash=letter * 64, bytes=size, media_type="image/png")
        parts = (TextPart(text="This:"), BlobPart(blob=mine, name=f"{letter}.png"))
        log.consume(log.send(message=UserMessage(parts=parts)))
    large, small = (message.parts for message in log.conversation.messages[-2:] if message)
    assert [part.kind for part in (*large, *small)] == ["text", "text", "text", "blob"]
    line = large[1]
    assert isinstance(line, TextPart)
    assert line.text.startswith("[b.png, image/png, 11 bytes, cannot be shown: ")
    assert sum(one.bytes for one in log.conversation.blobs.values()) == MAX_ATTACHED_BYTES


def test_tool_6_a_text_that_has_no_room_can_be_read() -> None:
    """Though the Spec shows results whole; its name is that of its place."""
    log, [call] = asked("fetch")
    log.start(call)
    image = BlobRef(hash="a" * 64, bytes=MAX_ATTACHED_BYTES, media_type="image/png")
    text = BlobRef(hash="b" * 64, bytes=1, media_type="text/plain")
    parts = (BlobPart(blob=image), BlobPart(blob=text))
    log.finish(call, result=ToolResult(parts=parts), attachments=(image, text))
    answer = log.conversation.messages[-1]
    assert answer is not None
    assert [part.kind for part in answer.parts] == ["blob", "text"]
    line = answer.parts[1]
    assert isinstance(line, TextPart)
    assert line.text.startswith("[a file, text/plain, 1 bytes, is not shown here. Read it with ")
    assert line.text.endswith(f'result="{call}.2"]')
    assert log.conversation.wholes == {f"{call}.2": Whole(log.run_id, text)}


def test_d_5_a_refused_call_is_flagged_and_says_why() -> None:
    """In its words, or by its code when it has none."""
    for message, shown in [("No such tool.", "No such tool."), (None, "unknown")]:
        log, [call] = asked()
        log.refuse(call, "unknown", message=message)
        assert log.conversation.messages[-1] == ToolMessage(
            call_id=call, parts=(TextPart(text=shown),), failed=True
        )


def test_d_5_a_result_without_parts_is_an_answer_still() -> None:
    """Every call has one."""
    log, [call] = asked()
    log.start(call)
    log.finish(call, result=None)
    assert log.conversation.complete()[-1] == ToolMessage(call_id=call, parts=())


@pytest.mark.parametrize("seed", range(10, 12))
def test_d_5_every_prefix_where_a_model_call_may_start_is_paired(seed: int) -> None:
    """After any record that leaves no call open, wherever the log stops."""
    log = lived(seed)
    state_log = LogBuilder()
    checked = 0
    for entry in log.entries:
        state_log.add(entry.record.model_copy(update={"seq": 0, "epoch": 0, "prev": None}))
        if not state_log.state.any("call", "asked", "proposed", "started"):
            assert_paired(state_log.conversation.complete())
            checked += 1
        else:
            with pytest.raises(ValueError, match="no answer yet"):
                state_log.conversation.complete()
    assert checked > 30
    assert_paired(log.conversation.settled())


def test_r_18_a_run_goes_on_from_its_predecessor_s_messages() -> None:
    """They come first, and stay as they were."""
    before = two_turns().conversation.settled()
    next_run = Conversation(before)
    log = lived(5)
    for entry in log.entries[:12]:
        next_run.add(entry.record)
    assert tuple(next_run.messages[: len(before)]) == before
    assert text_of(next_run.settled()[len(before)]) == '"hi"'
    assert_paired(next_run.settled())


def test_r_18_a_compaction_covers_the_predecessor_s_messages_too() -> None:
    """Everything up to `upto`."""
    log = claimed()
    log.turn(text="one")
    compaction = compact(log, log.conversation.last)
    conversation = Conversation(two_turns().conversation.settled())
    for entry in log.entries:
        conversation.add(entry.record)
    assert conversation.settled() == (SUMMARY,)
    assert (conversation.base, conversation.last) == (compaction.id, compaction.id)


def test_r_25_a_compaction_covers_a_turn_whose_first_call_ended_last() -> None:
    """No answer is left behind without the call that it answers."""
    log, [a, b] = asked("look", "look")
    for call in (a, b):
        log.start(call)
    log.finish(b, "second")
    last = log.finish(a, "first")
    compact(log, last.id)
    assert log.conversation.complete() == (SUMMARY,)
    log.turn(text="on")
    assert said(log) == [("user", "so far"), ("assistant", "on")]


def test_r_25_a_compaction_keeps_what_came_after_its_end() -> None:
    """Later turns stay, in pairs, and go on."""
    log, [a, b] = asked("look", "look")
    for call in (b, a):
        log.start(call)
        log.finish(call, "old")
    upto = log.conversation.last
    [c, d] = log.turn(calls=["look", "look"], text="new")
    for call in (d, c):
        log.start(call)
        log.finish(call, "new result")
    compact(log, upto)
    log.turn(text="end")
    assert_paired(log.conversation.complete())
    assert [text for _, text in said(log)] == ["so far", "new", "new result", "new result", "end"]


def test_r_25_a_compaction_may_follow_another_at_once() -> None:
    """The summary was still too long: the second covers the first."""
    log = claimed()
    log.turn(text="one")
    first = compact(log, log.conversation.last)
    assert log.conversation.last == first.id
    second = compact(log, log.conversation.last)
    log.turn(text="two")
    assert log.conversation.base == second.id
    assert [text for _, text in said(log)] == ["so far", "two"]


def test_r_25_a_second_compaction_covers_the_first_summary() -> None:
    """Its end is a record that the first one left standing."""
    log = claimed()
    log.turn(text="one")
    upto = log.conversation.last
    log.turn(text="two")
    between = log.conversation.last
    log.turn(text="three")
    compact(log, upto)
    compact(log, between)
    assert [text for _, text in said(log)] == ["so far", "three"]


def test_r_25_answers_still_to_come_find_their_places() -> None:
    """Also in a conversation that is compacted while a call runs; no Run does that."""
    log = claimed()
    log.turn(text="one")
    upto = log.conversation.last
    [call] = log.turn(calls=["look"], text="two")
    log.conversation.add(draft(log, "context.compacted", upto=upto))
    log.start(call)
    log.finish(call, "here")
    assert [text for _, text in said(log)] == ["so far", "two", "here"]


def test_r_25_calls_are_found_again_after_a_compaction() -> None:
    """Answers find their places in what is left."""
    log = claimed()
    log.turn(text="one")
    compact(log, log.conversation.last)
    [call] = log.turn(calls=["look"])
    log.start(call)
    log.finish(call, "here")
    assert said(log)[-1] == ("tool", "here")
    assert log.conversation.asked(call).calls == (call,)


def test_r_25_a_compaction_that_ends_nowhere_is_corrupt() -> None:
    """At a record that is no part of the conversation, at itself, or inside a turn."""
    log, [a, b] = asked("look", "look")
    answer = log.conversation.last
    for call in (b, a):
        log.start(call)
        log.finish(call)
    inside = log.entries[-3].record.id
    offer = log.entries[3].record.id
    log.answer(log.ask(purpose="compaction"))
    for upto, reason in [
        ("rec_" + "9" * 26, "upto_unknown"),
        (offer, "upto_unknown"),
        (inside, "upto_inside_turn"),
        (answer, "upto_inside_turn"),
    ]:
        conversation = Conversation()
        for entry in log.entries:
            conversation.add(entry.record)
        with pytest.raises(CorruptLog) as caught:
            conversation.add(draft(log, "context.compacted", upto=upto))
        assert caught.value.reason == reason
    itself = draft(log, "context.compacted")
    with pytest.raises(CorruptLog, match="upto_unknown"):
        log.conversation.add(itself.model_copy(update={"upto": itself.id}))


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"message": "hello"}, [TextPart(text="hello")]),
        ({"message": ""}, [TextPart(text="")]),
        (
            {"message": [{"kind": "text", "text": "a"}, {"kind": "json", "value": None}]},
            [TextPart(text="a"), JsonPart(value=None)],
        ),
        ({"message": [{"kind": "film"}]}, [TextPart(text='{"message":[{"kind":"film"}]}')]),
        ({"message": None}, [TextPart(text='{"message":null}')]),
        ({"message": 7}, [TextPart(text='{"message":7}')]),
        (
            {"message": "hello", "more": 1},
            [TextPart(text='{"message":"hello","more":1}')],
        ),
        ({"n": 1.0}, [TextPart(text='{"n":1.0}')]),
        ("hello", [TextPart(text='"hello"')]),
        ("é\u2028😀", [TextPart(text='"é\u2028😀"')]),
        (None, [TextPart(text="null")]),
        ([], [TextPart(text="[]")]),
        (False, [TextPart(text="false")]),
    ],
)
def test_mod_8_an_input_is_a_message_or_its_json_text(
    value: JsonValue, parts: list[TextPart | JsonPart]
) -> None:
    """`{"message": text or parts}`, and anything else as it would be written."""
    assert list(input_parts(value)) == parts


def test_mod_8_no_input_is_no_message() -> None:
    """The model is shown nothing that nobody said."""
    log = LogBuilder()
    admitted = log.admit(None)
    assert log.conversation.messages == []
    assert log.conversation.last == admitted.id


def test_r_11_an_erased_run_has_no_conversation() -> None:
    """At the first record whose words are gone, whichever that is."""
    log = whole_log()
    rows = erased(log.rows)
    for number, row in enumerate(rows):
        if row.content == log.rows[number].content or row.type == "model.delta":
            continue
        conversation = Conversation()
        for one in log.rows[:number]:
            conversation.add(decode_anew(one).record)
        with pytest.raises(ContentErased) as caught:
            conversation.add(decode_anew(row).record)
        assert caught.value.run_id == log.run_id


def test_r_10_a_delta_whose_words_are_gone_is_not_missed() -> None:
    """model.completed says the whole again, so a purge may drop deltas."""
    log = claimed()
    log.begin_turn()
    call = log.ask()
    log.write(ModelDelta, call=call, channel="text", text="he")
    log.answer(call, text="hello")
    conversation = Conversation()
    for row in log.rows:
        one = row if row.type != "model.delta" else erased([row])[0]
        conversation.add(decode_anew(one).record)
    assert conversation.settled() == log.conversation.settled()
