"""What a store answers, written plainly from the protocol: dicts, and a look at everything."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from psych_runtime.ports.answers import (
    Answer,
    CapReached,
    Committed,
    KeyTaken,
    LeaseLost,
    RunNotFound,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.store import (
    UNCAPPED,
    UNSET,
    Admit,
    After,
    Change,
    Exclude,
    Remaining,
    Renewed,
    RunFilter,
    Seen,
    Unit,
)
from psych_schema.store import CapRow, KeyRow, RecordRow, RunRow, WorkerRow

ENDED = ("settled", "corrupt")


class Oracle:
    """Rows by their keys; `clock` is the store's."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.runs: dict[str, RunRow] = {}
        self.logs: dict[str, list[RecordRow]] = {}
        self.keys: dict[tuple[str, str, str], KeyRow] = {}
        self.rows: dict[str, WorkerRow] = {}
        self.texts: dict[tuple[str, str, str], str] = {}
        self.caps: dict[str, CapRow] = {}
        self.removed: set[str] = set()

    def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers: list[Answer] = []
        for unit in units:
            refusal = next(self._refusals(unit), None)
            if refusal is None:
                self._apply(unit)
            answers.append(refusal or Committed())
        return answers

    def _refusals(self, unit: Unit) -> Iterator[Answer]:
        changes = [change for change in unit.changes if isinstance(change, Change)]
        admits = [change for change in unit.changes if isinstance(change, Admit)]
        for change in changes:
            if self.of(unit.tenant, change.run_id) is None:
                yield RunNotFound(change.run_id)
        for change in changes:
            if change.fence not in (None, self.runs[change.run_id].epoch):
                yield LeaseLost(change.run_id)
        for each in unit.changes:
            if isinstance(each, Admit):
                if each.run_id in self.runs:
                    yield SeqConflict(each.run_id)
            elif each.expect_head != self.runs[each.run_id].head:
                yield SeqConflict(each.run_id)
        for key in unit.keys:
            known = self.keys.get((unit.tenant, key.run_id, key.key))
            if known is not None:
                yield KeyTaken(known.key, known.digest, known.receipt)
        places = [(row.tenant, row.thread, row.position) for row in self.runs.values()]
        for admit in admits:
            header = admit.header
            places.append((header.tenant, header.thread, header.position))
            if places.count(places[-1]) > 1:
                yield ThreadTaken(header.thread, header.position)
        if unit.tenant in self.caps:
            cap = self.caps[unit.tenant]
            entrants = [change for change in changes if self._enters(change)]
            if entrants and cap.running + len(entrants) > cap.limit:
                yield CapReached(unit.tenant)

    def _enters(self, change: Change) -> bool:
        """Tell whether a Run becomes running that was not."""
        return change.header.state == "running" and self.runs[change.run_id].state != "running"

    def _count(self, tenant: str, more: int) -> None:
        cap = self.caps[tenant]
        running = max(0, cap.running + more)
        self.caps[tenant] = cap.model_copy(update={"running": running})

    def _apply(self, unit: Unit) -> None:
        for each in unit.changes:
            if isinstance(each, Admit):
                deadline = self._after(each.deadline_seconds)
                self.runs[each.run_id] = each.header.model_copy(update={"deadline_at": deadline})
            else:
                self._change(each)
            log = self.logs.setdefault(each.run_id, [])
            log += [sealed.row for sealed in each.records]
        for key in unit.keys:
            self.keys[unit.tenant, key.run_id, key.key] = key

    def _after(self, seconds: float | None) -> datetime | None:
        return None if seconds is None else self.clock() + timedelta(seconds=seconds)

    def _change(self, change: Change) -> None:
        before, edit = self.runs[change.run_id], change.header
        columns: dict[str, object] = {}
        if before.tenant in self.caps and self._enters(change):
            self._count(before.tenant, 1)
            columns["capped"] = True
        elif before.capped and edit.state not in (UNSET, "running"):
            self._count(before.tenant, -1)
            columns["capped"] = False
        for name in (
            "state",
            "worker",
            "epoch",
            "crashes",
            "abort",
            "referenced",
            "wake_at",
            "deadline_at",
            "remaining_seconds",
        ):
            value: object = getattr(edit, name)
            if isinstance(value, After):
                columns[name] = self._after(value.seconds)
            elif isinstance(value, Remaining):
                if before.deadline_at is not None:
                    left = before.deadline_at - self.clock()
                    columns[name] = max(0.0, left.total_seconds())
            elif value is not UNSET:
                columns[name] = value
        for sealed in change.records:
            columns["head"] = sealed.row.seq
            columns["head_hash"] = sealed.hash
            columns["head_at"] = sealed.record.at
        versions = [before.schema_version, *[sealed.record.v for sealed in change.records]]
        columns["schema_version"] = max(versions)
        opened = {**before.open, **edit.opened}
        columns["open"] = {key: seq for key, seq in opened.items() if key not in edit.closed}
        self.runs[change.run_id] = before.model_copy(update=columns)

    def of(self, tenant: str, run_id: str) -> RunRow | None:
        """Return the header of this tenant's Run."""
        row = self.runs.get(run_id)
        return row if row is not None and row.tenant == tenant else None

    def read(
        self, tenant: str, run_id: str, *, after: int, limit: int | None
    ) -> list[RecordRow] | None:
        """Return records behind `after`, None for no Run."""
        if self.of(tenant, run_id) is None:
            return None
        return [row for row in self.logs[run_id] if row.seq > after][:limit]

    def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        line = [row for row in self.runs.values() if (row.tenant, row.thread) == (tenant, thread)]
        return max(line, key=lambda row: row.position, default=None)

    def live(self, worker: str | None) -> bool:
        """Tell whether a worker has a row and was not declared dead."""
        row = self.rows.get(worker or "")
        return row is not None and not row.dead

    def claimable(self, exclude: Exclude) -> list[RunRow]:
        """Return Runs that may be claimed, each tenant's in its order."""
        now = self.clock()
        found: list[RunRow] = []
        for row in self.runs.values():
            due = row.wake_at is not None and row.wake_at <= now
            claimable = (
                (row.state == "ready" and (row.wake_at is None or due))
                or (row.state == "suspended" and due)
                or (row.state == "running" and not self.live(row.worker))
            )
            above = exclude.schema_version_above
            newer = above is not None and row.schema_version > above
            excluded = row.run_id in exclude.run_ids or row.version in exclude.versions or newer
            if claimable and not excluded:
                found.append(row)
        return sorted(found, key=_order)

    def ready(self, limit: int, after_tenant: str, exclude: Exclude) -> tuple[RunRow, ...]:
        """Return what is claimable, tenants in turns from behind the cursor on."""
        lines: dict[str, list[RunRow]] = {}
        room = {tenant: cap.limit - cap.running for tenant, cap in self.caps.items()}
        for row in self.claimable(exclude):
            if row.state != "running" and row.tenant in room:
                room[row.tenant] -= 1
                if room[row.tenant] < 0:
                    continue
            lines.setdefault(row.tenant, []).append(row)
        tenants = sorted(lines, key=lambda tenant: (tenant <= after_tenant, tenant))
        longest = max(map(len, lines.values()), default=0)
        turns = [
            lines[tenant][turn]
            for turn in range(longest)
            for tenant in tenants
            if turn < len(lines[tenant])
        ]
        return tuple(turns[:limit])

    def overdue(self) -> set[str]:
        """Return Runs that a supervisor has to settle."""
        now = self.clock()
        return {
            row.run_id
            for row in self.runs.values()
            if row.state not in ENDED
            and not (row.state == "running" and self.live(row.worker))
            and (row.abort is not None or (row.deadline_at is not None and row.deadline_at <= now))
        }

    def held_by(self, worker: str) -> set[str]:
        """Return the running Runs of a worker."""
        return {
            row.run_id
            for row in self.runs.values()
            if row.state == "running" and row.worker == worker
        }

    def workers(self) -> list[WorkerRow]:
        """Return those that are not dead."""
        return [row for _, row in sorted(self.rows.items()) if not row.dead]

    def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a row; again, it is a renewal, and of a dead one nothing."""
        now = self.clock()
        if worker in self.rows:
            self.renew(worker, lease_seconds=lease_seconds, run_ids=())
        else:
            self.rows[worker] = WorkerRow(
                id=worker,
                lease_until=now + timedelta(seconds=lease_seconds),
                lease_seconds=lease_seconds,
                beat=0,
                since=now,
                dead=False,
                build=build,
                tools=tuple(tools),
            )
        return now

    def renew(self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]) -> Renewed | None:
        """Prolong a lease; contact is broken when less than half of it was left."""
        if not self.live(worker):
            return None
        now, row = self.clock(), self.rows[worker]
        left = (row.lease_until - now).total_seconds()
        self.rows[worker] = row.model_copy(
            update={
                "lease_until": now + timedelta(seconds=lease_seconds),
                "lease_seconds": lease_seconds,
                "beat": row.beat + 1,
                "since": now if left < row.lease_seconds / 2 else row.since,
            }
        )
        return Renewed(now, {run: self._seen(run) for run in run_ids if run in self.runs})

    def _seen(self, run_id: str) -> Seen:
        row = self.runs[run_id]
        late = row.deadline_at is not None and row.deadline_at <= self.clock()
        return Seen(row.epoch, row.head, row.abort is not None, late)

    def bury(self, observer: str) -> list[str]:
        """Declare dead whose lease is over, if the observer may judge."""
        now, row = self.clock(), self.rows.get(observer)
        if row is None or row.dead:
            return []
        if (row.lease_until - now).total_seconds() < row.lease_seconds / 2:
            return []
        if row.since + timedelta(seconds=row.lease_seconds) > now:
            return []
        dead = [each.id for each in self.workers() if each.lease_until < now]
        for worker in dead:
            self.rows[worker] = self.rows[worker].model_copy(update={"dead": True})
        return dead

    def sweep(self) -> None:
        """Forget the dead whom no header names."""
        named = {row.worker for row in self.runs.values()}
        for worker in [row.id for row in self.rows.values() if row.dead and row.id not in named]:
            del self.rows[worker]

    def put(self, table: str, tenant: str, hash: str, text: str) -> None:
        """Keep a text, once."""
        self.texts.setdefault((table, tenant, hash), text)

    def moved(self, tenant: str, heads: Mapping[str, int]) -> frozenset[str]:
        """Return Runs that are past the given heads."""
        rows = {run_id: self.of(tenant, run_id) for run_id in heads}
        return frozenset(run for run, row in rows.items() if row and row.head > heads[run])

    def listed(self, tenant: str, wanted: RunFilter) -> list[RunRow]:
        """Return a tenant's Runs, newest first."""
        found = [
            row
            for row in self.runs.values()
            if row.tenant == tenant
            and wanted.state in (None, row.state)
            and wanted.version in (None, row.version)
            and wanted.thread in (None, row.thread)
            and wanted.parent in (None, row.parent)
            and (wanted.created_after is None or row.created_at > wanted.created_after)
        ]
        return sorted(found, key=lambda row: (row.created_at, row.run_id), reverse=True)

    def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound a tenant's running Runs, or lift the bound; what is counted stays."""
        if tenant in self.caps:
            bound = UNCAPPED if limit is None else limit
            self.caps[tenant] = self.caps[tenant].model_copy(update={"limit": bound})
        elif limit is not None:
            self.caps[tenant] = CapRow(tenant=tenant, running=0, limit=limit)

    def blank(self, tenant: str, run_id: str, limit: int) -> bool | None:
        """Take contents and salts off the first records that have some; None for no Run."""
        if self.of(tenant, run_id) is None:
            return None
        log = self.logs[run_id]
        kept = [at for at, row in enumerate(log) if (row.content, row.salt) != (None, None)]
        for at in kept[:limit]:
            log[at] = log[at].model_copy(update={"content": None, "salt": None})
        return len(kept) <= limit

    def delete_runs(self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]) -> bool:
        """Delete Runs with what is theirs, if all are as they were seen."""
        for seen in headers:
            now = self.of(tenant, seen.run_id)
            if now is None:
                return False
            if (now.head, now.state, now.referenced) != (seen.head, seen.state, seen.referenced):
                return False
        gone = {(tenant, "", key) for key in keys}
        for seen in headers:
            del self.runs[seen.run_id], self.logs[seen.run_id]
            self.removed.add(seen.run_id)
            gone |= {name for name in self.keys if name[:2] == (tenant, seen.run_id)}
        for name in gone & self.keys.keys():
            del self.keys[name]
        return True


def _order(row: RunRow) -> tuple[int, datetime, str]:
    return -row.priority, row.wake_at or row.created_at, row.run_id
