"""What this process wrote lately, so that it need not parse its own words.

What a row says depends on its text alone, and the text is what is looked up: a row that was
changed or erased in the store is another one.
"""

from typing import TYPE_CHECKING, Final

from psych_schema.store import RecordRow

if TYPE_CHECKING:
    from psych_runtime.core.codec import Entry

__all__ = ["Recent"]

_ROWS: Final = 1024  # in each of two halves: enough for all that many Runs have under way
_CHARACTERS: Final = 4096  # of a row: longer ones are rare, and parsing them costs no more


class Recent:
    """Entries by the text of their rows; the older half is forgotten when the newer is full.

    Safe to use from several threads: whatever is forgotten is parsed.
    """

    def __init__(self) -> None:
        self._new: dict[str, tuple[RecordRow, Entry]] = {}
        self._old: dict[str, tuple[RecordRow, Entry]] = {}

    def add(self, row: RecordRow, entry: "Entry") -> None:
        """Remember that `row` says `entry`."""
        if len(row.body) + len(row.content or "") > _CHARACTERS:
            return
        if len(self._new) >= _ROWS:
            self._old, self._new = self._new, {}
        self._new[row.body] = row, entry

    def get(self, row: RecordRow) -> "Entry | None":
        """Return what `row` says, None when that is not known."""
        known = self._new.get(row.body) or self._old.get(row.body)
        return known[1] if known is not None and vars(known[0]) == vars(row) else None
