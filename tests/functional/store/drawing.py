"""Units as writers send them, drawn by Hypothesis: most are right, some are beside the mark."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from hypothesis import strategies as st

from psych_runtime.ports.store import (
    REMAINING,
    Admit,
    After,
    Change,
    Exclude,
    HeaderChange,
    Unit,
)
from psych_runtime.store.contract._build import Text, admit, change, key_row, sealed, unit
from psych_schema.store import RunRow
from tests.functional.store.oracle import Oracle

TENANTS: Final = ("a", "ab", "b", "\uffff", "\U0001f9e0")
WORKERS: Final = ("wrk_1", "wrk_2", "wrk_3", "wrk_4")
KEYS: Final = ("k", "K", "k ")
HASHES: Final = ("a" * 64, "b" * 64)
PICKS: Final = st.binary(min_size=64, max_size=64).map(lambda drawn: Picks(drawn))

_AHEAD: Final = (50.0, 0.0, 5.0, 0.000001, -0.000001, 300.0)
_RUNS: Final = 30
_ENDED: Final = HeaderChange(
    state="settled",
    worker=None,
    crashes=0,
    wake_at=None,
    deadline_at=None,
    remaining_seconds=None,
    referenced=True,
)


class Picks:
    """Choices, one for each byte that was drawn; when there are no more, always the first."""

    def __init__(self, drawn: bytes) -> None:
        self._drawn = drawn
        self._next = 0

    def __repr__(self) -> str:
        return f"Picks({self._drawn!r})"

    def of[T](self, options: Sequence[T]) -> T:
        """Return one of `options`; simpler ones come first."""
        number = self._drawn[self._next] if self._next < len(self._drawn) else 0
        self._next += 1
        return options[number % len(options)]

    def often(self, often: int) -> bool:
        """Tell, False once in `often` times."""
        return self.of((True,) * (often - 1) + (False,))


class Drawing:
    """Draws units that name what the oracle knows."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def some_run(self, picks: Picks) -> RunRow:
        """Return a header as it is now."""
        return self.oracle.runs[picks.of(sorted(self.oracle.runs))]

    def _soon(self, picks: Picks) -> datetime:
        return self.oracle.clock() + timedelta(seconds=picks.of(_AHEAD))

    def admission(self, picks: Picks, **columns: object) -> Admit:
        """Return an admission, perhaps of a Run that is there, perhaps at a place that is taken."""
        tenant = str(columns.pop("tenant", picks.of(TENANTS)))
        run_id = f"run_{picks.of(range(_RUNS)):026d}"
        chosen: dict[str, object] = {
            "priority": picks.of((0, 0, 1, 9)),
            "created_at": self.oracle.clock() - timedelta(seconds=picks.of(range(3))),
            "version": picks.of(HASHES),
            "schema_version": picks.of((1, 1, 3)),
            "wake_at": picks.of((None, self._soon(picks))),
        }
        if bool(self.oracle.runs) and picks.of((False, True)):
            last = self.some_run(picks)
            position = max(1, last.position + picks.of((1, 2, 0, -1)))
            chosen |= {"thread": last.thread, "position": position, "previous": last.run_id}
        deadline = picks.of((None, 0.0, 10.0, 50.0))
        made = admit(run_id, tenant=tenant, deadline_seconds=deadline, columns=chosen | columns)
        if picks.of((True, False)):
            return made
        text = Text(content=picks.of(("null", None)), salt=picks.of(("0" * 32, None)))
        records = (*made.records, sealed(run_id, 2, tenant=tenant, text=text))
        head = {"head": 2, "head_hash": records[1].hash, "head_at": records[1].record.at}
        return Admit(made.header.model_copy(update=head), records, deadline)

    def change(self, picks: Picks, row: RunRow, edit: HeaderChange, *, fenced: bool) -> Change:
        """Return a change, most often at the head and under the epoch, else beside them."""
        head = max(0, row.head + picks.of((0,) * 8 + (-1, 1)))
        fence = abs(row.epoch + picks.of((0,) * 8 + (-1, 1))) if fenced else None
        count = picks.of((1, 1, 2, 5, 0))
        made = change(row.run_id, head, fence=fence, edit=edit, count=count, tenant=row.tenant)
        if not count or picks.often(5):
            return made
        text = Text(content='"said"', salt="1" * 32)
        newer = sealed(row.run_id, head + 1, tenant=row.tenant, epoch=fence or 0, v=2, text=text)
        return made._replace(records=(newer, *made.records[1:]))

    def edit(self, picks: Picks) -> HeaderChange:
        """Return what the records of some moment change in a header."""
        ahead = After(picks.of(_AHEAD))
        wake = picks.of((ahead, self._soon(picks), None))
        opened = {picks.of(("apr_1", "wait_1")): 7}
        edits = (
            HeaderChange(),
            *[HeaderChange(wake_at=wake)] * 3,
            HeaderChange(opened=opened, closed=("wait_1",)),
            HeaderChange(closed=("apr_1", "none"), wake_at=wake, deadline_at=ahead),
            HeaderChange(abort="requested"),
            HeaderChange(abort="forced"),
            HeaderChange(referenced=True),
            HeaderChange(state="ready", worker=None, crashes=1, wake_at=ahead),
            *[
                HeaderChange(
                    state="suspended",
                    worker=None,
                    crashes=0,
                    wake_at=wake,
                    deadline_at=None,
                    remaining_seconds=REMAINING,
                    opened=opened,
                )
            ]
            * 3,
            HeaderChange(state="suspended", worker=None, wake_at=wake),
            HeaderChange(state="ready", wake_at=None, deadline_at=ahead, remaining_seconds=None),
            HeaderChange(state="corrupt", worker=None, wake_at=None, deadline_at=None),
        )
        return picks.of(edits)

    def keyed(self, picks: Picks, made: Unit) -> Unit:
        """Return a unit, perhaps with the row of a key, perhaps of one that is known."""
        if picks.often(3):
            return made
        part = made.changes[0]
        row = key_row(
            picks.of(KEYS),
            run_id="" if isinstance(part, Admit) else part.run_id,
            tenant=made.tenant,
            digest=picks.of(("d1", "d2")),
            receipt=part.run_id,
        )
        return made._replace(keys=(row,))

    def fresh(self, picks: Picks) -> Unit:
        """Return an admission."""
        made = self.admission(picks)
        return self.keyed(picks, unit(made, tenant=made.header.tenant))

    def taking(self, picks: Picks, tenant: str | None = None) -> Unit:
        """Return a claim of a Run that may be taken, of `tenant` if there is one, or of any."""
        row = self.some_run(picks)
        claimable = self.oracle.claimable(Exclude())
        theirs = [each for each in claimable if each.tenant == tenant]
        if theirs:
            row = picks.of(theirs)
        elif claimable and picks.often(4):
            row = picks.of(claimable)
        worker, epoch = picks.of(WORKERS), row.epoch + 1
        edit = HeaderChange(state="running", worker=worker, epoch=epoch, wake_at=None)
        if row.remaining_seconds is not None:
            edit = HeaderChange(
                state="running",
                worker=worker,
                epoch=epoch,
                wake_at=None,
                deadline_at=After(row.remaining_seconds),
                remaining_seconds=None,
            )
        return unit(self.change(picks, row, edit, fenced=True), tenant=row.tenant)

    def noted(self, picks: Picks, run_id: str | None = None) -> Unit:
        """Return an attempt's records, or an outside writer's."""
        row = self.some_run(picks) if run_id is None else self.oracle.runs[run_id]
        made = self.change(picks, row, self.edit(picks), fenced=picks.of((False, True)))
        return self.keyed(picks, unit(made, tenant=row.tenant))

    def settled(self, picks: Picks) -> Unit:
        """Return a Run's end, with the next one's beginning."""
        row = self.some_run(picks)
        ends = self.change(picks, row, _ENDED, fenced=True)
        if picks.of((True, False)):
            return unit(ends, tenant=row.tenant)
        place = {"thread": row.thread, "position": row.position + 1, "previous": row.run_id}
        follows = self.admission(picks, tenant=row.tenant, **place)
        changes = (ends,) if follows.run_id == row.run_id else (ends, follows)
        return self.keyed(picks, unit(*changes, tenant=row.tenant))

    def linked(self, picks: Picks) -> Unit:
        """Return changes of several Runs, some of which may be another tenant's."""
        row = self.some_run(picks)
        changes: dict[str, Change | Admit] = {
            row.run_id: self.change(picks, row, self.edit(picks), fenced=True)
        }
        place: dict[str, object] = {}
        for _ in range(picks.of((1, 2, 3))):
            if picks.of((True, False)):
                child = self.admission(picks, tenant=row.tenant, parent=row.run_id, **place)
                changes.setdefault(child.run_id, child)
                if picks.of((False, True)):
                    place = {"thread": child.header.thread, "position": child.header.position}
                continue
            other = self.some_run(picks).model_copy(update={"tenant": row.tenant})
            message = self.change(picks, other, self.edit(picks), fenced=False)
            changes.setdefault(other.run_id, message)
        return self.keyed(picks, unit(*changes.values(), tenant=row.tenant))

    def deleted(self, picks: Picks) -> tuple[str, list[RunRow], tuple[str, ...]]:
        """Return what to delete: Runs of a tenant, perhaps not as they are, and keys.

        None that is running: nobody deletes it, and it would stay counted in a cap.
        """
        tenants = [row.tenant for row in self.oracle.runs.values()]
        tenant = max(sorted(set(tenants)), key=tenants.count)
        rest = [
            row
            for _, row in sorted(self.oracle.runs.items())
            if row.tenant == tenant and row.state != "running"
        ]
        first = picks.of(range(len(rest) or 1))
        headers = rest[first : first + picks.of((2, 1, 3))]
        if headers and not picks.often(3):
            stale = {"head": 0} if picks.of((True, False)) else {"referenced": True}
            headers[-1] = headers[-1].model_copy(update=stale)
        asking = tenant if picks.often(6) else picks.of(TENANTS)
        return asking, headers, picks.of(((), KEYS[:1], KEYS[1:]))

    def any_unit(self, picks: Picks) -> Unit:
        """Return a unit of any kind."""
        kinds = (self.fresh, self.taking, self.noted, self.noted, self.settled, self.linked)
        return picks.of(kinds)(picks)
