"""One commit through the store's port, beside one bare row with the same driver.

A step is a change of a Run: a record in its log and a head that moves, judged by fence and head.
One caller, one commit at a time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, NamedTuple

from psych_runtime import Store, open_store
from psych_runtime.store.contract._build import admission, change, sealed, unit, write
from tests.bench import bare
from tests.bench.dynamodb_server import dynamodb_place
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn_async
from tests.bench.servers import mysql_database, postgresql_database
from tests.bench.sizes import Sizes

__all__ = ["measure"]


class _Place(NamedTuple):
    """The same server for ours and for the driver alone."""

    store: Store
    insert: bare.Insert


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return a line for each store that keeps its records."""
    return [await _line(id, beside, opening, sizes, guard) for id, beside, opening in _PLACES]


async def _line(id: str, beside: str, opening: "_Opening", sizes: Sizes, guard: Guard) -> Line:
    async with opening() as (store, insert):
        run_id, heads = await admission(store), count(1)
        text = sealed(run_id, 1).row.body

        async def hand() -> float:
            return await _milliseconds(insert, [text] * sizes.steps)

        async def ours() -> float:
            units = [unit(change(run_id, next(heads))) for _ in range(sizes.steps)]
            return await _milliseconds(partial(write, store), units)

        bare_rows, we = await in_turn_async(guard, sizes.step_rounds, hand, ours)
    return Line(
        id=f"{id}_step",
        title="a commit of one record",
        unit="ms",
        beside=beside,
        ours=we,
        yardstick=bare_rows,
        bound=2.0,
    )


async def _milliseconds[T](act: Callable[[T], Awaitable[object]], what: Sequence[T]) -> float:
    begun = perf_counter()
    for one in what:
        await act(one)
    return (perf_counter() - begun) / len(what) * 1e3


@asynccontextmanager
async def _ready(url: str, prefix: str = "") -> AsyncIterator[Store]:
    async with open_store(url, prefix=prefix) as store:
        await store.migrate()
        yield store


@asynccontextmanager
async def _on_sqlite() -> AsyncIterator[_Place]:
    with TemporaryDirectory(prefix="psych-bench-") as folder:
        async with (
            bare.sqlite_insert(Path(folder) / "bare.db") as insert,
            _ready(f"sqlite:///{folder}/ours.db") as store,
        ):
            yield _Place(store, insert)


@asynccontextmanager
async def _on_postgresql(server: str) -> AsyncIterator[_Place]:
    async with (
        postgresql_database(server) as url,
        bare.postgresql_insert(url) as insert,
        _ready(url) as store,
    ):
        yield _Place(store, insert)


@asynccontextmanager
async def _on_mysql(server: str) -> AsyncIterator[_Place]:
    async with (
        mysql_database(server) as url,
        bare.mysql_insert(url) as insert,
        _ready(url) as store,
    ):
        yield _Place(store, insert)


@asynccontextmanager
async def _on_dynamodb() -> AsyncIterator[_Place]:
    async with (
        dynamodb_place() as place,
        bare.dynamodb_insert(place) as insert,
        _ready(place.url, place.prefix) as store,
    ):
        yield _Place(store, insert)


type _Opening = Callable[[], AbstractAsyncContextManager[_Place]]

_INSERT: Final = "an insert and its commit"
_PLACES: Final[Sequence[tuple[str, str, _Opening]]] = (
    ("sqlite", f"{_INSERT}, SQLite", _on_sqlite),
    ("postgresql", f"{_INSERT}, PostgreSQL", partial(_on_postgresql, "postgres")),
    ("postgresql_18", f"{_INSERT}, PostgreSQL 18", partial(_on_postgresql, "postgres_new")),
    ("mysql", f"{_INSERT}, MySQL", partial(_on_mysql, "mysql")),
    ("mariadb", f"{_INSERT}, MariaDB", partial(_on_mysql, "mariadb")),
    ("dynamodb", "a transaction of two items", _on_dynamodb),
)
