"""Records at their places, in units that a store takes (R-1): what LogBuilder is built on."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final, Literal, NamedTuple

from psych_runtime._system import System
from psych_runtime.core.codec import Entry, decode_anew, seal, sha256
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import Changes, RunState, advance, step
from psych_runtime.core.header import claim_change, header_change, wake_change
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import (
    MAX_UNIT_BYTES,
    MAX_UNIT_RECORDS,
    UNSET,
    Admit,
    Change,
    HeaderChange,
    Sealed,
    Store,
    Unit,
)
from psych_runtime.runtime.admission import admit
from psych_runtime.store.units import admitted, changed
from psych_runtime.testing.counting import CountingSystem
from psych_schema.record import AttemptStarted, Record, RunAdmitted, ToolCompleted, WaitResolved
from psych_schema.store import RecordRow, RunRow
from psych_schema.transitions import TRANSITIONS

__all__ = ["LogUnits"]

_UNIT_BYTES: Final = MAX_UNIT_BYTES // 8

type _Kind = Literal["version", "system", "tool"]


class _Written(NamedTuple):
    sealed: Sealed
    changes: Changes
    before: RunRow  # the header that the record found


class LogUnits:
    """A log as it grows: rows, entries, the fold of them, the conversation, header and units.

    Args:
        tenant: whose Run it is.
        system: gives ids, instants and salts; a CountingSystem unless another is given.
        records_per_unit: how many records of one writer are committed together, at most 90.
    """

    def __init__(
        self,
        *,
        tenant: str = "acme",
        system: System | None = None,
        records_per_unit: int = 1,
    ) -> None:
        self.system = system or CountingSystem()
        self.tenant = tenant
        self.run_id = self.system.new_id("run")
        self._texts: dict[tuple[_Kind, str], str] = {}
        self.rows: list[RecordRow] = []
        self.entries: list[Entry] = []
        self.state = RunState()
        self.conversation = Conversation()
        self._per_unit = min(records_per_unit, MAX_UNIT_RECORDS)
        self._admit: Admit | None = None
        self._header: RunRow | None = None
        self._written: list[_Written] = []

    @property
    def header(self) -> RunRow:
        """The header as a store would have it, instants of the store by the log's clock."""
        if self._header is None:
            raise ValueError("the first record is run.admitted: call admit() first")
        return self._header

    def draft[R: Record](self, kind: type[R], /, **fields: object) -> R:
        """Return a record of this Run that is not written: id and instant are given to it."""
        envelope: dict[str, object] = {
            "run_id": self.run_id,
            "id": self.system.new_id("rec"),
            "at": self.system.now(),
        }
        made = kind.model_validate(envelope | fields)
        if not isinstance(made, kind):
            raise TypeError(f"{kind.__name__} cannot be made")
        return made

    def write[R: Record](self, kind: type[R], /, **fields: object) -> R:
        """Write a record of this type. Raises CorruptLog when it may not follow."""
        return self.add(self.draft(kind, **fields))

    def add[R: Record](self, draft: R, *, outside: bool | None = None) -> R:
        """Write `draft`; return it as it is read back. Raises CorruptLog, and nothing is written.

        `outside` says who writes where both may; None goes by what the record says.
        """
        step(self.state, draft)
        if isinstance(draft, RunAdmitted):
            sealed = self._admitted(draft)
        else:
            sealed = self._sealed(draft, _is_outside(draft) if outside is None else outside)
        entry = decode_anew(sealed.row)
        changes = advance(self.state, entry)
        if not isinstance(draft, RunAdmitted):
            self._keep(_Written(sealed, changes, self.header))
        self.rows.append(sealed.row)
        self.entries.append(entry)
        self.conversation.add(entry.record)
        record = entry.record
        if not isinstance(record, type(draft)):
            raise TypeError(f"{draft.type} was read back as {record.type}")
        return record

    def units(self) -> list[Unit]:
        """Return the log as units, in order; each is committed once the one before it is."""
        if self._admit is None:
            return []
        first = Unit(self._admit.records[0].record.commit, self.tenant, (self._admit,))
        return [first, *self._changes()]

    async def put_texts(self, store: Store) -> None:
        """Put what the log names by a hash into `store`: a stand-in for each text.

        Of a Version or a document that a caller named, the caller puts the text.
        """
        for (kind, text), hash in self._texts.items():
            if kind == "version":
                await store.put_version(self.tenant, hash, text)
            else:
                await store.put_document(self.tenant, hash, kind, text)

    async def commit_to(self, store: Store) -> None:
        """Commit the whole log to `store`, which must not know the Run yet, and what it names.

        ValueError when a unit is not taken; those before it are committed.
        """
        await self.put_texts(store)
        for unit in self.units():
            [answer] = await store.commit([unit])
            if not isinstance(answer, Committed):
                raise ValueError(f"unit {unit.commit_id} was not taken: {answer}")

    def _named(self, kind: _Kind, text: str) -> str:
        """Return the hash of a text that the log names; `put_texts` puts it."""
        hash = sha256(text)
        self._texts[kind, text] = hash
        return hash

    def _admitted(self, draft: RunAdmitted) -> Sealed:
        change = admit(draft, commit_id=self.system.new_id("com"), system=self.system)
        self._admit = change
        self._header = admitted(change, change.header.created_at)
        return change.records[0]

    def _sealed(self, draft: Record, outside: bool) -> Sealed:
        claims = isinstance(draft, AttemptStarted)
        epoch = 0 if outside else self.state.epoch + claims
        head = self.state.position
        commit_id = self._open_unit(epoch) if not claims else None
        [sealed] = seal(
            [draft],
            head,
            tenant=self.tenant,
            epoch=epoch,
            commit_id=commit_id or self.system.new_id("com"),
            salts=iter(self.system.salt, ""),
        )
        return sealed

    def _open_unit(self, epoch: int) -> str | None:
        """Return the id of the last unit when another record of `epoch` may join it."""
        if not self._written or self._written[-1].sealed.record.epoch != epoch:
            return None
        commit_id = self._written[-1].sealed.record.commit
        rows = [
            one.sealed.row
            for one in self._written[-self._per_unit :]
            if one.sealed.record.commit == commit_id
        ]
        size = sum(len(row.body) + len(row.content or "") for row in rows)
        return commit_id if len(rows) < self._per_unit and size < _UNIT_BYTES else None

    def _keep(self, one: _Written) -> None:
        columns = changed(
            one.before,
            Change(self.run_id, one.before.head, None, (one.sealed,), _change([one])),
            one.sealed.record.at,
        )
        self._header = one.before.model_copy(update=columns)
        self._written.append(one)

    def _changes(self) -> Iterator[Unit]:
        for commit_id, found in groupby(self._written, lambda one: one.sealed.record.commit):
            group = list(found)
            before, first = group[0].before, group[0].sealed.record
            fence = before.epoch if first.epoch else None
            sealed = tuple(one.sealed for one in group)
            change = Change(self.run_id, before.head, fence, sealed, _change(group))
            yield Unit(commit_id, self.tenant, (change,))


def _is_outside(draft: Record) -> bool:
    by = TRANSITIONS[draft.type].by
    if len(by) == 1:
        return by == ("outside",)
    match draft:
        case ToolCompleted():
            return draft.source == "stubbed"
        case WaitResolved():
            return draft.by is not None
        case _:
            return False


def _change(group: list[_Written]) -> HeaderChange:
    """Return what the records of one unit change in the header that the first one found."""
    header = group[0].before
    first = group[0].sealed.record
    change = header_change(
        [(one.sealed.record, one.changes) for one in group],
        first_seq=first.seq,
        crashes=header.crashes,
    )
    if first.epoch == 0:
        return wake_change(change, header)
    if not isinstance(first, AttemptStarted):
        return change
    claim = claim_change(header, worker=first.worker, crashes=first.crashes)
    return replace(
        change,
        epoch=claim.epoch,
        wake_at=claim.wake_at if change.wake_at is UNSET else change.wake_at,
        deadline_at=claim.deadline_at if change.deadline_at is UNSET else change.deadline_at,
        remaining_seconds=(
            claim.remaining_seconds
            if change.remaining_seconds is UNSET
            else change.remaining_seconds
        ),
    )
