"""Small words of the SQL stores' statements.

States stand in the text, not in parameters: only then does a database see that a partial index
covers the query.
"""

from typing import Final

from sqlalchemy import ColumnElement, Select, literal_column

__all__ = ["NO", "OPEN_STATES", "WAITING_STATES", "YES", "first", "limited", "word", "words"]

OPEN_STATES: Final = ("ready", "running", "suspended")
WAITING_STATES: Final = ("ready", "suspended")

NO: Final[ColumnElement[bool]] = literal_column("0")
YES: Final[ColumnElement[bool]] = literal_column("1")


def word(text: str) -> ColumnElement[str]:
    """Return `text`, one of our own words, as a literal."""
    return literal_column(f"'{text}'")


def words(texts: tuple[str, ...]) -> list[ColumnElement[str]]:
    """Return several words as literals."""
    return [word(text) for text in texts]


def first[T](statement: Select[T]) -> Select[T]:
    """Return `statement` for its first row only."""
    return limited(statement, literal_column("1"))


def limited[T](statement: Select[T], limit: ColumnElement[int]) -> Select[T]:
    """Return `statement` for its first rows."""
    return statement.limit(limit).offset(literal_column("0"))
