"""Every store gives the answers of the protocol, whatever is asked of it in whatever order (ST-1).

A machine asks the in-memory store and the SQLite store the same things and compares both with
an oracle: answers, rows and their order, after every step.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from psych_runtime.errors import RunNotFound, StoreClosed
from psych_runtime.ports.checks import same
from psych_runtime.ports.store import Admit, Exclude, Page, RunFilter, Store, Unit
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sqlite.store import SqliteStore
from psych_schema.common import RunPhase
from psych_schema.store import RecordRow, RunRow
from tests.functional.store.broken import (
    CountsTakeovers,
    DeletesBlindly,
    ForgetsCaps,
    IgnoresFence,
    KeepsContact,
    OverlapsPages,
    WritesKeysApart,
)
from tests.functional.store.broken_values import (
    CountsFromOne,
    DeletesAtAnyRevision,
    SortsByUnits,
    WritesOver,
)
from tests.functional.store.drawing import (
    HASHES,
    KEYS,
    PICKS,
    TENANTS,
    WORKERS,
    Drawing,
    Picks,
)
from tests.functional.store.oracle import Oracle
from tests.functional.store.rig import Rig
from tests.functional.store.valuing import KEYS as VALUE_KEYS
from tests.functional.store.valuing import KINDS, Drawn, Told, ValueOracle, Wish, wish
from tests.unit.effort import effort

ALL: Final = 1000
LEASE_SECONDS: Final = 100.0
TOOLS: Final = ("charge", "\U0001f9e0")

_COUNT: Final = st.integers(0, 3)
_CHANGES: Final = st.integers(1, 6)
_SECONDS: Final = st.sampled_from(
    (0.000001, 1.0, 10.0, 30.0, 49.0, 49.999999, 50.0, 50.000001, 100.0, 100.000001, 300.0)
)

type View = tuple[object, ...]
type Place = tuple[str, int, datetime]


class Pair(NamedTuple):
    """A handle of each store."""

    memory: Store
    sqlite: Store


def places(rows: Iterable[RunRow]) -> list[Place]:
    """Return what the order of claims is made of; Runs of one place may come in any order."""
    return [(row.tenant, row.priority, row.wake_at or row.created_at) for row in rows]


def are_some_of(rows: Sequence[RunRow], everything: list[RunRow]) -> bool:
    """Tell whether all rows are among `everything`, each once."""
    return len({row.run_id for row in rows}) == len(rows) and all(row in everything for row in rows)


class Asking(RuleBasedStateMachine):
    """What both stores and the oracle are asked alike."""

    def __init__(self, rig: Rig) -> None:
        super().__init__()
        self.rig = rig
        self.clock = rig.clock
        self.oracle = Oracle(rig.clock.now)
        self.draws = Drawing(self.oracle)
        self.values = ValueOracle()
        self.drawn = {MemoryStore: Drawn(), SqliteStore: Drawn()}
        rig.empty()
        self.pairs = [Pair(rig.memory(rig.clock), rig.sqlite.twin())]
        self.pair = self.pairs[0]
        self.moved = False

    def ask[T](self, what: str, call: Callable[[Store], Awaitable[T]], wanted: object) -> None:
        """Compare the answers of both stores with the oracle's."""

        async def asked() -> None:
            memory, sqlite = await call(self.pair.memory), await call(self.pair.sqlite)
            same(memory, wanted, f"memory: {what}")
            same(sqlite, wanted, f"sqlite: {what}")

        self.rig.run(asked())

    def commit(self, *units: Unit) -> None:
        """Commit units in one call, then look at what they name."""
        wanted = self.oracle.commit(units)
        self.moved = True
        self.ask("commit", lambda store: store.commit(units), wanted)
        for tenant in {sent.tenant for sent in units}:
            self.look_at_cap(tenant)
        for sent in units:
            for part in sent.changes:
                self.look(sent.tenant, part.run_id)
                if isinstance(part, Admit):
                    self.look_at_tail(sent.tenant, part.header.thread)
            for key in sent.keys:
                self.look_up(sent.tenant, key.run_id, key.key)

    def look(self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None) -> None:
        """Read a log and its header."""

        async def read(store: Store) -> list[RecordRow] | None:
            try:
                return await store.read(tenant, run_id, after=after, limit=limit)
            except RunNotFound:
                return None

        async def header(store: Store) -> RunRow | None:
            try:
                return await store.header(tenant, run_id)
            except RunNotFound:
                return None

        records = self.oracle.read(tenant, run_id, after=after, limit=limit)
        self.ask(f"read {run_id}", read, records)
        self.ask(f"header {run_id}", header, self.oracle.of(tenant, run_id))

    def look_up(self, tenant: str, run_id: str, key: str) -> None:
        """Read a key."""
        wanted = self.oracle.keys.get((tenant, run_id, key))
        self.ask(f"key {key!r}", lambda store: store.key(tenant, run_id, key), wanted)

    def look_at_tail(self, tenant: str, thread: str) -> None:
        """Read the last header of a thread."""
        wanted = self.oracle.tail(tenant, thread)
        self.ask("tail", lambda store: store.tail(tenant, thread), wanted)

    def look_at_cap(self, tenant: str) -> None:
        """Read a tenant's cap."""
        self.ask("cap", lambda store: store.cap(tenant), self.oracle.caps.get(tenant))

    def find(self, picks: Picks, after: str, limit: int) -> None:
        """Look for work as a worker does that has some in hand and cannot run everything."""
        exclude = Exclude(
            tuple(self.draws.some_run(picks).run_id for _ in range(picks.of((0, 1, 3)))),
            picks.of(((), HASHES[:1])),
            picks.of((None, 1, 2)),
        )
        claimable = self.oracle.claimable(exclude)
        wanted = self.clock.now(), places(self.oracle.ready(limit, after, exclude)), True

        async def ready(store: Store) -> tuple[datetime, list[Place], bool]:
            found = await store.ready(limit, after_tenant=after, exclude=exclude)
            return found.now, places(found.headers), are_some_of(found.headers, claimable)

        self.ask(f"ready after {after!r}", ready, wanted)

    def find_overdue(self, limit: int) -> None:
        """Look for what a supervisor has to settle; in which order is not said."""
        everything = self.oracle.overdue()

        async def overdue(store: Store) -> tuple[int, set[str]]:
            found = [row.run_id for row in await store.overdue(limit)]
            return len(found), set(found) - everything

        self.ask("overdue", overdue, (min(limit, len(everything)), set()))

    def list_runs(self, picks: Picks, tenant: str, limit: int) -> None:
        """List a tenant's Runs by pages."""
        rows = self.oracle.listed(tenant, RunFilter()) or [self.draws.some_run(picks)]
        states: tuple[RunPhase | None, ...] = (None, "ready", "running")
        filter = RunFilter(
            state=picks.of(states),
            version=picks.of((None, None, *HASHES)),
            thread=picks.of((None, None, picks.of(rows).thread)),
            parent=picks.of((None, None, picks.of(rows).parent)),
            created_after=picks.of((None, None, picks.of(rows).created_at)),
        )

        async def pages(store: Store) -> list[RunRow]:
            found: list[RunRow] = []
            cursor: str | None = None
            for _ in range(len(rows) + 1):
                page = await store.list_runs(tenant, filter=filter, cursor=cursor, limit=limit)
                same(len(page.headers) <= limit, True, "a page within its limit")
                found += page.headers
                cursor = page.cursor
                if cursor is None:
                    return found
            raise AssertionError(f"a list without an end: {found}")

        self.ask("list_runs", pages, self.oracle.listed(tenant, filter))

    def list_all(self, tenant: str) -> None:
        """List a tenant's Runs on one page."""
        wanted = Page(tuple(self.oracle.listed(tenant, RunFilter())), None)
        self.ask("list_runs", lambda store: store.list_runs(tenant, limit=ALL), wanted)

    def look_at_texts(self, tenant: str, hash: str) -> None:
        """Read what is kept under a hash."""
        version = self.oracle.texts.get(("version", tenant, hash))
        self.ask("version", lambda store: store.version(tenant, hash), version)
        document = self.oracle.texts.get(("document", tenant, hash))
        self.ask("document", lambda store: store.document(tenant, hash), document)

    def drawn_by(self, store: Store) -> Drawn:
        """Return what one of the stores has drawn, whichever handle of it this is."""
        return self.drawn[SqliteStore if store is self.pair.sqlite else MemoryStore]

    def look_at_value(self, tenant: str, kind: str, key: str) -> None:
        """Read a small value."""

        async def read(store: Store) -> Told | None:
            row = await store.value(tenant, kind, key)
            return None if row is None else self.drawn_by(store).told(row)

        self.ask(f"value {key!r}", read, self.values.rows.get((tenant, kind, key)))

    def list_values(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> None:
        """List small values."""

        async def listed(store: Store) -> list[Told]:
            rows = await store.list_values(tenant, kind, prefix=prefix, after=after, limit=limit)
            return [self.drawn_by(store).told(row) for row in rows]

        wanted = self.values.listed(tenant, kind, prefix, after, limit)
        self.ask(f"list_values {prefix!r} after {after!r}", listed, wanted)

    def wait(self, picks: Picks, row: RunRow) -> None:
        """Wait for no time at all; what is told of an id that was deleted before is no more."""
        heads = {row.run_id: row.head - picks.of((0, 1, 2, -1))}
        heads |= {self.draws.some_run(picks).run_id: 1 for _ in range(picks.of((0, 2)))}
        wanted = self.oracle.moved(row.tenant, heads)
        stale = self.oracle.removed - wanted

        async def wait(store: Store) -> frozenset[str]:
            return await store.wait(row.tenant, heads, 0.0) - stale

        self.ask("wait", wait, wanted)

    @invariant()
    def work_is_as_the_oracle_says(self) -> None:
        """Look at what workers would find now."""
        if not self.moved:
            return
        self.moved = False
        claimable = self.oracle.claimable(Exclude())

        async def view(store: Store) -> View:
            ready = (await store.ready(ALL)).headers
            overdue = await store.overdue(ALL)
            held = [await store.held_by(worker) for worker in WORKERS]
            return (
                places(ready),
                are_some_of(ready, claimable),
                (len(overdue), {row.run_id for row in overdue}),
                [(len(rows), {row.run_id for row in rows}) for rows in held],
                await store.workers(),
            )

        overdue = self.oracle.overdue()
        held_by = [self.oracle.held_by(worker) for worker in WORKERS]
        wanted: View = (
            places(self.oracle.ready(ALL, "", Exclude())),
            True,
            (len(overdue), overdue),
            [(len(held), held) for held in held_by],
            self.oracle.workers(),
        )
        self.ask("work", view, wanted)

    def teardown(self) -> None:
        """Read everything, then close the handles."""
        try:
            for tenant in TENANTS:
                self.list_all(tenant)
            for row in self.oracle.runs.values():
                self.look(row.tenant, row.run_id)
            for tenant, run_id, key in self.oracle.keys:
                self.look_up(tenant, run_id, key)
            for tenant, kind, _ in list(self.values.rows):
                self.list_values(tenant, kind, "", "", ALL)
        finally:
            for pair in self.pairs:
                for store in pair:
                    self.rig.run(store.close())


def _has_runs(machine: Asking) -> bool:
    return bool(machine.oracle.runs)


class StoreMachine(Asking):
    """What happens: writers, workers, time, readers, handles."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig)
        self.sent: list[Unit] = []

    @initialize(picks=st.lists(PICKS, min_size=1, max_size=4), enlisted=st.integers(1, 3))
    def begin(self, picks: list[Picks], enlisted: int) -> None:
        self.commit(*[self.draws.fresh(each) for each in picks])
        for worker in WORKERS[:enlisted]:
            self.enlist(worker, LEASE_SECONDS)

    def write(self, *units: Unit) -> None:
        self.sent += units
        self.commit(*units)

    @rule(picks=PICKS)
    def admit(self, picks: Picks) -> None:
        self.write(self.draws.fresh(picks))

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def claim(self, picks: Picks) -> None:
        self.write(self.draws.taking(picks))

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def claim_and_note(self, picks: Picks) -> None:
        taking = self.draws.taking(picks)
        self.write(taking)
        self.write(self.draws.noted(picks, taking.changes[0].run_id))

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def note(self, picks: Picks) -> None:
        self.write(self.draws.noted(picks))

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def settle(self, picks: Picks) -> None:
        self.write(self.draws.settled(picks))

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def link(self, picks: Picks) -> None:
        self.write(self.draws.linked(picks))

    @precondition(_has_runs)
    @rule(picks=st.lists(PICKS, min_size=2, max_size=5))
    def flush(self, picks: list[Picks]) -> None:
        """Commit many units at once; what comes later sees what the ones before have written."""
        self.write(*[self.draws.any_unit(each) for each in picks])

    @precondition(lambda self: bool(self.sent))
    @rule(picks=PICKS)
    def send_again(self, picks: Picks) -> None:
        self.commit(picks.of(self.sent))

    @rule(seconds=_SECONDS)
    def pass_time(self, seconds: float) -> None:
        self.moved = True
        self.clock.instant += timedelta(seconds=seconds)

    @rule(worker=st.sampled_from(WORKERS), lease_seconds=st.sampled_from((LEASE_SECONDS, 60.0)))
    def enlist(self, worker: str, lease_seconds: float) -> None:
        self.moved = True
        wanted = self.oracle.enlist(worker, lease_seconds=lease_seconds, build="b", tools=TOOLS)
        self.ask(
            "enlist",
            lambda s: s.enlist(worker, lease_seconds=lease_seconds, build="b", tools=TOOLS),
            wanted,
        )

    @rule(
        picks=PICKS, worker=st.sampled_from(WORKERS), seconds=st.sampled_from((LEASE_SECONDS, 60.0))
    )
    def renew(self, picks: Picks, worker: str, seconds: float) -> None:
        known = [*sorted(self.oracle.runs), "run_" + "z" * 26]
        runs = tuple({picks.of(known) for _ in range(picks.of(range(4)))})
        self.moved = True
        wanted = self.oracle.renew(worker, lease_seconds=seconds, run_ids=runs)
        self.ask("renew", lambda s: s.renew(worker, lease_seconds=seconds, run_ids=runs), wanted)

    @rule(observer=st.sampled_from(WORKERS), sweeps=st.booleans())
    def bury(self, observer: str, sweeps: bool) -> None:
        self.moved = True
        self.ask("bury", lambda store: store.bury(observer), self.oracle.bury(observer))
        if sweeps:
            self.oracle.sweep()
            self.ask("sweep", lambda store: store.sweep(), None)

    @rule(
        picks=PICKS,
        beats=st.integers(2, 4),
        pause=st.sampled_from((30.0, 49.0, 49.999999, 50.0, 50.000001)),
    )
    def watch(self, picks: Picks, beats: int, pause: float) -> None:
        """Let one worker renew for a while, as long as its lease or not quite, then judge."""
        alive = [row.id for row in self.oracle.workers()]
        observer = picks.of(alive or WORKERS)
        for _ in range(beats):
            self.pass_time(pause)
            self.renew(picks, observer, LEASE_SECONDS)
        self.bury(observer, picks.of((False, True)))

    @precondition(_has_runs)
    @rule(
        picks=PICKS,
        tenant=st.sampled_from(TENANTS),
        cursor=st.sampled_from(("", "aa", *TENANTS, "\U0010ffff")),
        limit=st.integers(1, 4),
        after=st.integers(-1, 9),
    )
    def look_around(self, picks: Picks, tenant: str, cursor: str, limit: int, after: int) -> None:
        """Ask what readers and workers ask, by pages and with limits, also as another tenant."""
        row = self.draws.some_run(picks)
        self.find(picks, cursor, limit)
        self.find_overdue(limit)
        self.wait(picks, row)
        for each in {row.tenant, tenant}:
            self.look(each, row.run_id, after=after, limit=limit)
            self.look_up(each, row.run_id, picks.of(KEYS))
            self.look_at_tail(each, row.thread)
            self.list_runs(picks, each, limit + 1)

    @rule(
        table=st.sampled_from(("version", "document")),
        tenant=st.sampled_from(TENANTS[:2]),
        hash=st.sampled_from(HASHES),
        text=st.sampled_from(("", "{}", "\U0001f9e0\x01")),
    )
    def keep(
        self, table: Literal["version", "document"], tenant: str, hash: str, text: str
    ) -> None:
        """Keep a text; the first one of a hash stays."""
        self.oracle.put(table, tenant, hash, text)
        if table == "version":
            self.ask("put_version", lambda s: s.put_version(tenant, hash, text), None)
        else:
            self.ask("put_document", lambda s: s.put_document(tenant, hash, "tool", text), None)
        for each in TENANTS[:2]:
            self.look_at_texts(each, hash)

    @rule(picks=PICKS, text=st.sampled_from(("", "{}", "\U0001f9e0\x01 ")), changes=_CHANGES)
    def swap(self, picks: Picks, text: str, changes: int) -> None:
        """Write and delete small values, most often as they are and one again, then look."""
        name = TENANTS[0], KINDS[0], VALUE_KEYS[0]
        for _ in range(changes):
            if picks.of((True, False)):
                name = picks.of(TENANTS[:2]), picks.of(KINDS), picks.of(VALUE_KEYS)
            there = name in self.values.rows
            if picks.of((True, not there)):
                self.put_value(name, text, wish(picks, there))
            else:
                self.delete_value(name, wish(picks, there))
            self.look_at_value(*name)
        tenant, kind, _ = name
        prefix, after = picks.of(("", "k", "\uffff")), picks.of(("", *VALUE_KEYS))
        self.list_values(tenant, kind, prefix, after, picks.of((1, 2, ALL)))

    def put_value(self, name: tuple[str, str, str], text: str, wanted: Wish) -> None:
        """Write a small value."""

        async def put(store: Store) -> Told | str | None:
            drawn = self.drawn_by(store)
            expect = drawn.revision(name, wanted)
            return drawn.wrote(await store.put_value(*name, text, expect=expect), wanted)

        self.ask(f"put_value {wanted}", put, self.values.put(name, text, wanted))

    def delete_value(self, name: tuple[str, str, str], wanted: Wish) -> None:
        """Delete a small value."""

        async def delete(store: Store) -> bool:
            expect = self.drawn_by(store).revision(name, wanted)
            return await store.delete_value(*name, expect=expect)

        self.ask(f"delete_value {wanted}", delete, self.values.delete(name, wanted))

    @rule(tenant=st.sampled_from(TENANTS), limit=st.sampled_from((1, 2, 0, None, 3)))
    def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound a tenant's running Runs, or lift the bound."""
        self.moved = True
        self.oracle.set_cap(tenant, limit)
        self.ask("set_cap", lambda store: store.set_cap(tenant, limit), None)
        self.look_at_cap(tenant)

    @precondition(_has_runs)
    @rule(picks=PICKS, limit=st.sampled_from((1, 2)), claims=st.integers(1, 3))
    def crowd(self, picks: Picks, limit: int, claims: int) -> None:
        """Claim a tenant's Runs one after the other under a cap, then let one go."""
        tenant = self.draws.some_run(picks).tenant
        self.set_cap(tenant, limit)
        for _ in range(claims):
            self.write(self.draws.taking(picks, tenant))
        self.write(self.draws.settled(picks))

    @precondition(_has_runs)
    @rule(picks=PICKS, limit=st.integers(1, 3), tenant=st.sampled_from((None, None, *TENANTS)))
    def blank(self, picks: Picks, limit: int, tenant: str | None) -> None:
        """Take contents off, perhaps as another tenant."""
        row = self.draws.some_run(picks)
        asking = row.tenant if tenant is None else tenant

        async def blank(store: Store) -> bool | None:
            try:
                return await store.blank(asking, row.run_id, limit=limit)
            except RunNotFound:
                return None

        self.ask("blank", blank, self.oracle.blank(asking, row.run_id, limit))
        self.look(row.tenant, row.run_id)

    @precondition(_has_runs)
    @rule(picks=PICKS)
    def delete(self, picks: Picks) -> None:
        """Delete what has ended."""
        self.moved = True
        tenant, headers, keys = self.draws.deleted(picks)
        known = [name for name in self.oracle.keys if name[0] == tenant]
        wanted = self.oracle.delete_runs(tenant, headers, keys)
        self.ask("delete_runs", lambda store: store.delete_runs(tenant, headers, keys), wanted)
        for row in headers:
            self.look(row.tenant, row.run_id)
            self.look_at_tail(row.tenant, row.thread)
        for name in known:
            self.look_up(*name)

    @rule(place=_COUNT, closes=st.booleans())
    def change_handles(self, place: int, closes: bool) -> None:
        """Go on with another handle, a new one or an old one; a closed one refuses everything."""
        if place >= len(self.pairs):
            self.pairs.append(Pair(self.pair.memory.twin(), self.pair.sqlite.twin()))
        self.pair = self.pairs[place % len(self.pairs)]
        if not closes or len(self.pairs) == 1:
            return
        self.pairs.remove(self.pair)
        for store in self.pair:
            self.rig.run(store.close())
            with pytest.raises(StoreClosed):
                self.rig.run(store.commit([]))
        self.pair = self.pairs[0]


def machine(rig: Rig) -> type[StoreMachine]:
    """Return the machine that works on `rig`."""

    class Rigged(StoreMachine):
        def __init__(self) -> None:
            super().__init__(rig)

    return Rigged


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "runs.db")
    yield rig
    rig.close()


def test_st_1_every_store_answers_as_the_protocol_says(rig: Rig) -> None:
    """The same answers, rows and order from memory, from SQLite and from the oracle."""
    rig.do_without_threads()
    run_state_machine_as_test(machine(rig), settings=effort(40, steps=50))


def test_st_1_so_does_sqlite_with_its_threads(rig: Rig) -> None:
    """The same with one thread that writes and one that reads."""
    run_state_machine_as_test(machine(rig), settings=effort(6, steps=40))


@pytest.mark.parametrize(
    "kind",
    [
        IgnoresFence,
        KeepsContact,
        WritesKeysApart,
        OverlapsPages,
        ForgetsCaps,
        CountsTakeovers,
        DeletesBlindly,
        WritesOver,
        CountsFromOne,
        DeletesAtAnyRevision,
        SortsByUnits,
    ],
)
def test_st_1_the_machine_notices_a_broken_store(rig: Rig, kind: type[MemoryStore]) -> None:
    """Whether what it breaks is a fence, a lease, a unit, a page, a cap, a deletion or a value."""
    rig.do_without_threads()
    rig.memory = kind
    once = settings(effort(50, steps=50), phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError, match=r"^memory: "):
        run_state_machine_as_test(machine(rig), settings=once)
