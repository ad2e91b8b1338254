"""What every format keeps to when a request is written in it (D5, MOD-8, MOD-9)."""

import pytest

from psych_runtime.errors import UnsendableRequest
from psych_schema.common import BlobRef
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    JsonPart,
    Message,
    ModelRequest,
    TextPart,
    ToolMessage,
    UserMessage,
)
from tests.servers.formats import Format, each_format

_ONE = "call_" + "1" * 26
_HASH = "a" * 64
_IMAGE = BlobPart(blob=BlobRef(hash=_HASH, bytes=3, media_type="image/png"))
_HI = UserMessage(parts=(TextPart(text="Hi"),))


def _request(*messages: Message, **attachments: str) -> ModelRequest:
    return ModelRequest(model="m", system="Be brief.", messages=messages, attachments=attachments)


@each_format
def test_mod_8_one_request_is_one_sequence_of_bytes(form: Format) -> None:
    """The order in which a value's keys were put in does not matter."""
    one = _request(UserMessage(parts=(JsonPart(value={"a": 1, "b": 2.5}),)))
    other = _request(UserMessage(parts=(JsonPart(value={"b": 2.5, "a": 1}),)))
    assert form.encode(one) == form.encode(other)


@each_format
@pytest.mark.parametrize(
    ("name", "sent"), [("a b/ü", "a_b__"), ("", "_"), ("x" * 70, "x" * 64), ("ok-1_", "ok-1_")]
)
def test_d5_a_name_that_no_tool_can_have_does_not_go_back(
    form: Format, name: str, sent: str
) -> None:
    """Servers check the names of a history, too."""
    call = AskedCall(call_id=_ONE, name=name, arguments="{}")
    said = AssistantMessage(parts=(), calls=(call,))
    answered = ToolMessage(call_id=_ONE, parts=())
    assert f'"name":"{sent}"'.encode() in form.encode(_request(_HI, said, answered))


@each_format
def test_mod_9_a_blob_without_its_bytes_is_refused(form: Format) -> None:
    """Nothing is left out silently."""
    with pytest.raises(UnsendableRequest, match=r"message 1 has a blob part \(image/png\) whose"):
        form.encode(_request(_HI, UserMessage(parts=(_IMAGE,))))


@each_format
def test_mod_9_a_blob_of_the_model_cannot_be_said(form: Format) -> None:
    """No format has words for it: refused, with the place."""
    with pytest.raises(UnsendableRequest, match="message 1 is the model's"):
        form.encode(_request(_HI, AssistantMessage(parts=(_IMAGE,)), **{_HASH: "cG5n"}))
