"""Stores that break one promise each: the contract must notice every one of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import ClassVar, Final, Literal

from psych_runtime.errors import InvalidPayload, PayloadTooLarge, RunNotFound
from psych_runtime.ports.answers import Answer, Committed, LeaseLost, SeqConflict
from psych_runtime.ports.store import (
    Admit,
    Arrival,
    Change,
    Exclude,
    Found,
    Page,
    Renewed,
    RunFilter,
    Sealed,
    Store,
    Unit,
)
from psych_runtime.store._memory_caps import MemoryCaps
from psych_runtime.store._order import ANY_RUN, NOTHING_EXCLUDED
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import KeyRow, RecordRow, RunRow
from tests.functional.store.broken_refusals import BROKEN_REFUSALS
from tests.functional.store.broken_values import BROKEN_VALUES
from tests.functional.store.harness import ManualSystem


class IgnoresFence(MemoryStore):
    """Takes every fence for the current one."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([_each(unit, _without_fence) for unit in units])


class ConfusesRefusals(MemoryStore):
    """Takes a lost lease for a conflict."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers = await super().commit(units)
        return [SeqConflict(a.run_id) if isinstance(a, LeaseLost) else a for a in answers]


class IgnoresHead(MemoryStore):
    """Puts every change at the end of the log, whatever head it expects."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([_each(unit, self._at_the_end) for unit in units])

    def _at_the_end(self, change: Change | Admit) -> Change | Admit:
        if isinstance(change, Admit) or not change.records:
            return change
        tenant = change.records[0].row.tenant
        try:
            head = self._rows.header(tenant, change.run_id).head
        except RunNotFound:
            return change
        records = tuple(
            sealed._replace(row=sealed.row.model_copy(update={"seq": seq}))
            for seq, sealed in enumerate(change.records, head + 1)
        )
        return change._replace(expect_head=head, records=records)


class AppliesHalfAUnit(MemoryStore):
    """Commits the changes of a unit one by one."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers: list[Answer] = []
        for unit in units:
            parts = [unit._replace(changes=(change,), keys=()) for change in unit.changes]
            parts[0] = parts[0]._replace(keys=unit.keys)
            refused = [a for a in await super().commit(parts) if a != Committed()]
            answers.append(refused[0] if refused else Committed())
        return answers


class SharesOneFate(MemoryStore):
    """Refuses all units of a call when one is refused."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers: list[Answer] = []
        for unit in units:
            answers += await super().commit([unit])
            if answers[-1] != Committed():
                return answers + [answers[-1]] * (len(units) - len(answers))
        return answers


class ForgetsKeys(MemoryStore):
    """Writes no key rows."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([unit._replace(keys=()) for unit in units])


class ForgetsThreads(MemoryStore):
    """Lets two Runs stand at one position."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([_each(unit, _elsewhere) for unit in units])


class LeaksTenants(MemoryStore):
    """Shows a header to whoever knows its id."""

    async def header(self, tenant: str, run_id: str) -> RunRow:
        for known in ("acme", "globex"):
            try:
                return await super().header(known, run_id)
            except RunNotFound:
                continue
        raise RunNotFound(run_id=run_id)


class LosesOrder(MemoryStore):
    """Gives claimable Runs in the order of their ids."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        found = await super().ready(limit, after_tenant=after_tenant, exclude=exclude)
        return found._replace(headers=tuple(sorted(found.headers, key=lambda row: row.run_id)))


class StarvesTenants(MemoryStore):
    """Gives the Runs of one tenant before those of the next."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        found = await super().ready(1000, after_tenant=after_tenant, exclude=exclude)
        tenants = list(dict.fromkeys(row.tenant for row in found.headers))
        grouped = sorted(found.headers, key=lambda row: tenants.index(row.tenant))
        return found._replace(headers=tuple(grouped[:limit]))


class StartsWithTheFirst(MemoryStore):
    """Gives every worker the Runs of the same tenants."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        return await super().ready(limit, exclude=exclude)


class IgnoresExclusions(MemoryStore):
    """Offers what the worker cannot run."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        return await super().ready(limit, after_tenant=after_tenant)


class AnswersWithoutWriting(MemoryStore):
    """Says Committed for large units and drops them."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers: list[Answer] = []
        for unit in units:
            large = sum(len(change.records) for change in unit.changes) > 3
            answers += [Committed()] if large else await super().commit([unit])
        return answers


class RenewsTheDead(MemoryStore):
    """Answers a renewal of a worker that is dead."""

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        renewed = await super().renew(worker, lease_seconds=lease_seconds, run_ids=run_ids)
        return renewed or Renewed((await self.ready(1)).now, {})


class Storms(MemoryStore):
    """Lets an observer judge that has had no unbroken contact of its own."""

    async def bury(self, observer: str) -> list[str]:
        for row in await self.workers():
            if row.id == observer:
                past = row.since - timedelta(seconds=row.lease_seconds)
                changed = row.model_copy(update={"since": past})
                self._rows._workers._rows[observer] = changed
        return await super().bury(observer)


class TrustsOldContact(MemoryStore):
    """Lets an observer judge whose last renewal is long ago, as long as its lease runs."""

    async def bury(self, observer: str) -> list[str]:
        for row in await self.workers():
            if row.id == observer:
                fresh = row.lease_until + timedelta(seconds=row.lease_seconds)
                changed = row.model_copy(update={"lease_until": fresh})
                self._rows._workers._rows[observer] = changed
        return await super().bury(observer)


class DropsContent(MemoryStore):
    """Keeps bodies only."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([_each(unit, _without_content) for unit in units])


class OverlapsPages(MemoryStore):
    """Takes `after` for the first record of a page."""

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        return await super().read(tenant, run_id, after=max(0, after - 1), limit=limit)


class ForgetsDeadlines(MemoryStore):
    """Admits Runs without their deadline."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([_each(unit, _without_deadline) for unit in units])


class WakesNobody(MemoryStore):
    """Gives up waiting at once."""

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        return await super().wait(tenant, heads, 0, over=over)


class WakesForAnything(MemoryStore):
    """Takes a Run that has moved for one that is over."""

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        return await super().wait(tenant, heads, seconds)


class CountsNoBurials(MemoryStore):
    """Buries without a word to those who wait for work."""

    async def bury(self, observer: str) -> list[str]:
        before = self._rows.arrivals.count
        buried = await super().bury(observer)
        self._rows.arrivals.count = before
        return buried


class WaitsForTheNext(MemoryStore):
    """Looks at the count when it begins to wait, not at what was seen."""

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        return await super().arrival(self._rows.arrivals.count, min(seconds, 0.01))


class LooksForAnyText(MemoryStore):
    """Says of a name that no database keeps what it says of one that is not there."""

    async def header(self, tenant: str, run_id: str) -> RunRow:
        try:
            return await super().header(tenant, run_id)
        except InvalidPayload:
            raise RunNotFound(run_id=run_id) from None


class WritesKeysApart(MemoryStore):
    """Keeps the keys of a unit that is refused."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers = await super().commit(units)
        for unit in units:
            for key in unit.keys:
                known = self._rows._keys.setdefault((unit.tenant, key.run_id), {})
                known.setdefault(key.key, key)
        return answers


class AdmitsAgain(MemoryStore):
    """Puts an admission over a Run that is there, as an upsert does."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        answers: list[Answer] = []
        for unit in units:
            for change in unit.changes:
                if isinstance(change, Admit) and change.run_id in self._rows._runs:
                    before = self._rows._runs.pop(change.run_id)
                    self._rows._threads[before.tenant, before.thread].pop(before.position)
                    self._rows._index._leave(before)
            answers += await super().commit([unit])
        return answers


class DropsLinks(MemoryStore):
    """Writes the first Run of a unit only."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return await super().commit([unit._replace(changes=unit.changes[:1]) for unit in units])


class JudgesTooEarly(IgnoresHead):
    """Judges a head, and writes a moment later at whatever head there is then."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        judged = [self._refusal(unit) for unit in units]
        await asyncio.sleep(0)
        answers: list[Answer] = []
        for unit, refusal in zip(units, judged, strict=True):
            answers += [refusal] if refusal else await super().commit([unit])
        return answers

    def _refusal(self, unit: Unit) -> Answer | None:
        return self._rows._judge(unit)


class RefusesCrowds(MemoryStore):
    """Has one connection, and an error for whoever comes while it is used."""

    used: ClassVar[bool] = False

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        if RefusesCrowds.used:
            raise RuntimeError("another operation is in progress")
        RefusesCrowds.used = True
        await asyncio.sleep(0)
        RefusesCrowds.used = False
        return await super().read(tenant, run_id, after=after, limit=limit)


class ForgetsTexts(MemoryStore):
    """Keeps no Specs."""

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        return None


class RefusesLongTexts(MemoryStore):
    """Keeps a Spec where it fits into an item."""

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        if len(document.encode()) > 400_000:
            what, size = f"Version {hash}", len(document.encode())
            raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=400_000)
        await super().put_version(tenant, hash, document)


class CutsLongTexts(MemoryStore):
    """Reads the first page of a document."""

    async def document(self, tenant: str, hash: str) -> str | None:
        found = await super().document(tenant, hash)
        return None if found is None else found[:200_000]


class InsistsOnNewTexts(MemoryStore):
    """Inserts a document without asking whether it is there."""

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        if await self.document(tenant, hash) is not None:
            raise RuntimeError("UNIQUE constraint failed: document.tenant, document.hash")
        await super().put_document(tenant, hash, kind, text)


class KeepsContact(MemoryStore):
    """Counts a worker's contact from its first day, however late it renews."""

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        since = {row.id: row.since for row in await self.workers()}
        renewed = await super().renew(worker, lease_seconds=lease_seconds, run_ids=run_ids)
        rows = self._rows._workers._rows
        if renewed is not None:
            rows[worker] = rows[worker].model_copy(update={"since": since[worker]})
        return renewed


class TellsOnce(MemoryStore):
    """Tells of a head once, whether or not it was heard."""

    told: ClassVar[set[tuple[str, int]]] = set()

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        moved = await super().wait(tenant, heads, seconds, over=over)
        news = {(run_id, self._rows.header(tenant, run_id).head) for run_id in moved}
        found = frozenset(run_id for run_id, _ in news - TellsOnce.told)
        TellsOnce.told |= news
        return found


class KeepsNuls(MemoryStore):
    """Keeps a text up to its first U+0000."""

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        await super().put_document(tenant, hash, kind, text.partition("\0")[0])


class ForgetsCaps(MemoryStore):
    """Keeps a cap, and lets everybody in."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        caps, self._rows._caps = self._rows._caps, MemoryCaps()
        answers = await super().commit(units)
        self._rows._caps = caps
        return answers


class CountsTakeovers(MemoryStore):
    """Takes a Run that another worker takes over for one more."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        before = dict(self._rows._runs)
        answers = await super().commit(units)
        for unit, answer in zip(units, answers, strict=True):
            for change in unit.changes:
                if isinstance(change, Change) and change.header.state == "running":
                    seen = before[change.run_id].state
                    if answer == Committed() and seen == "running":
                        _count(self, unit.tenant, 1)
        return answers


class CountsOldRuns(MemoryStore):
    """Makes room when any Run stops running, counted or not."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        before = dict(self._rows._runs)
        answers = await super().commit(units)
        for change in (each for unit in units for each in unit.changes):
            seen, now = before.get(change.run_id), self._rows._runs.get(change.run_id)
            if seen is None or now is None or seen.capped:
                continue
            if seen.state == "running" and now.state != "running":
                _count(self, now.tenant, -1)
        return answers


class ForgetsLiftedCaps(MemoryStore):
    """Deletes the row of a cap that is lifted."""

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        await super().set_cap(tenant, limit)
        if limit is None:
            self._rows._caps._rows.pop(tenant, None)


class OffersWithoutRoom(MemoryStore):
    """Offers all that is claimable, whatever a cap says."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        caps, self._rows._caps = self._rows._caps, MemoryCaps()
        found = await super().ready(limit, after_tenant=after_tenant, exclude=exclude)
        self._rows._caps = caps
        return found


class BlanksBodies(MemoryStore):
    """Takes the bodies off as well."""

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        over = await super().blank(tenant, run_id, limit=limit)
        log = self._rows._logs[run_id]
        log[:] = [row.model_copy(update={"body": "{}"}) for row in log]
        return over


class BlanksForAnybody(MemoryStore):
    """Asks nobody whose Run it is."""

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        return await super().blank(self._rows._runs[run_id].tenant, run_id, limit=limit)


class BlanksAllAtOnce(MemoryStore):
    """Has no limit."""

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        return await super().blank(tenant, run_id)


class DeletesEachAlone(MemoryStore):
    """Deletes of the Runs those that can be deleted."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        deleted = [await super(DeletesEachAlone, self).delete_runs(tenant, [h]) for h in headers]
        return all(deleted) and await super().delete_runs(tenant, (), keys)


class DeletesBlindly(MemoryStore):
    """Deletes Runs as they are now, however they were when they were read."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        now = [self._rows._runs.get(header.run_id, header) for header in headers]
        return await super().delete_runs(tenant, now, keys)


class KeepsPlaces(MemoryStore):
    """Leaves the places in threads taken."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        places = {row.thread: row for row in headers if row.tenant == tenant}
        deleted = await super().delete_runs(tenant, headers, keys)
        for thread in places if deleted else ():
            self._rows._threads[tenant, thread] = {1: places[thread].run_id}
        return deleted


class ForgetsTails(MemoryStore):
    """Forgets a thread with its last Run."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        tails = {self._rows._tails.get((tenant, row.thread)) for row in headers}
        deleted = await super().delete_runs(tenant, headers, keys)
        for row in headers if deleted else ():
            if (row.position, row.run_id) in tails:
                self._rows._tails.pop((tenant, row.thread), None)
        return deleted


class KeepsAdmissionKeys(MemoryStore):
    """Forgets no key of an admission."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        return await super().delete_runs(tenant, headers)


def _count(store: MemoryStore, tenant: str, more: int) -> None:
    rows = store._rows._caps._rows
    if tenant in rows:
        running = max(0, rows[tenant].running + more)
        rows[tenant] = rows[tenant].model_copy(update={"running": running})


class BrokenHarness:
    """Handles of one broken store."""

    def __init__(self, kind: type[MemoryStore]) -> None:
        self.system = ManualSystem()
        self._store = kind(self.system)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        async with self._store.twin() as store:
            yield store

    async def advance(self, seconds: float) -> None:
        self.system.advance(seconds)


def _each(unit: Unit, edit: Callable[[Change | Admit], Change | Admit]) -> Unit:
    return unit._replace(changes=tuple(edit(change) for change in unit.changes))


def _without_fence(change: Change | Admit) -> Change | Admit:
    return change if isinstance(change, Admit) else change._replace(fence=None)


def _elsewhere(change: Change | Admit) -> Change | Admit:
    if not isinstance(change, Admit):
        return change
    header = change.header.model_copy(update={"thread": change.run_id})
    return change._replace(header=header)


def _without_deadline(change: Change | Admit) -> Change | Admit:
    return change._replace(deadline_seconds=None) if isinstance(change, Admit) else change


def _without_content(change: Change | Admit) -> Change | Admit:
    return change._replace(records=tuple(_bare(sealed) for sealed in change.records))


def _bare(sealed: Sealed) -> Sealed:
    return sealed._replace(row=sealed.row.model_copy(update={"content": None, "salt": None}))


class ReadsBackslashes(MemoryStore):
    """Takes what follows a backslash for the character itself in the name of a key."""

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        return await super().key(tenant, run_id, key.replace("\\", ""))


class ComparesWithoutPadding(MemoryStore):
    """Takes tenants for one that differ in spaces at the end, as some collations do."""

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = ANY_RUN,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        return await super().list_runs(
            tenant.rstrip(" "), filter=filter, cursor=cursor, limit=limit
        )


BROKEN: Final[tuple[tuple[type[MemoryStore], str], ...]] = (
    (IgnoresFence, "a_fence_that_is_not_the_epoch_writes_nothing"),
    (ConfusesRefusals, "a_unit_is_judged_in_the_stated_order"),
    (IgnoresHead, "of_racing_writers_exactly_one_commits_each_round"),
    (AppliesHalfAUnit, "a_unit_is_applied_all_or_none"),
    (SharesOneFate, "units_of_one_call_are_independent"),
    (ForgetsKeys, "a_key_is_inserted_once"),
    (ForgetsThreads, "a_place_in_a_thread_is_taken_once"),
    (LeaksTenants, "another_tenants_run_looks_missing"),
    (CutsLongTexts, "a_text_of_the_largest_size_is_kept"),
    (RefusesLongTexts, "a_text_of_the_largest_size_is_kept"),
    (LosesOrder, "a_tenants_runs_come_by_priority_then_time"),
    (StarvesTenants, "tenants_take_turns_behind_the_cursor"),
    (StartsWithTheFirst, "racing_workers_claim_everything_in_three_rounds"),
    (IgnoresExclusions, "what_a_worker_cannot_run_is_left_out"),
    (AnswersWithoutWriting, "what_was_answered_is_there_for_another_handle"),
    (RenewsTheDead, "a_dead_worker_never_renews"),
    (Storms, "nobody_dies_after_the_store_was_away"),
    (TrustsOldContact, "an_observer_who_was_away_for_half_his_lease_buries_nobody"),
    (DropsContent, "bodies_and_contents_come_back_as_written"),
    (OverlapsPages, "pages_of_a_log_meet_without_overlap"),
    (ForgetsDeadlines, "the_store_computes_deadlines"),
    (LooksForAnyText, "what_no_store_keeps_is_refused"),
    (KeepsNuls, "what_no_store_keeps_is_refused"),
    (ForgetsCaps, "a_cap_is_never_exceeded_by_racing_workers"),
    (ForgetsCaps, "a_full_cap_refuses_a_unit_and_writes_nothing"),
    (AppliesHalfAUnit, "a_full_cap_refuses_a_unit_and_writes_nothing"),
    (CountsTakeovers, "a_takeover_takes_no_room"),
    (OffersWithoutRoom, "a_takeover_takes_no_room"),
    (CountsOldRuns, "a_cap_counts_from_when_it_is_set"),
    (ForgetsLiftedCaps, "a_lifted_cap_goes_on_counting"),
    (OffersWithoutRoom, "ready_gives_as_many_as_there_is_room_for"),
    (BlanksBodies, "blanking_takes_contents_and_nothing_else"),
    (BlanksForAnybody, "blanking_takes_contents_and_nothing_else"),
    (BlanksAllAtOnce, "blanking_stops_at_its_limit_and_goes_on"),
    (DeletesEachAlone, "a_run_that_has_changed_is_not_deleted"),
    (DeletesBlindly, "a_run_that_has_changed_is_not_deleted"),
    (KeepsPlaces, "runs_are_deleted_with_all_that_is_theirs"),
    (KeepsAdmissionKeys, "runs_are_deleted_with_all_that_is_theirs"),
    (ForgetsTails, "a_tail_that_is_deleted_leaves_the_one_before"),
    (WakesNobody, "a_commit_of_another_handle_ends_a_wait"),
    (WakesForAnything, "a_wait_for_the_end_ends_with_the_run"),
    (WaitsForTheNext, "whatever_becomes_ready_is_an_arrival"),
    (CountsNoBurials, "a_burial_is_an_arrival"),
    (IgnoresHead, "an_unanswered_commit_is_found_by_its_id"),
    (IgnoresHead, "a_late_commit_lands_at_its_head_or_never"),
    (WritesKeysApart, "a_late_commit_lands_at_its_head_or_never"),
    (AdmitsAgain, "a_late_admission_is_admitted_once_or_never"),
    (ForgetsThreads, "a_late_admission_is_admitted_once_or_never"),
    (WritesKeysApart, "a_late_admission_is_admitted_once_or_never"),
    (IgnoresFence, "a_late_claim_of_an_old_epoch_is_lost"),
    (IgnoresHead, "what_is_delivered_twice_is_applied_once"),
    (DropsLinks, "what_is_delivered_twice_is_applied_once"),
    (SharesOneFate, "of_a_torn_group_each_unit_is_whole"),
    (IgnoresHead, "of_a_torn_group_each_unit_is_whole"),
    (AppliesHalfAUnit, "linked_changes_are_both_or_neither"),
    (DropsLinks, "linked_changes_are_both_or_neither"),
    (IgnoresHead, "writers_behind_every_fault_write_each_message_once"),
    (JudgesTooEarly, "writers_behind_every_fault_write_each_message_once"),
    (ForgetsKeys, "writers_behind_every_fault_write_each_message_once"),
    (ForgetsTexts, "a_store_that_was_away_has_nothing_half_written"),
    (RefusesCrowds, "calls_that_hang_land_together"),
    (InsistsOnNewTexts, "every_call_may_be_asked_again"),
    (Storms, "nobody_who_renews_dies_of_an_outage"),
    (KeepsContact, "nobody_who_renews_dies_of_an_outage"),
    (OverlapsPages, "readers_behind_faults_see_each_record_once"),
    (TellsOnce, "a_lost_hint_costs_latency_only"),
    (ReadsBackslashes, "names_are_never_code"),
    (ComparesWithoutPadding, "names_that_look_alike_are_apart"),
    *BROKEN_REFUSALS,
    *BROKEN_VALUES,
)
"""Each broken store, and the check that must notice it."""
