"""How turns are taken, and what a cursor is (R-15, RUN-9)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from psych_runtime.errors import InvalidPayload
from psych_runtime.store._order import (
    TENANT_WINDOW,
    Position,
    decode_cursor,
    encode_cursor,
    take_fairly,
)
from psych_runtime.store.contract._build import START, admit
from psych_schema.store import RunRow


def _rows(tenant: str, count: int) -> list[RunRow]:
    return [admit(tenant=tenant).header for _ in range(count)]


def test_r_15_tenants_take_turns() -> None:
    """Every first Run comes before any second one."""
    a, b, c = _rows("a", 3), _rows("b", 1), _rows("c", 2)
    everything = (a[0], b[0], c[0], a[1], c[1], a[2])
    for limit in range(8):
        assert take_fairly(map(iter, (a, b, c)), limit) == everything[:limit]


def test_r_15_no_more_is_read_than_is_taken() -> None:
    """A line of a million Runs costs what is taken of it."""
    rows = _rows("a", 10)
    read: list[RunRow] = []

    def line() -> Iterator[RunRow]:
        for row in rows:
            read.append(row)
            yield row

    assert take_fairly([line()], 4) == tuple(rows[:4])
    assert read == rows[:4]


def test_r_15_at_most_64_tenants_are_looked_at() -> None:
    """Those without a Run do not count."""
    lines = [iter(_rows(f"{place:03}", place % 2)) for place in range(200)]
    found = take_fairly(lines, 1000)
    assert TENANT_WINDOW == 64
    assert [row.tenant for row in found] == [f"{place:03}" for place in range(1, 128, 2)]


def test_run_9_a_cursor_gives_its_place_back() -> None:
    """To the microsecond."""
    instant = START + timedelta(microseconds=1)
    row = admit(columns={"created_at": instant}).header
    assert decode_cursor(encode_cursor(row)) == Position(instant, row.run_id)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "2026-01-01T00:00:00.000000Z", "2026-13-01T00:00:00.000000Z_run_" + "0" * 26],
)
def test_run_9_a_foreign_cursor_is_refused(cursor: str) -> None:
    """The error says what to pass."""
    with pytest.raises(InvalidPayload) as caught:
        decode_cursor(cursor)
    assert caught.value.what == "cursor"
