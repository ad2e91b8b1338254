"""How often each tool failed or brought the same, in a row, record by record (TOOL-5).

What a limit makes of it is not known here: the same log gives the same numbers to whoever folds
it, whichever limits the Spec has.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from psych_schema.common import BlobRef
from psych_schema.record import (
    Failure,
    Record,
    ToolCompleted,
    ToolResult,
)

__all__ = ["NOT_HAPPENED", "NOT_READ", "WITHHELD", "Streaks"]

NOT_HAPPENED: Final = "not_happened"  # of a call that was cut off before it did anything
NOT_READ: Final = "not_read"  # of a part of a result: it is none, or its store was away (TOOL-6)
WITHHELD: Final = "withheld"  # of a tool that is offered and refused when it is called

_KINDS: Final = frozenset(
    {
        "advisory.added",
        "model.completed",
        "queue.consumed",
        "tool.completed",
        "tool.refused",
        "tool.started",
        "tools.offered",
        "wait.opened",
    }
)
_FAILED: Final = frozenset({"error", "timed_out"})
_NO_FAILURES: Final = frozenset({NOT_HAPPENED, NOT_READ})


class _Begun(NamedTuple):
    identity: str
    digest: str


class _Seen(NamedTuple):
    """A call and what it brought; equal ones are the same call with the same result."""

    digest: str
    outcome: str
    failure: Failure | None
    result: ToolResult | str | None  # a shortened one by its blob: the preview names a handle
    files: tuple[BlobRef, ...]


@dataclass(slots=True)
class _Row:
    """What one tool did last, and how often in a row."""

    failures: int = 0
    seen: _Seen | None = None
    same: int = 0
    news: int = 0  # what was new when it was seen last
    turn: int = 0  # of its last call that ended, or that a guard refused
    insisted: int = 0  # later turns that called it although a guard refused


class Streaks:
    """Failures and repeats of each tool identity over the whole Run.

    A failure is a call that was executed and ended as error or timed_out; ok ends the row. One
    that is unknown, was aborted or did not happen is neither: nobody knows that the tool failed,
    or it was we who stopped it. Nor is one that was to read a part of a result and got no range
    or pattern that is one, as malformed arguments are no failure, or whose store was away.

    Repeats are calls of a tool with the same arguments and the same result, one after another.
    Anything new in between ends the row, since the result may differ next time: another call or
    another result of any tool, a message that was read, a wait that is over. Records of others
    are not looked at: where they stand among an attempt's own is known only once it has written.

    `withheld` are the identities that the last `tools.offered` names as such; `told`: an
    advisory about others stands behind it.
    """

    __slots__ = (
        "_begun",
        "_identities",
        "_names",
        "_news",
        "_rows",
        "_turn",
        "_waiting",
        "told",
        "withheld",
    )

    def __init__(self) -> None:
        self.withheld: frozenset[str] = frozenset()
        self.told = False
        self._rows: dict[str, _Row] = {}  # by identity
        self._begun: dict[str, _Begun] = {}  # by call, until it ends
        self._names: dict[str, str] = {}  # by call, until it ends
        self._waiting: set[str] = set()  # calls that wait for people, events or time
        self._identities: dict[str, str] = {}  # by the name that the model sees
        self._news = 0
        self._turn = 0

    def add(self, record: Record) -> None:
        """Take one record."""
        told = vars(record)  # of 35 classes, whose attributes Python finds slowly
        kind = told["type"]
        if kind not in _KINDS:
            return
        match kind:
            case "model.completed" if told["turn"] is not None:
                self._turn = told["turn"]
                asked = told["said"].calls if told["said"] else ()
                self._names |= {one.call_id: one.name for one in asked}
            case "tools.offered":
                self._identities = {one.alias: one.identity for one in told["tools"]}
                missing = told["unavailable"]
                self.withheld = frozenset(one.identity for one in missing if one.code == WITHHELD)
                self.told = False
            case "advisory.added":
                self.told |= told["code"] == WITHHELD
            case "tool.started":
                self._begun[told["call_id"]] = _Begun(told["identity"], told["digest"])
            case "tool.completed" if isinstance(record, ToolCompleted):
                self._names.pop(record.call_id, None)
                begun = self._begun.pop(record.call_id, None)
                if begun is not None:
                    self._ended(begun, record)
            case "tool.refused":
                name = self._names.pop(told["call_id"], None)
                if name is not None and told["code"] == "guard":
                    self._insisted(name)
            case "wait.opened" if told["call"] is not None:
                self._waiting.add(told["call"])
            case "queue.consumed":
                self._news += 1
            case _:
                return

    def failures(self, identity: str) -> int:
        """Return how many calls of a tool failed in a row."""
        row = self._rows.get(identity)
        return 0 if row is None else row.failures

    def repeats(self, identity: str, digest: str) -> int:
        """Return how often a tool brought the same for these arguments, in a row until now."""
        row = self._rows.get(identity)
        if row is None or row.seen is None or row.seen.digest != digest:
            return 0
        return self._same(row)

    def most_failures(self, limit: int) -> int:
        """Return the longest row of failures, where `limit` of them withhold a tool.

        What failed beyond it ran beside and does not count; each later turn that called the
        tool does, since the model knew.
        """
        return max((_counted(one.failures, one, limit) for one in self._rows.values()), default=0)

    def most_repeats(self, limit: int) -> int:
        """Return the longest row of repeats, counted alike."""
        rows = self._rows.values()
        return max((_counted(self._same(one), one, limit) for one in rows), default=0)

    def _same(self, row: _Row) -> int:
        return row.same if row.news == self._news else 0

    def _ended(self, begun: _Begun, record: ToolCompleted) -> None:
        row = self._rows.setdefault(begun.identity, _Row())
        row.turn, row.insisted = self._turn, 0
        if record.outcome == "ok":
            row.failures = 0
        elif record.outcome in _FAILED and not _is_no_failure(record):
            row.failures += 1
        if record.call_id in self._waiting:
            self._waiting.discard(record.call_id)
            self._news += 1
        result = record.elided.blob.hash if record.elided else record.result
        files = record.attachments
        seen = _Seen(begun.digest, record.outcome, record.failure, result, files)
        if seen == row.seen:
            row.same = self._same(row) + 1
        else:
            row.seen, row.same = seen, 1
            self._news += 1
        row.news = self._news

    def _insisted(self, name: str) -> None:
        row = self._rows.get(self._identities.get(name, ""))
        if row is not None and row.turn < self._turn:
            row.turn = self._turn
            row.insisted += 1


def _is_no_failure(record: ToolCompleted) -> bool:
    return record.failure is not None and record.failure.code in _NO_FAILURES


def _counted(count: int, row: _Row, limit: int) -> int:
    return count if count < limit else limit + row.insisted
