"""Pieces of tool calls come together whatever way a server numbers them (MOD-1, M3)."""

from collections.abc import Sequence

import pytest

from psych_runtime.model._calls import CallPieces
from psych_schema.model import CallDelta

type Piece = dict[str, object]


def _piece(
    name: str | None = None, arguments: object = None, *, index: object = None, id: object = None
) -> Piece:
    function: Piece = {}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    piece: Piece = {"type": "function", "function": function}
    if index is not None:
        piece["index"] = index
    if id is not None:
        piece["id"] = id
    return piece


def _read(*chunks: Sequence[Piece]) -> list[tuple[str | None, str | None, str]]:
    """Return (provider id, name, arguments) of each call, as a reader of the deltas sees them."""
    pieces = CallPieces()
    deltas = [delta for chunk in chunks for delta in pieces.read(chunk)] + pieces.end()
    calls: dict[int, list[CallDelta]] = {}
    for delta in deltas:
        calls.setdefault(delta.index, []).append(delta)
    assert list(calls) == list(range(len(calls)))
    for told in calls.values():
        assert all(delta.name is None and delta.provider_id is None for delta in told[1:])
    return [
        (told[0].provider_id, told[0].name, "".join(delta.arguments for delta in told))
        for told in calls.values()
    ]


_CASES: dict[str, tuple[list[list[Piece]], list[tuple[str | None, str | None, str]]]] = {
    "as published": (
        [
            [_piece("add", "", index=0, id="call_a")],
            [_piece(None, '{"a":', index=0)],
            [_piece(None, "1}", index=0)],
            [_piece("sub", '{"b":2}', index=1, id="call_b")],
        ],
        [("call_a", "add", '{"a":1}'), ("call_b", "sub", '{"b":2}')],
    ),
    "interleaved": (
        [
            [_piece("add", '{"a"', index=0, id="a"), _piece("sub", '{"b"', index=1, id="b")],
            [_piece(None, ":2}", index=1), _piece(None, ":1}", index=0)],
        ],
        [("a", "add", '{"a":1}'), ("b", "sub", '{"b":2}')],
    ),
    "two calls under one id": (
        [[_piece("add", "{}", index=0, id="a")], [_piece("add", '{"x":1}', index=1, id="a")]],
        [("a", "add", "{}"), ("a", "add", '{"x":1}')],
    ),
    "empty ids": (
        [[_piece("add", "{}", index=0, id=""), _piece("sub", "{}", index=1, id="")]],
        [(None, "add", "{}"), (None, "sub", "{}")],
    ),
    "missing ids": (
        [[_piece("add", "{}", index=0)], [_piece("sub", "{}", index=1)]],
        [(None, "add", "{}"), (None, "sub", "{}")],
    ),
    "id of another type": ([[_piece("add", "{}", index=0, id=7)]], [(None, "add", "{}")]),
    "id and name repeated in each piece": (
        [
            [_piece("add", '{"a"', index=0, id="a")],
            [_piece("add", ":1}", index=0, id="a")],
        ],
        [("a", "add", '{"a":1}')],
    ),
    "empty name in later pieces": (
        [[_piece("add", '{"a"', index=0, id="a")], [_piece("", ":1}", index=0, id="")]],
        [("a", "add", '{"a":1}')],
    ),
    "a new id in each piece": (
        [[_piece("add", '{"a"', index=0, id="a")], [_piece(None, ":1}", index=0, id="b")]],
        [("a", "add", '{"a":1}')],
    ),
    "name in pieces": (
        [
            [_piece("get_", None, index=0, id="a")],
            [_piece("weather", None, index=0)],
            [_piece(None, "{}", index=0)],
        ],
        [("a", "get_weather", "{}")],
    ),
    "id after the name": (
        [[_piece("add", None, index=0)], [_piece(None, "{}", index=0, id="late")]],
        [("late", "add", "{}")],
    ),
    "every call has index 0": (
        [[_piece("add", "{}", index=0, id="a")], [_piece("sub", "{}", index=0, id="b")]],
        [("a", "add", "{}"), ("b", "sub", "{}")],
    ),
    "every call has index 0 and no id": (
        [[_piece("add", "{}", index=0)], [_piece("sub", "{}", index=0)]],
        [(None, "add", "{}"), (None, "sub", "{}")],
    ),
    "indexes that start at 1 and leave one out": (
        [[_piece("add", "{}", index=1, id="a")], [_piece("sub", "{}", index=3, id="b")]],
        [("a", "add", "{}"), ("b", "sub", "{}")],
    ),
    "no index, one chunk": (
        [[_piece("add", '{"a":1}'), _piece("add", '{"a":2}')]],
        [(None, "add", '{"a":1}'), (None, "add", '{"a":2}')],
    ),
    "no index, one chunk, one id": (
        [[_piece("add", '{"a":1}', id="x"), _piece("add", '{"a":2}', id="x")]],
        [("x", "add", '{"a":1}'), ("x", "add", '{"a":2}')],
    ),
    "no index, pieces by id": (
        [
            [_piece("add", "{", id="x")],
            [_piece("sub", "[", id="y")],
            [_piece(None, "}", id="x")],
            [_piece(None, "]", id="y")],
        ],
        [("x", "add", "{}"), ("y", "sub", "[]")],
    ),
    "no index, no id, pieces of the last": (
        [[_piece("add", '{"a"')], [_piece(None, ":1}")], [_piece("sub", "{}")]],
        [(None, "add", '{"a":1}'), (None, "sub", "{}")],
    ),
    "arguments as an object": (
        [[_piece("add", {"a": [1, "ü"]}, index=0, id="a")]],
        [("a", "add", '{"a":[1,"ü"]}')],
    ),
    "no arguments at all": (
        [[_piece("ping", index=0, id="a")], [_piece("pong", index=1, id="b")]],
        [("a", "ping", ""), ("b", "pong", "")],
    ),
    "no name at all": ([[_piece(None, "{}", index=0, id="a")]], [("a", None, "{}")]),
    "half a character": (
        [[_piece("say", '"\ud83d', index=0, id="a")], [_piece(None, '\ude00"', index=0)]],
        [("a", "say", '"😀"')],
    ),
    "half a character and no more": (
        [[_piece("say", '"\ud83d', index=0, id="a")]],
        [("a", "say", '"\ufffd')],
    ),
    "without a function around": (
        [[{"index": 0, "id": "a", "name": "add", "arguments": "{}"}]],
        [("a", "add", "{}")],
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_mod_1_each_call_has_one_index_one_id_one_name(case: str) -> None:
    """Id and name are told once, with the first piece."""
    chunks, calls = _CASES[case]
    assert _read(*chunks) == calls


def test_mod_1_a_piece_that_is_no_object_is_left_out() -> None:
    """Its neighbours count."""
    deltas = CallPieces().read([None, "x", _piece("add", "{}", index=0)])
    assert deltas == [CallDelta(index=0, name="add", arguments="{}")]
