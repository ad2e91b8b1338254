"""The store port: one write path, conditional and in units (R-1); everything else is a read.

Safety comes from one conditional write on the header and the unique key (run_id, seq), never
from isolation levels. A contract suite for adapters is `psych_runtime.store.contract`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol, Self

from psych_runtime.ports.answers import Answer
from psych_schema.common import AbortPhase, RunPhase
from psych_schema.record import Record
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = [
    "MAX_OPEN",
    "MAX_UNIT_BYTES",
    "MAX_UNIT_RECORDS",
    "MAX_VALUE_BYTES",
    "MAX_VALUE_KEY_CHARACTERS",
    "REMAINING",
    "UNCAPPED",
    "UNSET",
    "Admit",
    "After",
    "Arrival",
    "Change",
    "Exclude",
    "Found",
    "HeaderChange",
    "Page",
    "Remaining",
    "Renewed",
    "RunFilter",
    "Sealed",
    "Seen",
    "Store",
    "Unit",
    "Unset",
]

MAX_UNIT_RECORDS: Final = 90
MAX_UNIT_BYTES: Final = 3_000_000
MAX_OPEN: Final = 128  # objects that a header may name as open
MAX_VALUE_BYTES: Final = 262_144  # of UTF-8, of a small value
MAX_VALUE_KEY_CHARACTERS: Final = 256
UNCAPPED: Final = 2_147_483_647  # the limit in a row of a cap that was lifted


class Unset(Enum):
    """The mark of a header column that a change leaves alone."""

    UNSET = "unset"


class Remaining(Enum):
    """An amount that the store computes: what is left until deadline_at, at least 0."""

    REMAINING = "remaining"


UNSET: Final = Unset.UNSET
REMAINING: Final = Remaining.REMAINING


class After(NamedTuple):
    """An instant that the store computes: its own now plus `seconds`."""

    seconds: float


class Sealed(NamedTuple):
    """A record at its place: the row to store, the record that reading it back would give."""

    row: RecordRow
    record: Record
    hash: str  # SHA-256 of row.body
    own: str | None = None  # how row.body ends, when the codec wrote it: `{` and its own fields


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChange:
    """What a change does to the header beyond its head, which follows from the records.

    `opened` and `closed` edit the column `open`.
    """

    state: RunPhase | Unset = UNSET
    worker: str | None | Unset = UNSET
    epoch: int | Unset = UNSET
    crashes: int | Unset = UNSET
    wake_at: datetime | After | None | Unset = UNSET
    deadline_at: After | None | Unset = UNSET
    remaining_seconds: Remaining | None | Unset = UNSET
    abort: AbortPhase | Unset = UNSET
    referenced: Literal[True] | Unset = UNSET
    opened: Mapping[str, int] = field(default_factory=dict)
    closed: tuple[str, ...] = ()


class Change(NamedTuple):
    """More records of an existing Run, at exactly `expect_head`.

    `fence` is the epoch that must still be current, None from outside. Without records it
    changes the header only: state corrupt, or referenced.
    """

    run_id: str
    expect_head: int
    fence: int | None
    records: tuple[Sealed, ...]
    header: HeaderChange


class Admit(NamedTuple):
    """A new Run; `header` has the head of `records` and no deadline_at: the store computes it."""

    header: RunRow
    records: tuple[Sealed, ...]
    deadline_seconds: float | None

    @property
    def run_id(self) -> str:
        """The new Run's id."""
        return self.header.run_id


class Unit(NamedTuple):
    """Changes of one tenant's Runs, all or none; sent again unchanged when in doubt (R-20).

    It changes a Run, each once; `keys` are written beside.
    """

    commit_id: str
    tenant: str
    changes: tuple[Change | Admit, ...]
    keys: tuple[KeyRow, ...] = ()


class Exclude(NamedTuple):
    """What `ready` leaves out: Runs in hand, Versions and schemas not for this worker (R-16)."""

    run_ids: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    schema_version_above: int | None = None


class Found(NamedTuple):
    """Claimable Runs, and the store's clock when they were.

    `capped`: a tenant has a cap, so that Runs may be claimable when one of its Runs ends.
    """

    now: datetime
    headers: tuple[RunRow, ...]
    capped: bool = False


class Arrival(NamedTuple):
    """How many times Runs may have become claimable, and which, if this process made them all.

    `admitted` None: others may have, too; `ready` tells which.
    """

    seen: int
    admitted: tuple[Admit, ...] | None


class Seen(NamedTuple):
    """What a renewal tells of a Run."""

    epoch: int
    head: int
    abort: bool
    overdue: bool  # deadline_at has passed


class Renewed(NamedTuple):
    """A renewal's answer, for the Run ids passed that exist."""

    now: datetime
    seen: Mapping[str, Seen]


class RunFilter(NamedTuple):
    """Which Runs `list_runs` gives; None is any."""

    state: RunPhase | None = None
    version: str | None = None
    thread: str | None = None
    parent: str | None = None
    created_after: datetime | None = None


class Page(NamedTuple):
    """Headers, newest first, and where to go on; cursor None is the end."""

    headers: tuple[RunRow, ...]
    cursor: str | None


class Store(Protocol):
    """Keeps headers, logs, keys, threads, workers, versions, documents and small values.

    Called from the executor's and the supervisor's loop, each with its own handle (`twin`);
    what they share is held until the last handle is closed.
    Every method may raise StoreUnavailable, which promises nothing, and answers or raises within
    half a lease, a caller's own turn in a burst not counted. A name or text that is no Unicode is
    InvalidPayload, whatever it is for. ValueError is a bug of the caller: a limit below 1, a cap
    below 0, a unit that changes no Run or has a gap, a deletion of too many. Nothing is written
    then. Anything else that is not named is a bug of the adapter.
    """

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply each unit all or none, durably, and answer for each in order.

        Units are independent. A unit is judged in this order: RunNotFound (also another
        tenant's), LeaseLost (fence is not the epoch), SeqConflict (head is not expect_head, or
        an admitted id exists), KeyTaken, ThreadTaken, CapReached (see `set_cap`). Rows are locked
        in run_id order.
        """

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return committed records with seq > after, in order. Raises RunNotFound."""

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Return the header, consistently. Raises RunNotFound."""

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the header at the highest position of the thread, None for no thread."""

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return what is known of a request; run_id is "" for admissions."""

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = Exclude()
    ) -> Found:
        """Return claimable Runs, fairly (R-15): a plain read, nothing is held.

        Claimable: ready with wake_at null or due; suspended with wake_at due; running with its
        worker dead or missing. Tenants follow `after_tenant` in order and wrap around, each
        with a quota; inside a tenant priority, higher first, then wake_at (null as created_at).
        Of a tenant with a cap, no more are given than it has room for, besides those of dead
        workers, which take no more room than they have.
        """

    async def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that no live worker holds and that are aborted or past deadline_at."""

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row, alive from now on; return the store's now. Repeatable."""

    async def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong the lease; None when the worker is dead or unknown, which is final.

        `since` becomes now when less than half the lease was left (R-6).
        """

    async def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker, consistently."""

    async def bury(self, observer: str) -> list[str]:
        """Mark every worker dead whose lease is over, each once; return their ids.

        A store without a clock of its own may wait, for less than half a second, for a lease that
        is about to be over.

        Nothing happens unless the observer is alive and has had one whole lease of contact that
        is unbroken to this moment: since + lease <= now, and half its lease is left at least, so
        that its next renewal would not break it (R-6).
        """

    async def sweep(self) -> None:
        """Delete dead workers' rows that no header names."""

    def twin(self) -> "Store":
        """Return another handle of the same store, for another loop or thread.

        Whoever asks for it closes it, in any loop; until then it keeps open what the store
        holds (threads, connections, descriptors), also when all other handles are closed.
        """

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec; the same hash again changes nothing."""

    async def version(self, tenant: str, hash: str) -> str | None:
        """Return a published Spec's canonical text."""

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a system prompt or tool definition; the same hash again changes nothing."""

    async def document(self, tenant: str, hash: str) -> str | None:
        """Return a document's text."""

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Return Runs whose head may have passed the given one, or nothing after `seconds`.

        With `over`, only those that may be settled or corrupt besides: who waits for the end
        need not be woken by each commit. A hint: losing one costs latency only.
        """

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        """Return how many times Runs may have become claimable, once that is not `seen`.

        Or after `seconds`. Read the count (0 seconds), look with `ready`, then wait with that
        count: nothing that this handle could know is missed. It counts what any handle of the
        same store in this process commits or buries, and what other processes do where the
        store passes on messages (PostgreSQL); elsewhere, and for Runs that become due, only
        looking again helps. Asks the store nothing. StoreClosed, also for whoever waits when
        the handle is closed.
        """

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = RunFilter(),
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Return a page of headers, newest first. InvalidPayload for a cursor not of ours."""

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running at once (R-15); None lifts the bound.

        From then on a change whose state becomes running, and was not, counts, and is CapReached
        when `limit` are counted; the header says `capped` until a change takes the Run out of
        running. Runs that are running already are not counted, and are not stopped. A cap that
        was lifted goes on counting, with the limit UNCAPPED, so that a later one is exact.
        """

    async def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap and how many Runs it counts; None when it never had one."""

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a small value with its revision, consistently; None when there is none.

        Here and below, `kind` is one of our own words, 1 to 64 of a-z, 0-9, `_`, `-` and `.`
        (ValueError), and a key has 1 to MAX_VALUE_KEY_CHARACTERS characters (InvalidPayload).
        """

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value where `expect` is its revision; None expects that there is none.

        Returns the row as it is now, None when somebody was first: nothing is written then. A
        revision grows by one with each write; that of a new row is drawn, so that a row which
        was deleted and made again has none that anybody has seen before. StoreUnavailable: it
        may be written. Read then: at the revision that follows `expect` stands yours or another's,
        so a writer who must know which puts something of its own into the value. The same put
        again is None where it was written. PayloadTooLarge above MAX_VALUE_BYTES.
        """

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value, at this revision only; None is any. True for one caller alone.

        False when there is none, or it has another revision: nothing is deleted then.
        StoreUnavailable: it may be deleted, by this call or by another.
        """

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Return values whose key begins with `prefix` and sorts behind `after`, consistently.

        Sorted by key, as the code points of the characters are; fewer than `limit` is the end.
        """

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take content and salt off up to `limit` records of a Run; True when none has any left.

        The second half of erasing (R-11): `run.erased` is in the log by then. Bodies stay as
        they are. Repeatable. Raises RunNotFound.
        """

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs with their records, keys and places in threads, all or none (ST-6).

        `headers` are as they were read; False, and nothing is deleted, when one of them has
        another head, state or `referenced` now, or is gone. `keys` are admission keys to forget
        besides, those under run_id "". At most 90 Runs.
        """

    async def migrate(self) -> None:
        """Bring the tables to this build's schema; repeatable, safe when two do it at once."""

    async def close(self) -> None:
        """End this handle; the last one releases what the store holds. Repeatable."""

    async def __aenter__(self) -> Self:
        """Return the store itself."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
