"""What a commit has decided to write, until it is written in a few statements."""

import sqlite3
from collections.abc import Mapping, Sequence

from psych_runtime.store.sqlite._many import Many, inserting, updating
from psych_runtime.store.sqlite._rows import Value
from psych_runtime.store.sqlite._texts import Texts

__all__ = ["Pending"]

type _Row = Mapping[str, Value]


class Pending:
    """Rows by their columns; of a header that changes twice the last counts."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.runs: list[_Row] = []
        self.records: list[_Row] = []
        self.keys: list[_Row] = []
        self._moved: dict[str, _Row] = {}
        self._edited: dict[str, _Row] = {}

    def change(self, run_id: str, after: _Row, *, edited: bool) -> None:
        """Let a header become `after`; not `edited`: only what is in no index."""
        if edited or run_id in self._edited:
            self._moved.pop(run_id, None)
            self._edited[run_id] = after
        else:
            self._moved[run_id] = after

    def write(self, connection: sqlite3.Connection) -> None:
        """Write everything."""
        texts = self._texts
        inserting(texts.insert_run).execute(connection, self.runs)
        inserting(texts.insert_thread).execute(connection, self.runs)
        _update(connection, updating(texts.advance_head), list(self._moved.values()))
        _update(connection, updating(texts.change_header), list(self._edited.values()))
        inserting(texts.insert_record).execute(connection, self.records)
        inserting(texts.insert_key).execute(connection, self.keys)


def _update(connection: sqlite3.Connection, many: Many, rows: Sequence[_Row]) -> None:
    if many.execute(connection, rows) != len(rows):
        raise RuntimeError("a Run changed inside a transaction")
