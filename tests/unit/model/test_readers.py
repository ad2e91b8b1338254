"""What each reader makes of a stream, whatever the format (LOG-5, MOD-5, SEC-2)."""

import pytest

from psych_runtime.errors import ModelTransient
from psych_schema.model import Finish, ModelEvent, TextDelta
from tests.servers.formats import Format, each_format


def _read(form: Format, *values: object) -> list[ModelEvent]:
    reader = form.reader(host="h", redact=lambda said: said.replace("sk-canary", "[removed]"))
    return [event for value in values for event in reader.read(value)] + list(reader.end())


@each_format
def test_log_5_a_character_split_over_two_pieces_is_one(form: Format) -> None:
    """Servers that count in UTF-16 cut emoji in two."""
    assert _read(form, *form.say("a\ud83d", "\ude00b"), *form.end[:-1]) == [
        TextDelta(text="a"),
        TextDelta(text="😀b"),
        Finish(reason="stop", served_by="served-model"),
    ]


@each_format
def test_log_5_half_a_character_at_the_end_is_replaced(form: Format) -> None:
    """No lone surrogate passes."""
    assert _read(form, *form.say("a\ud83d"), *form.end[:-1])[1] == TextDelta(text="\ufffd")


@each_format
def test_mod_5_an_end_without_finish_is_transient(form: Format) -> None:
    """A stream that was cut looks like this."""
    with pytest.raises(ModelTransient, match=form.unfinished):
        _read(form, *form.say("Hel"))


@each_format
@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_mod_5_what_is_no_object_is_garbled(form: Format, value: object) -> None:
    """Worth another try."""
    with pytest.raises(ModelTransient, match="garbled"):
        _read(form, value)


@each_format
def test_sec_2_an_error_s_words_lose_the_secret_before_they_are_cut(form: Format) -> None:
    """A bound in the middle of the key would leave half of it."""
    for padding in range(980, 1030):
        with pytest.raises(ModelTransient) as caught:
            _read(form, form.fault("x" * padding + "sk-canary"))
        assert "sk" not in str(caught.value)
        assert len(str(caught.value)) <= 1024
