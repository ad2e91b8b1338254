"""What the errors of MySQL and MariaDB mean here; whatever is not named is a bug and passes."""

from collections.abc import Mapping
from typing import Final, Literal

from psych_runtime.errors import (
    InvalidPayload,
    SchemaMissing,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
)
from psych_runtime.store.sql._failures import Again, Broken

__all__ = ["number_of", "translate"]

type _Kind = Literal[
    "again", "away", "broken", "database", "denied", "full", "password", "read_only", "schema",
    "text",
]  # fmt: skip

_KINDS: Final[Mapping[int, _Kind]] = {
    1020: "again",  # MariaDB: the row has changed since it was read
    1062: "again",  # a row came in between
    1205: "again",
    1213: "again",
    1021: "full",
    1114: "full",
    1037: "away",
    1038: "away",
    1040: "away",
    1041: "away",
    1203: "away",
    1226: "away",
    1317: "away",
    1969: "away",
    3024: "away",
    1053: "broken",
    1077: "broken",
    1079: "broken",
    1152: "broken",
    1158: "broken",
    1159: "broken",
    1160: "broken",
    1161: "broken",
    1184: "broken",
    1927: "broken",
    2002: "broken",
    2003: "broken",
    2006: "broken",
    2013: "broken",
    2014: "broken",
    2055: "broken",
    3169: "broken",
    4031: "broken",
    1044: "denied",  # user and password are right
    1045: "password",
    1130: "password",
    1251: "password",
    1698: "password",
    3118: "password",
    1142: "denied",
    1143: "denied",
    1227: "denied",
    1370: "denied",
    1049: "database",
    1054: "schema",
    1146: "schema",
    1290: "read_only",
    1792: "read_only",
    1836: "read_only",
    1153: "text",
    1300: "text",
    1366: "text",
    1406: "text",
}


def number_of(error: BaseException) -> int:
    """Return the server's or client's number of an error, 0 for none."""
    number: object = error.args[0] if error.args else None
    return number if isinstance(number, int) else 0


def translate(error: Exception, where: str) -> Exception:
    """Return what the port says for `error`, or `error` itself."""
    words: object = error.args[1] if len(error.args) > 1 else error
    problem = f"{where}: {words}"
    match _KINDS.get(number_of(error)):
        case "again":
            return Again(problem)
        case "away":
            return StoreUnavailable(problem=problem)
        case "broken":
            return Broken(problem)
        case "full":
            return StoreFull(problem=problem)
        case "password":
            return StoreDenied(problem=problem, remedy="check user and password of the URL")
        case "denied":
            return StoreDenied(
                problem=problem,
                remedy="grant the user SELECT, INSERT, UPDATE and DELETE on the tables; "
                "to migrate, CREATE too",
            )
        case "database":
            return UnsupportedStore(problem=problem, remedy="create the database, or name another")
        case "schema":
            return SchemaMissing(problem=problem)
        case "read_only":
            return StoreReadOnly(problem=problem)
        case "text":
            return InvalidPayload(what="a name or text", problem=problem)
        case _:
            return _client(error, problem)


def _client(error: Exception, problem: str) -> Exception:
    """Tell a connection that is gone from a wrong call of the driver."""
    gone = isinstance(error, OSError | EOFError) or type(error).__name__ == "InterfaceError"
    return Broken(problem) if gone else error
