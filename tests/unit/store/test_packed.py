"""Bodies as servers keep them come back as the very text that was written (LOG-4)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from psych_runtime.core.codec import Position, decode_anew, seal
from psych_runtime.core.models import altered
from psych_runtime.ports.store import Sealed
from psych_runtime.store.sql._packed import packed, unpacked
from psych_schema.store import RecordRow
from tests.golden.folding import names, read_rows

_RUN = "run_01m8pr2h2ft4k7b30zdvvkp9bm"


def _sealed(name: str) -> list[Sealed]:
    """Return the records of a golden log as the codec seals them."""
    found: list[Sealed] = []
    head = Position()
    for row in read_rows(name):
        record = decode_anew(row).record
        salts = iter(lambda: "0123456789abcdef" * 2, "")
        found += seal(
            [record],
            head,
            tenant=row.tenant,
            epoch=record.epoch,
            commit_id=record.commit,
            salts=salts,
        )
        head = Position(found[-1].row.seq, found[-1].hash, found[-1].record.at)
    return found


def _back(kept: RecordRow) -> RecordRow:
    body, salt = unpacked(kept.body, kept.salt, kept.run_id, kept.seq, kept.type)
    return altered(kept, {"body": body, "salt": salt})


@pytest.mark.parametrize("name", names())
def test_log_4_every_record_comes_back(name: str) -> None:
    """Each type of record that was ever written."""
    for sealed in _sealed(name):
        assert _back(packed(sealed)) == sealed.row


def test_what_is_kept_is_shorter_by_a_third_and_its_own_fields_are_json() -> None:
    """As a live Run writes it, whose ids begin as the Run's does."""
    sealed = _sealed("v1_lived_answer")
    before = sum(len(one.row.body) for one in sealed)
    after = [packed(one).body for one in sealed]
    assert sum(map(len, after)) < before * 2 / 3
    assert sum(map(len, after)) == 4058  # what a server's log grows by
    assert all(text[0] == "A" for text in after)
    assert any('{"turn":1,"purpose":"answer"}' in text for text in after)


@given(
    st.sampled_from(["body", "type", "seq", "salt", "content"]),
    st.integers(0, 40),
    st.sampled_from(["", "x", "{", "|", "}"]),
)
def test_a_row_that_somebody_altered_is_kept_as_it_is(name: str, back: int, text: str) -> None:
    """Behind its envelope, or in another column."""
    for sealed in _sealed("v1_lived_answer"):
        told = vars(sealed.row)
        value: object = told[name]
        if isinstance(value, str):
            end = len(value) - back
            value = value[:end] + text + value[end + 1 :]
        elif isinstance(value, int):
            value += 1
        odd = sealed._replace(row=altered(sealed.row, {name: value}))
        kept = packed(odd)
        assert _back(kept) == odd.row


@given(st.text(st.sampled_from("01mz|{}-é"), min_size=1, max_size=40))
def test_ids_of_anybodys_making_come_back(id: str) -> None:
    """Also those that no schema would let pass."""
    for one in _sealed("v1_lived_answer")[:3]:
        draft = altered(one.record, {"id": f"rec_{id}"})
        [sealed] = seal(
            [draft],
            Position(one.row.seq - 1, one.record.prev, one.record.at),
            tenant="local",
            epoch=1,
            commit_id=f"com_{id}",
            salts=["ab" * 16],
        )
        assert _back(packed(sealed)) == sealed.row


def test_a_record_of_a_newer_build_is_kept_as_it_is() -> None:
    """Its envelope may be another one."""
    [one, *_] = _sealed("v1_lived_answer")
    draft = altered(one.record, {"v": 2})
    [sealed] = seal(
        [draft], Position(), tenant="local", epoch=0, commit_id=one.record.commit, salts=["ab" * 16]
    )
    assert packed(sealed).body == sealed.row.body


@given(st.text().map("A".__add__), st.one_of(st.none(), st.text()))
@example("A261130171828208752-|-|1|AAA=|{", "a")
@example("A||||{", "é")
@example("Aé|é|é|é|é{", None)
def test_a_text_that_somebody_altered_raises_nothing(text: str, salt: str | None) -> None:
    """Whoever reads it says what is wrong with it."""
    body, found = unpacked(text, salt, _RUN, 3, "turn.started")
    assert isinstance(body, str)
    assert found is None or isinstance(found, str)


def test_r_16_a_form_of_a_newer_build_is_left_to_the_codec() -> None:
    """Body and salt come as they are kept."""
    text = "B261130171828208752-|-|1|AAA=|{}"
    assert unpacked(text, "AAA", _RUN, 3, "turn.started") == (text, "AAA")
