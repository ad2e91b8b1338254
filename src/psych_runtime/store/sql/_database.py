"""What the one SQL implementation needs of a server: a few verbs, and a text for each question."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from psych_runtime.store._notices import Hint, News
from psych_runtime.store.sql._batch import Batch
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql._statement import Statements
from psych_schema.store import RunRow

__all__ = ["Claimable", "Database", "LogPart", "Param", "Scalar", "SqlOptions"]

type Scalar = str | int | float | bool | datetime | None
type Param = Scalar | Sequence[str] | Sequence[str | None] | Sequence[int]
"""What a statement is given."""


class SqlOptions(NamedTuple):
    """How a server is reached.

    Args:
        url: as the driver takes it, without the options below; it may hold a password.
        where: the same without user and password, for messages.
        prefix: before every table's name.
        pool_size: connections that one handle has at most, besides the one that listens.
        timeout_seconds: that a call may take in all; less than half of any worker's lease.
        pooled: whether a transaction pooler stands between: nothing outlives a transaction then.
    """

    url: str
    where: str
    prefix: str = ""
    pool_size: int = 8
    timeout_seconds: float = 2.5
    pooled: bool = False


class Claimable(NamedTuple):
    """What waits, each tenant's Runs in order and at most `share` of them; Runs of the dead.

    `capped`: whether a tenant has a cap.
    """

    now: datetime
    share: int
    capped: bool
    waiting: list[Row]
    orphans: list[Row]


class LogPart(NamedTuple):
    """Which records of a Run somebody asks for."""

    tenant: str
    run_id: str
    after: int
    limit: int


class Database(Protocol):
    """A server as one handle sees it, in one loop.

    Every method raises what the port says, `Again` or `Broken` (see `_failures`).
    """

    statements: Statements
    tells: bool  # whether other processes hear what is told

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        """Run one statement, or one packet, in a transaction of its own; return its rows."""

    async def commit(self, batch: Batch) -> list[Row]:
        """Judge and write a batch in one transaction; return the refusals."""

    async def read_logs(self, parts: Sequence[LogPart]) -> list[list[Row]]:
        """Return what `read_log` gives for each part, in one round trip."""

    async def claimable(self, values: Mapping[str, Param]) -> Claimable:
        """Return ready and due Runs of the next tenants behind :after, of each its share."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]
    ) -> bool:
        """Delete Runs that are as given, with all their rows, all or none."""

    async def reach(self) -> None:
        """Connect, and refuse a server that is too old."""

    async def check(self) -> None:
        """Refuse tables that are not this build's."""

    async def migrate(self) -> None:
        """Apply what is missing, one process at a time."""

    def hear(
        self,
        name: str,
        heard: Callable[[Sequence[Hint], bool], None],
        hears: Callable[[bool], None],
    ) -> None:
        """Hear what others than `name` tell, as far as the server can pass it on; repeatable.

        `heard` is given hints and whether there may be work; `hears` whether anything is heard.
        """

    async def tell(self, name: str, news: News) -> None:
        """Tell other processes what happened; it may be lost."""

    def forget_idle(self) -> None:
        """Drop idle connections: one was found dead."""

    async def close(self) -> None:
        """End every connection."""
