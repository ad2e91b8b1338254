"""LOG-2: what a model is shown is not copied for each turn, and never changes under it."""

import copy
import pickle
from collections.abc import Sequence

import pytest

from psych_runtime import ModelRequest
from psych_runtime.core._prefix import Prefix
from psych_schema.model import Message, TextPart, UserMessage
from psych_schema.record import ContextCompacted
from tests.unit.core.logs import SUMMARY, claimed


def message(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def request(messages: Sequence[Message]) -> ModelRequest:
    """Build a request as the runtime does: what it made itself is not validated again (R-31)."""
    return ModelRequest.model_construct(model="m", system="", messages=messages)


def test_log_2_a_prefix_is_what_the_list_was() -> None:
    """What is appended later is not seen."""
    items = ["a", "b", "c"]
    seen = Prefix(items)
    items.append("d")
    assert (len(seen), list(seen)) == (3, ["a", "b", "c"])
    assert seen == ("a", "b", "c")
    assert (seen[0], seen[-1], seen[2]) == ("a", "c", "c")
    assert (seen[1:], seen[:10], seen[::-1]) == (("b", "c"), ("a", "b", "c"), ("c", "b", "a"))
    assert ("c" in seen, "d" in seen) == (True, False)
    assert list(reversed(seen)) == ["c", "b", "a"]
    for place in (3, -4):
        with pytest.raises(IndexError):
            seen[place]


def test_log_2_a_prefix_equals_a_tuple_of_the_same() -> None:
    """As the tuple that it stands for; a list is none."""
    assert Prefix([1, 2]) == (1, 2) == Prefix([1, 2])
    assert Prefix([1, 2]) != (1, 2, 3)
    assert Prefix([1, 2]) != [1, 2]
    assert hash(Prefix([1, 2])) == hash((1, 2))
    assert repr(Prefix([1, 2])) == "(1, 2)"


def test_log_2_a_copy_of_a_prefix_is_a_tuple() -> None:
    """It needs no list behind it."""
    items = [message("a"), message("b")]
    seen = Prefix(items)
    items.append(message("c"))
    for other in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert type(other) is tuple
        assert other == seen


def test_r_31_a_request_with_a_prefix_is_written_and_read_as_any_other() -> None:
    """Clients log requests, and build their own of what they got."""
    items: list[Message] = [message("a"), message("b")]
    plain = request(tuple(items))
    shown = request(Prefix(items))
    items.append(message("c"))
    assert shown == plain
    assert shown.model_dump() == plain.model_dump()
    assert shown.model_dump_json() == plain.model_dump_json()
    assert ModelRequest.model_validate_json(shown.model_dump_json()).messages == plain.messages
    again = ModelRequest(model="m", system="", messages=shown.messages)
    assert (type(again.messages), again.messages) == (tuple, plain.messages)


@pytest.mark.parametrize("wrong", ["text", b"bytes", 7, None, {"role": "user"}, [7]])
def test_r_31_what_is_no_sequence_of_messages_is_refused(wrong: object) -> None:
    """As it was for a tuple."""
    with pytest.raises(ValueError, match="messages"):
        ModelRequest.model_validate({"model": "m", "system": "", "messages": wrong})


def test_mod_8_a_compaction_changes_nothing_that_was_shown() -> None:
    """A client may still be reading it."""
    log = claimed()
    log.offer("look")
    [call] = log.turn(calls=["look"])
    log.start(call)
    log.finish(call)
    shown = log.conversation.complete()
    before = tuple(shown)
    call = log.ask(purpose="compaction")
    log.answer(call, text="so far")
    upto = log.conversation.last
    log.write(ContextCompacted, upto=upto, summary=SUMMARY, call=call, reason="asked")
    assert log.conversation.complete() == (SUMMARY,)
    assert len(before) == 3
    assert shown == before
