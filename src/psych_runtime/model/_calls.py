"""Puts the pieces of tool calls together, whatever way a server numbers them (MOD-1)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from psych_runtime.model._json import mend, object_at, text_at
from psych_schema.model import CallDelta

__all__ = ["CallPieces"]


@dataclass(slots=True)
class _Call:
    """One call, counted by us in the order of appearance."""

    index: int
    provider_id: str = ""
    name: str = ""
    told: bool = False
    half: str = ""


class CallPieces:
    """Gives each call an index of its own, and tells id and name once, with its first piece.

    Pieces are matched by the server's index where it sends one, else by id, else they belong to
    the last call. A piece that brings another name, or another id with a name, begins a call.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int | str, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def read(self, pieces: Sequence[object]) -> list[CallDelta]:
        """Return the deltas of one chunk's pieces."""
        deltas: list[CallDelta] = []
        touched: set[int] = set()
        for piece in pieces:
            if not isinstance(piece, dict):
                continue
            call = self._find(piece, touched)
            touched.add(call.index)
            function = object_at(piece, "function") or piece
            if not call.told:
                name = text_at(function, "name")
                call.name += name if name != call.name else ""  # repeated, or in pieces
            text = _arguments(function.get("arguments"))
            if text:
                deltas.append(self._delta(call, text))
        return deltas

    def end(self) -> list[CallDelta]:
        """Return what has not been told: calls without arguments, and a half character."""
        deltas = []
        for call in self._calls:
            if call.half or not call.told:
                text, call.half = mend(call.half), ""
                deltas.append(self._told(call, text))
        return deltas

    def _find(self, piece: dict[str, object], touched: set[int]) -> _Call:
        provider_id = text_at(piece, "id")
        name = text_at(object_at(piece, "function") or piece, "name")
        number = piece.get("index")
        if isinstance(number, int | str):
            call = self._by_index.get(number)
        else:
            call = self._unnumbered(provider_id, name, touched)
        if call is None or _begins_another(call, provider_id, name):
            call = _Call(len(self._calls))
            self._calls.append(call)
        if isinstance(number, int | str):
            self._by_index[number] = call
        if provider_id and not call.provider_id:
            call.provider_id = provider_id
            self._by_id[provider_id] = call
        return call

    def _unnumbered(self, provider_id: str, name: str, touched: set[int]) -> _Call | None:
        call = self._by_id.get(provider_id)
        if call is None and self._calls and not name:
            call = self._calls[-1]
        # Without numbers, one array holds one piece of each call.
        return None if call is None or call.index in touched else call

    def _delta(self, call: _Call, text: str) -> CallDelta:
        text, call.half = call.half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, call.half = text[:-1], text[-1]
        return self._told(call, mend(text))

    def _told(self, call: _Call, text: str) -> CallDelta:
        if call.told:
            return CallDelta(index=call.index, arguments=text)
        call.told = True
        return CallDelta(
            index=call.index,
            provider_id=mend(call.provider_id) or None,
            name=mend(call.name) or None,
            arguments=text,
        )


def _begins_another(call: _Call, provider_id: str, name: str) -> bool:
    if not name:
        return False
    if provider_id and call.provider_id and provider_id != call.provider_id:
        return True
    return call.told and name != call.name


def _arguments(value: object) -> str:
    """Return arguments as text; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
