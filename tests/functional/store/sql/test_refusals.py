"""Servers that cannot be used: a typed error that says what to do, nothing half-written."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import quote, urlsplit

import pytest

from psych_runtime.errors import (
    InvalidPayload,
    SchemaMissing,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
)
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import TENANT, admission, admit, change, unit, write
from psych_runtime.store.open import open_store
from tests.functional.store.sql.harness import behind, through
from tests.functional.store.sql.users import as_user, is_postgresql, make_user
from tests.stores.tables import SqlTables

LOCKED_OUT = "psych_locked_out"
READER = "psych_reader"
DIRECT = pytest.mark.servers("postgresql", "postgresql_new", "mysql", "mariadb")


@DIRECT
async def test_st_3_a_wrong_password_is_denied_and_not_shown(sql_tables: SqlTables) -> None:
    """When the store is entered; the message says what to check."""
    await make_user(sql_tables, LOCKED_OUT)
    with pytest.raises(StoreDenied, match="check user and password") as caught:
        async with open_store(as_user(sql_tables, LOCKED_OUT, "wr0ng-secret")):
            raise AssertionError("it was let in")
    assert "wr0ng-secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@DIRECT
async def test_st_3_a_database_that_is_not_there(sql_tables: SqlTables) -> None:
    """It is named, and not made."""
    parts = urlsplit(sql_tables.url)
    with pytest.raises(UnsupportedStore, match=r"nowhere.*create the database"):
        async with open_store(parts._replace(path="/nowhere").geturl()):
            raise AssertionError("it was there")


async def test_st_3_a_server_that_nobody_runs(sql_tables: SqlTables) -> None:
    """Unreachable is transient: it may come up."""
    async with behind(sql_tables) as proxy:
        proxy.refuses = True
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
            async with through(proxy, sql_tables):
                raise AssertionError("somebody answered")


async def test_st_3_an_older_server_is_named_with_the_minimum(sql_tables: SqlTables) -> None:
    """What a server says of its version is made older on the way."""

    def older(piece: bytes) -> bytes:
        if is_postgresql(sql_tables):
            before, mark, after = piece.partition(b"server_version\x00")
            return before + mark + b"13" + after[2:] if mark else piece
        header, greeting = piece[:5], piece[5:]
        if not header.endswith(b"\x0a"):  # protocol 10, which only a greeting begins with
            return piece
        version, end, rest = greeting.partition(b"\x00")
        told = b"5.7.44" if b"MariaDB" not in version else b"5.5.5-10.4.1-MariaDB"
        return header + told.ljust(len(version), b" ") + end + rest

    async with behind(sql_tables) as proxy:
        proxy.rewrite = older
        with pytest.raises(UnsupportedStore, match=r"runs .*; use .*or newer"):
            async with through(proxy, sql_tables):
                raise AssertionError("it was taken")


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("told_bytes", [8_388_607, 8_388_608])
async def test_st_3_a_packet_that_holds_no_unit_is_refused_with_the_least_that_does(
    sql_tables: SqlTables, told_bytes: int
) -> None:
    """What a server says of `max_allowed_packet` is made smaller on the way."""

    def smaller(piece: bytes) -> bytes:
        before, mark, after = piece.partition(b"@@max_allowed_packet")
        size = re.search(rb"\d{7,}", after)
        if not mark or size is None:
            return piece
        told = str(told_bytes).rjust(len(size[0]), "0").encode()
        return before + mark + after[: size.start()] + told + after[size.end() :]

    enough = told_bytes == 8_388_608
    refused = pytest.raises(
        UnsupportedStore, match=r"max_allowed_packet=8388607.*set it to 8388608 or more"
    )
    async with behind(sql_tables) as proxy:
        proxy.rewrite = smaller
        with nullcontext() if enough else refused:
            async with through(proxy, sql_tables) as store:
                assert enough
                assert await store.workers() == []


async def test_st_4_tables_that_are_missing(sql_tables: SqlTables) -> None:
    """The store can be opened and migrated, and asked nothing before that."""
    prefix = f"{sql_tables.prefix}other_"
    async with open_store(sql_tables.url, prefix=prefix) as store:
        with pytest.raises(SchemaMissing, match="migrate"):
            await store.header(TENANT, "run_1")
        with pytest.raises(SchemaMissing, match="migrate"):
            await store.commit([unit(admit())])


@asynccontextmanager
async def reader_of(tables: SqlTables) -> AsyncIterator[Store]:
    """Yield a store of somebody who may read the tables and nothing else."""
    names = ("run", "record", "key", "thread", "worker", "version", "document", "cap")
    quoted = [f'"{tables.prefix}{name}"' for name in (*names, "psych_migration")]
    database = urlsplit(tables.url).path.removeprefix("/")
    if not is_postgresql(tables):
        quoted = [f'"{database}".{name}' for name in quoted]
    await make_user(tables, READER, *(f"SELECT ON {name}" for name in quoted))
    async with open_store(as_user(tables, READER, "right"), prefix=tables.prefix) as store:
        yield store


@DIRECT
async def test_st_3_a_role_without_insert_reads_and_is_told_what_to_grant(
    sql_tables: SqlTables,
) -> None:
    """Nothing is half-written; a read needs no more than SELECT."""
    async with sql_tables.open() as owner, reader_of(sql_tables) as store:
        run_id = await admission(owner)
        assert (await store.header(TENANT, run_id)).head == 1
        for refused in (
            store.commit([unit(change(run_id, 1))]),
            store.commit([unit(admit())]),
            store.enlist("wrk_1", lease_seconds=5.0, build="b", tools=()),
            store.put_version(TENANT, "0" * 64, "{}"),
        ):
            with pytest.raises(StoreDenied, match=r"grant .* SELECT, INSERT, UPDATE and"):
                await refused
        assert (await owner.header(TENANT, run_id)).head == 1
        assert len((await owner.list_runs(TENANT)).headers) == 1
        assert await owner.workers() == []


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_st_3_a_server_that_is_read_only(sql_tables: SqlTables) -> None:
    """As a standby is."""
    async with sql_tables.open() as owner:
        run_id = await admission(owner)
    url = f"{sql_tables.url}?options=-c%20default_transaction_read_only%3Don"
    async with open_store(url, prefix=sql_tables.prefix) as store:
        assert (await store.header(TENANT, run_id)).head == 1
        with pytest.raises(StoreReadOnly, match="write access"):
            await store.commit([unit(change(run_id, 1))])


async def test_st_4_two_that_migrate_at_once_take_turns(sql_tables: SqlTables) -> None:
    """Four handles, none of which finds tables: all return, and the tables are there once."""
    await sql_tables.drop()
    stores = [open_store(sql_tables.url, prefix=sql_tables.prefix) for _ in range(4)]
    try:
        await asyncio.gather(*(store.migrate() for store in stores))
        for store in stores:
            await write(store, unit(admit()))
        assert len((await stores[0].list_runs(TENANT)).headers) == len(stores)
    finally:
        for store in stores:
            await store.close()


async def test_st_4_a_newer_build_was_here(sql_tables: SqlTables) -> None:
    """Its tables are left alone, and its build is asked for."""
    row = f"99, 'later', '{'0' * 64}', CURRENT_TIMESTAMP"
    ledger = f'"{sql_tables.prefix}psych_migration" (number, name, sha256, applied_at)'
    await sql_tables.execute([f"INSERT INTO {ledger} VALUES ({row})"])
    try:
        async with sql_tables.open() as store:
            for use in (store.migrate(), store.list_runs(TENANT)):
                with pytest.raises(UnsupportedStore, match="upgrade psych-runtime"):
                    await use
    finally:
        await sql_tables.execute(
            [f'DELETE FROM "{sql_tables.prefix}psych_migration" WHERE number = 99']
        )


async def test_log_5_a_name_that_is_longer_than_its_column(sql_tables: SqlTables) -> None:
    """What a caller named too long is told so, and nothing is written."""
    async with sql_tables.open() as store:
        with pytest.raises(InvalidPayload):
            await store.put_version(TENANT, "0" * 65, "{}")
        assert await store.version(TENANT, "0" * 65) is None


def no_room(tables: SqlTables) -> list[str]:
    """Return statements by which no record fits: the server says so as it does of a full disk."""
    trigger = f'TRIGGER {tables.prefix}no_room BEFORE INSERT ON "{tables.prefix}record"'
    if not is_postgresql(tables):
        full = "SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'"
        return [f"CREATE {trigger} FOR EACH ROW SIGNAL SQLSTATE 'HY000' {full}"]
    full = "RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'"
    function, body = f"{tables.prefix}no_room()", f"BEGIN {full}; END"
    return [
        f"CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $${body}$$",
        f"CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION {function}",
    ]


async def test_st_3_a_database_without_room_writes_nothing_by_half(sql_tables: SqlTables) -> None:
    """Neither a change nor an admission leaves a trace; with room again the same units go in."""
    async with sql_tables.open() as store:
        run_id = await admission(store)
        before = await store.header(TENANT, run_id)
        units = [unit(change(run_id, 1)), unit(admit())]
        await sql_tables.execute(no_room(sql_tables))
        for one in units:
            with pytest.raises(StoreFull, match="make room"):
                await store.commit([one])
        assert await store.header(TENANT, run_id) == before
        assert len((await store.list_runs(TENANT)).headers) == 1
        await sql_tables.drop()  # the trigger goes with its table
        await store.migrate()
        await write(store, units[1])


@DIRECT
async def test_st_3_a_password_may_be_any_text(sql_tables: SqlTables) -> None:
    """Written with %XX in the URL."""
    user = f"psych_odd_{sql_tables.prefix.strip('_')}"
    password = "p@ss:w/rd#1 ü€\U0001f600"
    if is_postgresql(sql_tables):
        await sql_tables.execute([f"CREATE ROLE {user} LOGIN PASSWORD '{password}'"])
        dropped = f"DROP ROLE {user}"
    else:
        name = urlsplit(sql_tables.url).path.removeprefix("/")
        await sql_tables.execute(
            [
                f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'",
                f"GRANT SELECT ON \"{name}\".* TO '{user}'@'%'",
            ]
        )
        dropped = f"DROP USER '{user}'@'%'"
    try:
        url = as_user(sql_tables, user, quote(password, safe=""))
        async with open_store(url, prefix=f"{sql_tables.prefix}other_") as store:
            with pytest.raises(SchemaMissing):
                await store.workers()
    finally:
        await sql_tables.execute([dropped])
