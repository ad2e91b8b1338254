"""What PostgreSQL's errors mean here, in one place; whatever is not named is a bug and passes."""

import asyncpg

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

__all__ = ["DRIVER_ERRORS", "leaves_usable", "translate"]

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""Whatever the driver raises by itself."""

_BROKEN = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
)
_AWAY = (
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.OutOfMemoryError,
)
_TEXT = (
    asyncpg.CharacterNotInRepertoireError,
    asyncpg.UntranslatableCharacterError,
    asyncpg.StringDataRightTruncationError,
    asyncpg.ProgramLimitExceededError,
)


def leaves_usable(error: BaseException) -> bool:
    """Tell whether a connection in autocommit is as before: the server refused a statement."""
    return isinstance(error, asyncpg.PostgresError) and not isinstance(error, _BROKEN)


def translate(error: Exception, where: str) -> Exception:
    """Return what the port says for `error`, or `error` itself."""
    problem = f"{where}: {error}"
    match error:
        case asyncpg.UniqueViolationError() | asyncpg.SerializationError():
            return Again(problem)
        case asyncpg.DeadlockDetectedError():
            return Again(problem)
        case asyncpg.InvalidAuthorizationSpecificationError():
            return StoreDenied(problem=problem, remedy="check user and password of the URL")
        case asyncpg.InsufficientPrivilegeError():
            return StoreDenied(
                problem=problem,
                remedy="grant the role SELECT, INSERT, UPDATE and DELETE on the tables; "
                "to migrate, CREATE too",
            )
        case asyncpg.InvalidCatalogNameError():
            return UnsupportedStore(problem=problem, remedy="create the database, or name another")
        case (
            asyncpg.ClientConfigurationError()
            | asyncpg.UndefinedObjectError()
            | asyncpg.InvalidSchemaNameError()
            | asyncpg.InvalidParameterValueError()
        ):
            return UnsupportedStore(problem=problem, remedy="check the options of the URL")
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return SchemaMissing(problem=problem)
        case asyncpg.DiskFullError():
            return StoreFull(problem=problem)
        case asyncpg.ReadOnlySQLTransactionError():
            return StoreReadOnly(problem=problem)
        case _ if isinstance(error, _TEXT):
            return InvalidPayload(what="a name or text", problem=problem)
        case _ if isinstance(error, _AWAY):
            return StoreUnavailable(problem=problem)
        case _ if isinstance(error, _BROKEN):
            return Broken(problem)
        case asyncpg.InternalClientError():
            return Broken(problem)  # the driver's protocol is out of step: half of a farewell
        case asyncpg.InterfaceError():
            return _client(error, problem)
        case OSError() | EOFError():
            return Broken(f"{where}: {type(error).__name__}: {error}")
        case _:
            return error


def _client(error: Exception, problem: str) -> Exception:
    """Tell a connection that is gone from a wrong call of the driver."""
    gone = (
        "connection is closed",
        "connection was closed",
        "another operation",
        "not connected",
        '"failed" state',
    )
    return Broken(problem) if any(text in str(error) for text in gone) else error
