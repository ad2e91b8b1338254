"""The tables: every dialect's end state, applied to a real SQLite, and how a prefix goes on."""

import re
import sqlite3
from collections.abc import Iterator

import pytest
from sqlalchemy import Dialect, Index, Table
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.schema import CreateTable

from psych_schema.tables import PARTIAL, WHOLE, metadata, tables
from tests.codegen.trees import GENERATED

NAMES = ("run", "record", "version", "document", "key", "thread", "worker", "cap", "kv")
MYSQL: type[Dialect] = mysql.dialect
POSTGRESQL: type[Dialect] = postgresql.dialect
AT = "2026-11-29T20:00:00.000000Z"
RUN_ROW: dict[str, object] = {
    "tenant": "acme",
    "run_id": "run_1",
    "version": "v",
    "state": "ready",
    "head": 1,
    "head_hash": "h",
    "head_at": AT,
    "epoch": 0,
    "crashes": 0,
    "priority": 0,
    "schema_version": 1,
    "thread": "run_1",
    "position": 1,
    "root": "run_1",
    "referenced": 0,
    "created_at": AT,
    "open": "{}",
    "capped": 0,
}


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    """A SQLite database with the generated end state."""
    connection = sqlite3.connect(":memory:")
    connection.executescript((GENERATED / "sql/sqlite.sql").read_text(encoding="utf-8"))
    yield connection
    connection.close()


def insert(database: sqlite3.Connection, table: str, row: dict[str, object]) -> None:
    """Insert one row."""
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" for _ in row)
    database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(row.values()))


def test_there_is_one_attribute_per_table() -> None:
    """Names are those of the schema, in its order."""
    assert tables()._fields == NAMES
    assert [table.name for table in tables()] == list(NAMES)
    assert sorted(metadata().tables) == sorted(NAMES)


def test_a_prefix_goes_before_tables_constraints_and_indexes() -> None:
    """Two installations can share a database."""
    ours = tables("psych_")
    assert [table.name for table in ours] == [f"psych_{name}" for name in NAMES]
    assert {str(index.name)[:6] for table in ours for index in table.indexes} == {"psych_"}
    text = str(CreateTable(ours.run).compile(dialect=POSTGRESQL()))
    assert "CONSTRAINT psych_run_pkey PRIMARY KEY (run_id)" in text
    assert "CONSTRAINT psych_run_state_check CHECK (state IN ('ready', 'running'" in text
    assert tables().run.name == "run"


def test_every_sqlite_table_is_strict(database: sqlite3.Connection) -> None:
    """A wrong type is an error, not a guess."""
    strict = {row[1]: row[5] for row in database.execute("PRAGMA table_list") if row[1] in NAMES}
    assert strict == dict.fromkeys(NAMES, 1)


def test_only_tables_with_long_text_keep_a_rowid(database: sqlite3.Connection) -> None:
    """Small rows lie in their key's tree."""
    without = {row[1] for row in database.execute("PRAGMA table_list") if row[4] == 1}
    assert without & set(NAMES) == {"thread", "cap"}


def test_a_wrong_type_is_refused(database: sqlite3.Connection) -> None:
    """Text in a number's column does not get in."""
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT value in INTEGER column"):
        insert(database, "run", {**RUN_ROW, "head": "one"})


@pytest.mark.parametrize(
    ("column", "value"), [("state", "asleep"), ("abort", "maybe"), ("state", "READY")]
)
def test_a_value_outside_the_enum_is_refused(
    database: sqlite3.Connection, column: str, value: str
) -> None:
    """The CHECK comes from the schema's enum."""
    with pytest.raises(sqlite3.IntegrityError, match=f"run_{column}_check"):
        insert(database, "run", {**RUN_ROW, column: value})


@pytest.mark.parametrize("state", ["ready", "running", "suspended", "settled", "corrupt"])
def test_each_value_of_the_enum_is_taken(database: sqlite3.Connection, state: str) -> None:
    """And null where the schema allows it: abort, worker and the instants are absent here."""
    insert(database, "run", {**RUN_ROW, "state": state})
    assert database.execute("SELECT state, abort FROM run").fetchone() == (state, None)


def test_a_record_has_one_place(database: sqlite3.Connection) -> None:
    """LOG-1: (run, seq) is unique, whatever else differs."""
    row: dict[str, object] = {"run_id": "run_1", "seq": 1, "tenant": "a", "type": "t", "body": "{}"}
    insert(database, "record", row)
    insert(database, "record", {**row, "seq": 2})
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
        insert(database, "record", {**row, "tenant": "b", "body": "[]"})


def test_keys_of_two_tenants_do_not_meet(database: sqlite3.Connection) -> None:
    """Keys compare byte by byte: case and padding count."""
    row: dict[str, object] = {"run_id": "", "key": "k", "digest": "d", "receipt": "{}"}
    for tenant, key in (("acme", "k"), ("acme ", "k"), ("Acme", "k"), ("acme", "K")):
        insert(database, "key", {**row, "tenant": tenant, "key": key})
    with pytest.raises(sqlite3.IntegrityError):
        insert(database, "key", {**row, "tenant": "acme"})


def test_claims_are_found_by_index(database: sqlite3.Connection) -> None:
    """What the index's condition says is what a claim asks for."""
    plan = database.execute(
        "EXPLAIN QUERY PLAN SELECT run_id FROM run WHERE state = 'ready'"
        " AND state IN ('ready', 'suspended') AND tenant = 'acme'"
        " ORDER BY priority DESC, wake_at, created_at"
    ).fetchall()
    assert [row[3] for row in plan] == ["SEARCH run USING INDEX run_claim (state=? AND tenant=?)"]


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ("worker = 'wrk_1' AND state = 'running'", "run_worker (worker=?)"),
        ("state IN ('ready', 'running', 'suspended') AND deadline_at <= 'x'", "run_due"),
        ("state IN ('ready', 'running', 'suspended') AND abort IS NOT NULL", "run_abort"),
        ("root = 'run_1' AND parent IS NOT NULL", "run_root (root=?)"),
    ],
)
def test_what_few_rows_have_is_found_by_an_index_of_these(
    database: sqlite3.Connection, asked: str, index: str
) -> None:
    """Both parts of a condition are in the index's, and a comparison says that there is a value."""
    found = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM run WHERE {asked}").fetchall()
    assert [row[3][: 23 + len(index)] for row in found] == [f"SEARCH run USING INDEX {index}"]


def test_postgresql_leaves_room_in_pages_of_headers() -> None:
    """For the next version of each; no other table is changed as often, no other database asks."""
    text = (GENERATED / "sql/postgresql.sql").read_text(encoding="utf-8")
    assert re.findall(r"CREATE TABLE (\w+) \([^;]*fillfactor = 50\);", text) == ["run"]
    for name in ("mysql", "sqlite"):
        assert "fillfactor" not in (GENERATED / f"sql/{name}.sql").read_text(encoding="utf-8")


def test_postgresql_compares_bytes_and_keeps_microseconds() -> None:
    """Ids, tenants and keys sort as bytes do; instants carry their zone."""
    text = (GENERATED / "sql/postgresql.sql").read_text(encoding="utf-8")
    assert '\ttenant VARCHAR(128) COLLATE "C" NOT NULL,\n' in text
    assert "\thead_at TIMESTAMP(6) WITH TIME ZONE NOT NULL,\n" in text
    assert "\thead BIGINT NOT NULL,\n" in text
    assert "\tbody TEXT NOT NULL,\n" in text
    assert "ON run (state, tenant, priority DESC, wake_at, created_at) WHERE state IN" in text
    assert "COMMENT ON TABLE thread IS 'Who stands where in a thread.';" in text


def test_mysql_compares_bytes_without_padding() -> None:
    """`acme` is not `acme `; ids are ASCII; text is never cut at 64 KB."""
    text = (GENERATED / "sql/mysql.sql").read_text(encoding="utf-8")
    assert "\ttenant VARCHAR(128) COLLATE utf8mb4_0900_bin NOT NULL,\n" in text
    assert "\trun_id VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,\n" in text
    assert "\thead_at DATETIME(6) NOT NULL,\n" in text
    assert "\tbody LONGTEXT NOT NULL,\n" in text
    assert "ENGINE=InnoDB" in text
    assert "\topen LONGTEXT NOT NULL,\n" in text  # MySQL's JSON would reorder it


def test_mysql_puts_the_condition_first_where_it_has_no_partial_index() -> None:
    """Settled Runs are then behind the ones that a claim reads."""
    text = (GENERATED / "sql/mysql.sql").read_text(encoding="utf-8")
    assert "run_claim ON run (state, tenant, priority DESC, wake_at, created_at);" in text
    assert "run_due ON run (state, deadline_at);" in text
    assert "run_abort ON run (state, abort);" in text
    assert "WHERE" not in text


def test_mysql_leaves_columns_out_that_are_only_not_null() -> None:
    """Whoever looks for a root knows no parent."""
    text = (GENERATED / "sql/mysql.sql").read_text(encoding="utf-8")
    assert "run_root ON run (root);" in text
    assert "run_worker ON run (worker);" in text


def test_mariadb_has_its_own_name_for_the_collation() -> None:
    """MySQL's is unknown there."""
    text = str(CreateTable(tables().thread).compile(dialect=MYSQL()))
    assert "utf8mb4_0900_bin" in text  # the dialect of a mysql:// address keeps MySQL's types
    native = tables().thread.c.tenant.type.dialect_impl(_mariadb())
    assert "utf8mb4_nopad_bin" in str(native.compile(dialect=_mariadb()))


def _mariadb() -> Dialect:
    dialect = MYSQL()
    dialect.name = "mariadb"
    return dialect


def test_no_key_of_mysql_is_too_long() -> None:
    """InnoDB takes 3072 bytes; a character of utf8mb4 takes four."""
    for table in tables():
        assert _bytes(table, [column.name for column in table.primary_key.columns]) <= 3072
        for index in table.indexes:
            if index.info.get("dialects", WHOLE) == WHOLE:
                assert _bytes(table, [column.name for column in index.columns]) <= 3072


def _bytes(table: Table, columns: list[str]) -> int:
    lengths = (getattr(table.c[name].type, "length", None) or 2 for name in columns)
    return sum(4 * length for length in lengths)


def test_a_partial_index_has_a_twin_for_mysql() -> None:
    """Each name is there once for each family of dialects."""
    twins: dict[str, set[tuple[str, ...]]] = {}
    for index in tables().run.indexes:
        if "dialects" in index.info:
            twins.setdefault(_index_name(index), set()).add(index.info["dialects"])
    assert twins == {
        "run_abort": {PARTIAL, WHOLE},
        "run_claim": {PARTIAL, WHOLE},
        "run_due": {PARTIAL, WHOLE},
        "run_root": {PARTIAL, WHOLE},
        "run_worker": {PARTIAL, WHOLE},
    }


def _index_name(index: Index) -> str:
    return str(index.name)
