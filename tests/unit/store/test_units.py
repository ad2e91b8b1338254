"""What no store accepts from a writer, and what it makes of a change (R-1)."""

from datetime import timedelta

import pytest

from psych_runtime.ports.store import REMAINING, After, Change, HeaderChange, Unit
from psych_runtime.store._notices import News
from psych_runtime.store.contract._build import (
    START,
    admit,
    change,
    key_row,
    new_id,
    sealed,
    unit,
)
from psych_runtime.store.units import changed, check_units, edit_open, news_of

RUN = new_id()
OTHER = new_id()


def _records(*seqs: int, run_id: str = RUN, tenant: str = "acme") -> Change:
    records = tuple(sealed(run_id, seq, tenant=tenant) for seq in seqs)
    return Change(RUN, 1, None, records, HeaderChange())


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (unit(_records(3)), "seq 2 of"),
        (unit(_records(2, 4)), "seq 3 of"),
        (unit(_records(2, 2)), "seq 3 of"),
        (unit(_records(1)), "seq 2 of"),
        (unit(_records(2, run_id=new_id())), "expected, not seq 2 of"),
        (unit(_records(2, tenant="globex")), "seq 2 of"),
        (unit(change(RUN, 1), change(RUN, 1)), "the same run twice"),
        (unit(admit(RUN), change(RUN, 1)), "the same run twice"),
        (unit(admit(), keys=[key_row("k"), key_row("k")]), "the same key twice"),
        (unit(admit(), keys=[key_row("k", tenant="globex")]), "a row of another tenant"),
        (unit(admit(tenant="globex")), "a row of another tenant"),
        (unit(admit(columns={"head": 2})), "an admission's head is its last seq"),
    ],
)
def test_r_1_what_no_writer_may_send_is_a_bug(refused: Unit, words: str) -> None:
    """A gap or a foreign row is refused before anything is judged."""
    with pytest.raises(ValueError, match=words):
        check_units([unit(admit()), refused])


def test_r_1_what_a_writer_sends_passes() -> None:
    """Neighbours of each: several Runs, several keys, no records."""
    keys = [key_row("k"), key_row("k", run_id=RUN), key_row("l")]
    check_units([unit(admit(), change(RUN, 4, count=3), keys=keys), unit(change(RUN, 1, count=0))])


def test_r_1_columns_that_are_not_named_stay() -> None:
    """A plain change sets head, hash and instant only."""
    header = admit().header
    plain = change(header.run_id, 1)
    last = plain.records[-1]
    assert changed(header, plain, START) == {
        "head": 2,
        "head_hash": last.hash,
        "head_at": last.record.at,
    }
    assert changed(header, change(header.run_id, 1, count=0), START) == {}


def test_r_14_the_store_computes_instants() -> None:
    """After is its now plus seconds; None and instants are taken as they are."""
    header = admit(columns={"deadline_at": START + timedelta(seconds=30)}).header
    edit = HeaderChange(wake_at=After(5), deadline_at=None, remaining_seconds=REMAINING)
    found = changed(header, change(header.run_id, 1, edit=edit, count=0), START)
    assert found == {
        "wake_at": START + timedelta(seconds=5),
        "deadline_at": None,
        "remaining_seconds": 30.0,
    }
    late = changed(header, change(header.run_id, 1, edit=edit, count=0), START.replace(year=2027))
    assert late["remaining_seconds"] == 0.0


def test_r_1_open_is_edited_in_a_copy() -> None:
    """What closes is gone, also when it opened in the same change."""
    before = {"a": 1, "b": 2}
    edit = HeaderChange(opened={"c": 3, "d": 3}, closed=("a", "d", "none"))
    assert edit_open(before, edit) == {"b": 2, "c": 3}
    assert before == {"a": 1, "b": 2}


def test_str_1_every_change_of_a_unit_is_news() -> None:
    """Also one without records; an admission is named here, and work for others."""
    admitted = admit()
    found = news_of([unit(admitted, change(RUN, 4, count=2)), unit(change(OTHER, 4, count=0))])
    heads = {("acme", admitted.run_id): 1, ("acme", RUN): 6}
    touched = {("acme", OTHER): 4}
    assert found == News(heads, touched, frozenset(), admitted=(admitted,))
    assert found.for_others() == News(heads, touched, frozenset(), work=True)
    ready = HeaderChange(state="ready")
    assert news_of([unit(change(RUN, 4, edit=ready))]).work
    for state in ("settled", "corrupt"):
        edit = HeaderChange(state=state)
        found = news_of([unit(change(RUN, 4, edit=edit), change(OTHER, 4))])
        assert found.over == frozenset({("acme", RUN)})
        assert not found.work
    assert news_of([]) == News({}, over=frozenset())
