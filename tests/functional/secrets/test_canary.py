"""What searches for a canary finds it wherever it was planted, in every form (SEC-2).

A search that finds nothing anywhere would let every other test of SEC-2 pass.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import aioboto3
import pytest

from psych_runtime import wait
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from psych_runtime.testing import FakeModel
from tests.canary import (
    CANARY,
    Finding,
    Logs,
    forms,
    in_bytes,
    in_dynamodb,
    in_error,
    in_folder,
    in_logs,
    in_mysql,
    in_object,
    in_postgresql,
    in_sqlite,
    in_texts,
)
from tests.functional.engine.harness import ACME, BOUND_SECONDS, Crew, admit, agent, runtime
from tests.stores.dynamo import dynamo_place
from tests.stores.tables import MysqlTables, SqlTables

FORMS: Final = forms(CANARY)

NESTED: Final[tuple[Callable[[bytes], object], ...]] = (
    lambda form: {"S": form.decode()},
    lambda form: {"B": form},
    lambda form: {"L": [{"M": {"a": {"S": form.decode()}}}]},
    lambda form: {"M": {form.decode(): {"N": "1"}}},
    lambda form: {"SS": ["a", form.decode()]},
    lambda form: {"BS": [form]},
)
"""How an item may hold a value."""


async def search(tables: SqlTables, *, prefix: str | None = None) -> list[Finding]:
    """Search the tables of one test on a server."""
    wanted = tables.prefix if prefix is None else prefix
    if isinstance(tables, MysqlTables):
        return await in_mysql(tables.url, CANARY, prefix=wanted)
    return await in_postgresql(tables.url, CANARY, prefix=wanted)


def test_sec_2_each_form_is_found_in_bytes_among_others() -> None:
    """And one that is not there is not."""
    for name, form in FORMS.items():
        found = in_bytes(b"\xff\x00before" + form + b"after\xff", CANARY, where="here")
        assert Finding("here", name) in found
        assert in_bytes(b"before" + form[:5] + b"after", CANARY, where="here") == []


def test_sec_2_no_two_forms_are_the_same() -> None:
    """A canary whose forms were alike would prove less; base64 for URLs may be alike in places."""
    assert len({form for name, form in FORMS.items() if "URLs" not in name}) == len(FORMS) - 3
    assert all(len(form) >= 6 for form in FORMS.values())


@pytest.mark.parametrize("name", sorted(FORMS))
def test_sec_2_each_form_is_found_in_sqlite(tmp_path: Path, name: str) -> None:
    """As text and as bytes, in a table nobody thought of, across pages, deleted, in the log."""
    text, data = FORMS[name].decode(), FORMS[name]
    for number, value in enumerate((text, data, "x" * 4090 + text, b"\xff" * 4090 + data)):
        file = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(file)) as database:
            database.execute('CREATE TABLE "odd _table" (a, b)')
            database.execute('INSERT INTO "odd _table" VALUES (1, ?)', (value,))
            database.commit()
        assert name in {finding.form for finding in in_sqlite(file, CANARY)}

    file = tmp_path / "deleted.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (?)", (text,))
        database.commit()
        database.execute("DELETE FROM t")
        database.commit()
        assert any(finding.form == name for finding in in_sqlite(file, CANARY))


def test_sec_2_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    """An empty database, an empty folder, no logs."""
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database:
        database.execute("CREATE TABLE t (a)")
    assert in_sqlite(tmp_path / "runs.db", CANARY) == []
    assert in_folder(tmp_path, CANARY) == []
    assert in_logs([], CANARY) == []
    assert in_texts({"a": "b"}, CANARY) == []


@pytest.mark.parametrize("name", sorted(FORMS))
def test_sec_2_each_form_is_found_in_folders_and_logs(tmp_path: Path, name: str) -> None:
    """In a hidden file below, in a file's name; in a line, an argument, a traceback, an extra."""
    (tmp_path / ".deep" / "er").mkdir(parents=True)
    (tmp_path / ".deep" / "er" / "blob").write_bytes(b"\x00" * 100 + FORMS[name])
    assert Finding(".deep/er/blob", name) in in_folder(tmp_path, CANARY)

    form = FORMS[name].decode()
    logger = logging.getLogger("psych.canary")
    for number in range(4):
        with Logs() as logs:
            match number:
                case 0:
                    logger.debug("it is %s.", form)
                case 1:
                    logger.info("it", extra={"token": form})
                case 2:
                    logger.debug("x", exc_info=ValueError(form))
                case _:
                    logger.debug("%s", {"a": [form]})
        assert name in {finding.form for finding in in_logs(logs.records, CANARY)}


def test_sec_2_a_logger_with_a_level_of_its_own_is_heard() -> None:
    """And has it again afterwards."""
    logger = logging.getLogger("psych.canary.quiet")
    logger.setLevel(logging.ERROR)
    with Logs() as logs:
        logger.debug(CANARY)
    assert "plain" in {finding.form for finding in in_logs(logs.records, CANARY)}
    assert logger.level == logging.ERROR


@pytest.mark.parametrize("name", sorted(FORMS))
async def test_sec_2_each_form_is_found_in_an_object(name: str) -> None:
    """In a value, a key, or bytes, of what a store in memory holds."""
    form = FORMS[name].decode()
    async with MemoryStore() as store:
        assert in_object(store, CANARY, where="here") == []
        await store.put_value("acme", "kind", "key", form, expect=None)
        assert Finding("here", name) in in_object(store, CANARY, where="here")
    assert Finding("here", name) in in_object({form: 1}, CANARY, where="here")
    assert Finding("here", name) in in_object([{1: (FORMS[name],)}], CANARY, where="here")


def test_sec_2_an_error_is_searched_with_its_cause_and_all_it_carries() -> None:
    """A traceback shows the causes; a debugger what is beside the text."""
    try:
        try:
            raise LookupError(CANARY)
        except LookupError as error:
            raise ValueError("no") from error
    except ValueError as error:
        found = in_error(error, CANARY, where="error")
    assert "plain" in {finding.form for finding in found}
    carrying = UnicodeError("no")
    carrying.add_note(CANARY)
    assert "plain" in {one.form for one in in_error(carrying, CANARY, where="error")}
    assert in_error(UnicodeError("no"), CANARY, where="error") == []


def test_sec_2_a_file_s_name_is_searched(tmp_path: Path) -> None:
    """A blob's key could have it."""
    (tmp_path / f"x{CANARY.encode().hex()}").touch()
    assert [finding.form for finding in in_folder(tmp_path, CANARY)] == ["hex"]


async def test_sec_2_every_form_is_found_on_a_server(server_tables: SqlTables) -> None:
    """In texts, and in bytes; in no other tables than those asked for."""
    prefix = f"canary{server_tables.prefix}"
    is_mysql = isinstance(server_tables, MysqlTables)
    table = f'"{prefix}odd"'
    kind, literal = ("BLOB", "X'{}'") if is_mysql else ("BYTEA", "'\\x{}'")
    texts, data = [], []
    for number, form in enumerate(FORMS.values()):
        text = form.decode().replace("\\", "\\\\" if is_mysql else "\\").replace("'", "''")
        texts.append(f"INSERT INTO {table} VALUES ({number}, '{text}', {literal.format('00')})")
        data.append(f"INSERT INTO {table} VALUES ({number}, '', {literal.format(form.hex())})")
    await server_tables.empty()
    await server_tables.execute(
        [f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (n INT, t TEXT, b {kind})"]
    )
    try:
        assert await search(server_tables, prefix=prefix) == []
        for rows in (texts, data):
            await server_tables.execute([f"DELETE FROM {table}", *rows])
            assert set(await search(server_tables, prefix=prefix)) == {
                Finding(f"{prefix}odd", name) for name in FORMS
            }
        assert await search(server_tables) == []
    finally:
        await server_tables.execute([f"DROP TABLE {table}"])
    with pytest.raises(LookupError, match="no table begins with"):
        await search(server_tables, prefix="no_such_")


async def test_sec_2_every_form_is_found_in_dynamodb() -> None:
    """In texts, bytes, lists, maps, sets and names of attributes."""
    url, prefix = dynamo_place()
    address = url.partition("endpoint_url=")[2]
    async with aioboto3.Session(region_name="us-east-1").client(
        "dynamodb", endpoint_url=address
    ) as client:
        await client.create_table(
            TableName=f"{prefix}odd",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        try:
            assert await in_dynamodb(address, CANARY, prefix=prefix) == []
            for make in NESTED:
                for number, form in enumerate(FORMS.values()):
                    item = {"k": {"S": str(number)}, "v": make(form)}
                    await client.put_item(TableName=f"{prefix}odd", Item=item)
                assert set(await in_dynamodb(address, CANARY, prefix=prefix)) == {
                    Finding(f"{prefix}odd", name) for name in FORMS
                }
        finally:
            await client.delete_table(TableName=f"{prefix}odd")


async def leaky() -> str:
    """Raise what a tool of the consumer may raise: nobody knows that it holds a secret."""
    raise RuntimeError(f"the server refused {CANARY}")


async def leak(store: Store, crew: Crew) -> None:
    """Let a Run end in which a code tool raised the canary."""
    model = FakeModel().turn(tool_calls=[("leaky", {})]).turn(text="Sorry.")
    await crew.start(runtime(store, model, leaky))
    run_id = await admit(store, agent("leaky"))
    await wait(store, run_id, scope=ACME, timeout_seconds=BOUND_SECONDS)
    await crew.close()


async def test_sec_2_what_a_code_tool_raised_is_found_in_sqlite(tmp_path: Path) -> None:
    """What the runtime cannot know to be a secret is kept, and the search sees it."""
    file = tmp_path / "runs.db"
    async with open_store(f"sqlite:///{file}") as store:
        await store.migrate()
        assert in_sqlite(file, CANARY) == []
        await leak(store, Crew())
        assert {"json", "longest word"} <= {one.form for one in in_sqlite(file, CANARY)}
    assert in_sqlite(file, CANARY) != []


@pytest.mark.servers("postgresql", "mysql")
async def test_sec_2_what_a_code_tool_raised_is_found_on_a_server(sql_tables: SqlTables) -> None:
    """In the table of the log."""
    async with sql_tables.open() as store:
        assert await search(sql_tables) == []
        await leak(store, Crew())
    found = await search(sql_tables)
    assert {"longest word"} <= {one.form for one in found}
    assert {one.where for one in found} == {f"{sql_tables.prefix}record"}


async def test_sec_2_a_blob_is_found_in_its_folder(tmp_path: Path) -> None:
    """Blobs are kept as they are."""
    async with FileBlobStore(tmp_path) as blobs:
        await blobs.put("acme", f"run_{'0' * 26}", CANARY.encode(), media_type="text/plain")
    assert "plain" in {finding.form for finding in in_folder(tmp_path, CANARY)}
