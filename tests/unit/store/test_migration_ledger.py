"""Which migrations are left, and which ledgers are refused (ST-4)."""

import pytest

from psych_runtime.errors import SchemaMissing, UnsupportedStore
from psych_runtime.store.migrations import (
    Applied,
    Migration,
    check_current,
    missing,
    shipped,
    statements,
)

BUILD = (Migration(1, "initial", "one"), Migration(2, "second", "two"))
FIRST, SECOND = (Applied(each.number, each.name, each.sha256) for each in BUILD)


def test_st_4_what_is_not_in_the_ledger_is_left() -> None:
    """In order."""
    assert missing(BUILD, [], "x") == BUILD
    assert missing(BUILD, [FIRST], "x") == BUILD[1:]
    assert missing(BUILD, [SECOND, FIRST], "x") == ()


@pytest.mark.parametrize(
    ("applied", "words"),
    [
        (
            [FIRST, SECOND, Applied(3, "third", "f")],
            r"x is at migration 3 \(third\), this build knows 2",
        ),
        ([Applied(1, "initial", "f"), SECOND], r"migration 1 \(initial\) is not the one"),
        ([SECOND], r"x is at migration 2 \(second\)"),
    ],
)
def test_st_4_a_foreign_ledger_is_refused(applied: list[Applied], words: str) -> None:
    """A newer one, an edited one, one with a gap."""
    with pytest.raises(UnsupportedStore, match=words):
        missing(BUILD, applied, "x")
    with pytest.raises(UnsupportedStore, match=words):
        check_current(BUILD, applied, "x")


def test_st_4_older_tables_say_migrate_first() -> None:
    """So do no tables; current ones pass."""
    with pytest.raises(SchemaMissing, match="x has no tables of psych-runtime"):
        check_current(BUILD, None, "x")
    with pytest.raises(SchemaMissing, match="x is at migration 1, this build needs 2"):
        check_current(BUILD, [FIRST], "x")
    check_current(BUILD, [FIRST, SECOND], "x")


def test_st_4_a_script_is_split_at_line_ends() -> None:
    """A semicolon inside a line does not end a statement; the prefix is put in."""
    script = """-- a comment; here
CREATE TABLE "{prefix}a" (
b TEXT DEFAULT ';x'
);

DROP TABLE c;
"""
    assert statements(script, "p_") == [
        """CREATE TABLE "p_a" (\nb TEXT DEFAULT ';x'\n)""",
        "DROP TABLE c",
    ]


def test_st_4_shipped_migrations_are_numbered_from_one() -> None:
    """They are in the package, where an installed wheel has them."""
    found = shipped("sqlite")
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    assert found[0].name == "initial"
