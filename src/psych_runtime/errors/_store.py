"""What a store raises on purpose."""

from psych_runtime.errors._base import PsychError, brief

__all__ = [
    "CorruptRow",
    "SchemaMissing",
    "StoreClosed",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreOfAnotherLoop",
    "StoreReadOnly",
    "StoreUnavailable",
    "UnsupportedStore",
]


class StoreError(PsychError):
    """Base of what a store raises."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store did not answer: what was asked may or may not have happened (R-20).

    Repeat with the same idempotency key.
    """

    code = "store_unavailable"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the store did not answer ({problem}); try again; a write, with the same key"
        )


class StoreFull(StoreUnavailable):
    """The database has no room left; nothing of the request was written."""

    code = "store_full"

    def __init__(self, *, problem: str) -> None:
        super().__init__(problem=problem)
        self.args = (f"the database is full ({problem}); make room, nothing was half-written",)


class StoreClosed(StoreError):
    """This handle has been closed; nothing was asked of the store."""

    code = "store_closed"

    def __init__(self) -> None:
        super().__init__("this handle of the store has been closed; open another one")


class StoreOfAnotherLoop(StoreError):
    """This handle's connections belong to another event loop that is running."""

    code = "store_of_another_loop"

    def __init__(self) -> None:
        super().__init__(
            "this handle of the store is used in another event loop; take `store.twin()` for this "
            "one, and close it here"
        )


class StoreReadOnly(StoreError):
    """The database cannot be written; nothing was."""

    code = "store_read_only"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the database is read-only ({problem}); give the process write access")


class StoreDenied(StoreError):
    """A wrong user or password, or one to whom too little is granted; nothing was written."""

    code = "store_denied"

    def __init__(self, *, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"the database refuses this user ({problem}); {remedy}")


class CorruptRow(StoreError):
    """A row beside the logs holds a value that no build writes: somebody else changed it.

    `cursor` is where a list of Runs goes on behind the row; None when nobody can tell.
    """

    code = "corrupt_row"

    def __init__(self, *, table: str, key: str, problem: str, cursor: str | None = None) -> None:
        self.table = table
        self.key = key
        self.problem = problem
        self.cursor = cursor
        hint = ": the log of a run says what its header must be" if table == "run" else ""
        super().__init__(
            f"the row {brief(key)} of table {table} cannot be read ({problem}); "
            f"set the column right{hint}"
        )


class SchemaMissing(StoreError):
    """Tables are missing or older than this build; nothing migrates by itself (ST-4)."""

    code = "schema_missing"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; run `psych migrate` or `await store.migrate()` first")


class UnsupportedStore(StoreError):
    """A store URL or database version that cannot be used (ST-3); says what can."""

    code = "unsupported_store"

    def __init__(self, *, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")
