"""What Runs cost as they grow: a model of DynamoDB on paper. Run it to print its tables.

By AWS's published rules: a write unit for each started KB, two in a transaction, one for each
entry of an index that comes, goes or changes; a read unit for each started 4 KB that is read
consistently, half of one otherwise; 1,000 and 3,000 of them a second from one partition.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import Final, NamedTuple

from psych_schema.store import RecordRow

__all__ = [
    "Commit",
    "Cost",
    "Ends",
    "asked",
    "calls",
    "commits_of",
    "ends",
    "idle",
    "most_workers",
    "paper_shape",
    "run_cost",
    "shape_of",
]

_PARTITION_WRITES: Final = 1000.0
_PARTITION_READS: Final = 3000.0
_HEADER_BYTES: Final = 750  # with its places in the indexes
_ENTRY_BYTES: Final = 140  # of a log item that holds nothing: keys, names, commit id
_RECORD_BYTES: Final = 8  # what the item says of a record beside its type
_CONTENT_BYTES: Final = 42  # and of its content: length and salt
_NO_CONTENT_BYTES: Final = 12  # where another record of the item has one
_WORKER_BYTES: Final = 280  # of a worker's row with one tool
_HOLDER_BYTES: Final = 80  # of the note that a worker has held Runs
_PAGE_BYTES: Final = 1_048_576
_TENANT_SHARDS: Final = 4
_DEAD_SECONDS: Final = 1.0  # for so long a process knows which workers are dead


class Commit(NamedTuple):
    """What one commit adds to a Run's log; the first one is the admission."""

    types: Sequence[str]
    contents: int  # how many records have one
    bytes: int  # of bodies and contents

    @property
    def item_bytes(self) -> int:
        """The size of its log item."""
        bare = (len(self.types) - self.contents) * _NO_CONTENT_BYTES if self.contents else 0
        said = sum(len(each) + _RECORD_BYTES for each in self.types)
        return _ENTRY_BYTES + said + bare + self.contents * _CONTENT_BYTES + self.bytes


class Cost(NamedTuple):
    """Requests by operation, and units."""

    requests: Mapping[str, float]
    writes: float
    reads: float


def shape_of(rows: Iterable[RecordRow]) -> list[Commit]:
    """Return the commits that a log came in, whatever store it is in."""
    return [_commit(list(part)) for _, part in groupby(rows, _commit_id)]


def _commit_id(row: RecordRow) -> str:
    return str(json.loads(row.body)["commit"])


def _commit(rows: Sequence[RecordRow]) -> Commit:
    size = sum(len(text.encode()) for row in rows for text in (row.body, row.content or ""))
    contents = sum(row.content is not None for row in rows)
    return Commit(tuple(row.type for row in rows), contents, size)


def paper_shape(turns: int) -> list[Commit]:
    """Return the commits of tests/bench/workload.py in so many turns, from known sizes."""
    asks = Commit(("model.completed", "tool.started"), 1, 1400)
    goes_on = Commit(("tool.completed", "turn.started", "model.started"), 1, 1436)
    return [
        Commit(("run.admitted",), 1, 624),
        Commit(("attempt.started",), 0, 368),
        Commit(("turn.started", "tools.offered", "model.started"), 0, 1401),
        *[asks, goes_on] * (turns - 1),
        Commit(("model.completed", "run.settled"), 2, 1373),
    ]


def commits_of(turns: int) -> int:
    """Return how many commits a Run of so many turns is, where each model call takes a moment.

    The admission and the claim; then for each turn its model call, and what follows from the
    answer: the start of a tool, or the settlement.
    """
    return 2 + 2 * turns


def run_cost(
    shape: Sequence[Commit],
    *,
    found: bool = True,
    waits: float = 1.0,
    together: float = 1.0,
    keyed: bool = False,
    capped: bool = False,
    spec_bytes: int = 1024,
) -> Cost:
    """Return what a Run costs from `dispatch` to the answer of `wait`.

    Args:
        found: a worker of another process claims it, and reads it; one that is told does not.
        waits: how often its caller begins to wait, once each 2 s; each time it reads the header.
        together: how many Runs share a look for work and a claim.
        keyed: it was dispatched with a key.
        capped: its tenant has a cap.
    """
    table = sum(_writes(_HEADER_BYTES) + _writes(each.item_bytes) for each in shape)
    table += 1 + keyed + 2 * capped  # its place in the thread, the key, the cap's count
    indexes = 3 + 2 + 2  # admitted: claim, due, list; claimed: claim, worker; settled: due, worker
    log = sum(each.item_bytes for each in shape)
    requests = {
        "TransactWriteItems": float(len(shape)),
        "GetItem": 1.0 + keyed + found + waits + 2,  # the Version, the key, headers
        "Query": ceil(log / _PAGE_BYTES) + float(found),  # the log by its pages
        "BatchGetItem": waits + (1 + found) / together,  # headers, the cap's row
    }
    headers = (waits + 2) + waits + 2 * found
    reads = _reads(spec_bytes) + keyed + headers + _reads(log) + found + (1 + found) / together
    return Cost(requests, 2.0 * table + indexes, reads)


def _writes(size: int) -> int:
    return max(1, ceil(size / 1024))


def _reads(size: int) -> int:
    return max(1, ceil(size / 4096))


def calls(*, poll_seconds: float = 0.2, lease_seconds: float = 6.0) -> dict[str, float]:
    """Return which calls of the store an idle worker makes each second, on every store."""
    return {
        "ready": 1 / poll_seconds,
        "renew": 1 / min(0.5, lease_seconds / 5),
        "bury": 1 / min(0.5, lease_seconds / 4),
        "overdue": 1 / 0.5,
        "held_by": 1 / lease_seconds,
        "sweep": 1 / lease_seconds,
    }


def asked(shards: int = 4) -> dict[str, Mapping[str, int]]:
    """Return the requests of each such call, by what is asked: an index, or a partition."""
    return {
        "ready": {"claim": 2 * shards},  # behind a tenant, and up to it
        "renew": {"UpdateItem": 1},
        "bury": {"worker rows": 1},
        "overdue": {"due": shards},
        "held_by": {"worker": 1},
        "sweep": {"holder": 1, "worker rows": 1, "purge": 1},
    }


def idle(
    workers: int = 1,
    *,
    shards: int = 4,
    poll_seconds: float = 0.2,
    lease_seconds: float = 6.0,
    worker_bytes: int = _WORKER_BYTES,
) -> Cost:
    """Return what workers ask each second, all together, while nothing is to be done.

    Each reads the rows of all, so that the units grow with their square.
    """
    rates = calls(poll_seconds=poll_seconds, lease_seconds=lease_seconds)
    each: dict[str, float] = {"holder": 1 / _DEAD_SECONDS, "worker rows": 1 / _DEAD_SECONDS}
    for call, wanted in asked(shards).items():
        for what, count in wanted.items():
            each[what] = each.get(what, 0.0) + count * rates[call]
    beats = each.pop("UpdateItem")
    units: dict[str, float] = {
        "worker rows": _reads(workers * worker_bytes),
        "holder": _reads(workers * _HOLDER_BYTES),
        "purge": 1.0,
    }
    reads = sum(count * units.get(what, 0.5) for what, count in each.items())
    requests = {"UpdateItem": workers * beats, "Query": workers * sum(each.values())}
    return Cost(requests, workers * beats, workers * reads)


class Ends(NamedTuple):
    """Runs a second at which a partition has no more."""

    claims: float  # all tenants': each Run comes into a shard of two indexes and leaves it
    tenant_claims: float  # one tenant's, in its four shards
    tenant_list: float  # one tenant's: each Run comes into the list of this month
    tenant_capped: float  # one tenant's with a cap: its count, twice, in transactions
    worker: float  # one worker's: what it holds
    version: float  # one Version's: each dispatch reads it


def ends(shards: int = 4, *, spec_bytes: int = 1024) -> Ends:
    """Return where partitions end, if the shards have equal shares."""
    moved = _PARTITION_WRITES / 2
    return Ends(
        claims=moved * shards,
        tenant_claims=moved * min(_TENANT_SHARDS, shards),
        tenant_list=_PARTITION_WRITES,
        tenant_capped=_PARTITION_WRITES / 4,
        worker=moved,
        version=_PARTITION_READS / _reads(spec_bytes),
    )


def most_workers(*, lease_seconds: float = 6.0, worker_bytes: int = _WORKER_BYTES) -> int:
    """Return how many workers the one partition of their rows bears: its reads end first."""
    rates = calls(lease_seconds=lease_seconds)
    each = rates["bury"] + rates["sweep"] + 1 / _DEAD_SECONDS
    workers = 1
    while (workers + 1) * each * _reads((workers + 1) * worker_bytes) <= _PARTITION_READS:
        workers += 1
    return workers


def _main() -> None:
    """Print what the model says."""
    print("turns  commits  log kB  requests  writes  reads")
    for turns in (1, 2, 10, 100, 1000):
        shape, cost = paper_shape(turns), run_cost(paper_shape(turns))
        log, requests = sum(each.bytes for each in shape) / 1e3, sum(cost.requests.values())
        print(turns, len(shape), f"{log:.1f} {requests:g} {cost.writes:g} {cost.reads:g}")
    print("\nidle workers  requests/s  writes/s  reads/s")
    for workers in (1, 2, 4, 16, 64, 128):
        cost = idle(workers)
        print(workers, f"{sum(cost.requests.values()):.1f} {cost.writes:g} {cost.reads:.1f}")
    print(f"\nat most {most_workers()} workers; Runs a second:")
    for shards in (1, 4, 16, 64):
        print(f"{shards} shards", ends(shards))


if __name__ == "__main__":
    _main()
