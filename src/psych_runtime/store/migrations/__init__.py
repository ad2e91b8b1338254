"""Numbered SQL files that bring a database to this build's tables, and a ledger of them (ST-4).

Files are named NNNN_name.sql in a folder per dialect, and never change once released: the
ledger keeps the hash of each that was applied. `{prefix}` in them stands for the tables' prefix.
Adapters run them under a lock; nothing migrates by itself.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from psych_runtime.errors import SchemaMissing, UnsupportedStore

__all__ = ["LEDGER", "Applied", "Migration", "check_current", "missing", "shipped", "statements"]

LEDGER: Final = "psych_migration"
"""Name of the ledger's table, behind the prefix."""

_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class Migration(NamedTuple):
    """A file of SQL."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        """What the ledger remembers of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class Applied(NamedTuple):
    """A row of the ledger."""

    number: int
    name: str
    sha256: str


@cache
def shipped(dialect: str) -> tuple[Migration, ...]:
    """Return this build's migrations of a dialect, in order."""
    found: list[Migration] = []
    for entry in files(__name__).joinpath(dialect).iterdir():
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            found.append(Migration(int(match[1]), match[2], entry.read_text("utf-8")))
    found.sort()
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations of {dialect} are not numbered 1, 2, 3, ...")
    return tuple(found)


def missing(
    build: Sequence[Migration], applied: Iterable[Applied], where: str
) -> Sequence[Migration]:
    """Return what is left to apply. UnsupportedStore: another or a newer build was here."""
    count = 0
    for count, row in enumerate(sorted(applied), 1):
        if row.number != count or count > len(build):
            raise UnsupportedStore(
                problem=f"{where} is at migration {row.number} ({row.name}), "
                f"this build knows {len(build)}",
                remedy="upgrade psych-runtime to the build that migrated it",
            )
        if row.sha256 != build[count - 1].sha256:
            raise UnsupportedStore(
                problem=f"migration {row.number} ({row.name}) is not the one applied to {where}",
                remedy="install psych-runtime as released; released migrations are never edited",
            )
    return build[count:]


def check_current(
    build: Sequence[Migration], applied: Sequence[Applied] | None, where: str
) -> None:
    """Refuse a database whose tables are not this build's; None is no ledger at all.

    SchemaMissing: it is older. UnsupportedStore: it is newer, or another.
    """
    if applied is None:
        raise SchemaMissing(problem=f"{where} has no tables of psych-runtime")
    left = missing(build, applied, where)
    if left:
        raise SchemaMissing(
            problem=f"{where} is at migration {len(applied)}, this build needs {len(build)}"
        )


def statements(text: str, prefix: str) -> list[str]:
    """Return the statements of a migration, each ended by `;` at the end of a line."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    parts = "\n".join(lines).replace("{prefix}", prefix).split(";\n")
    return [part.strip().removesuffix(";") for part in parts if part.strip(" ;\n")]
