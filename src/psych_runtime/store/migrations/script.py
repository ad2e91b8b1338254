"""What `migrate` would do to an empty database, as text for whoever applies it (ST-4)."""

from collections.abc import Mapping
from typing import Final, Literal

from psych_runtime.store.migrations import LEDGER, shipped, statements

__all__ = ["COLLATIONS", "LEDGER_TABLES", "Dialect", "script"]

type Dialect = Literal["mariadb", "mysql", "postgresql", "sqlite"]

LEDGER_TABLES: Final[Mapping[str, str]] = {
    "mysql": """CREATE TABLE IF NOT EXISTS "{name}" (
	number INTEGER NOT NULL PRIMARY KEY,
	name VARCHAR(128) NOT NULL,
	sha256 CHAR(64) NOT NULL,
	applied_at DATETIME(6) NOT NULL
) ENGINE=InnoDB CHARSET=utf8mb4""",
    "postgresql": """CREATE TABLE IF NOT EXISTS "{name}" (
	number INTEGER NOT NULL PRIMARY KEY,
	name TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	applied_at TIMESTAMPTZ NOT NULL
)""",
    "sqlite": """CREATE TABLE IF NOT EXISTS "{name}" (
	number INTEGER NOT NULL PRIMARY KEY,
	name TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	applied_at TEXT NOT NULL
) STRICT""",
}
"""The ledger's table: readable before there is any other, whatever build migrated."""

COLLATIONS: Final[Mapping[str, str]] = {
    "mariadb": "utf8mb4_nopad_bin",
    "mysql": "utf8mb4_0900_bin",
}
"""The collation that compares byte by byte and pads nothing."""

_FAMILIES: Final[Mapping[Dialect, str]] = {
    "mariadb": "mysql",
    "mysql": "mysql",
    "postgresql": "postgresql",
    "sqlite": "sqlite",
}
_BEFORE: Final = {"mysql": ("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES');",)}
_APPLIED: Final = (
    'INSERT INTO "{name}" (number, name, sha256, applied_at) VALUES ({row});'  # a row of the ledger
)
_NOW: Final[Mapping[str, str]] = {
    "mysql": "UTC_TIMESTAMP(6)",
    "postgresql": "now()",
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')",
}


def script(dialect: Dialect, prefix: str) -> str:
    """Return the SQL that brings an empty database to this build's tables, its ledger included.

    A store finds such tables as if it had migrated them.
    """
    family, name = _FAMILIES[dialect], prefix + LEDGER
    parts = [*_BEFORE.get(family, ()), LEDGER_TABLES[family].format(name=name) + ";"]
    for migration in shipped(family):
        binary = COLLATIONS.get(dialect, "")
        parts += [
            one.replace("{binary}", binary) + ";" for one in statements(migration.text, prefix)
        ]
        row = f"{migration.number}, '{migration.name}', '{migration.sha256}', {_NOW[family]}"
        parts.append(_APPLIED.format(name=name, row=row))
    return "\n\n".join(parts) + "\n"
