"""Everything that the library raises on purpose.

    PsychError
    ├── InvalidSpec             a Spec cannot be published; every issue at once
    ├── RegistrationError       a function cannot be a tool
    ├── StoreError
    │   ├── StoreUnavailable    nobody answered; it may or may not have happened
    │   │   └── StoreFull       no room left
    │   ├── StoreClosed         this handle has been closed
    │   ├── StoreReadOnly       the database cannot be written
    │   ├── CorruptRow          a value that no build writes
    │   ├── SchemaMissing       the tables are not there: migrate first
    │   └── UnsupportedStore    a database that cannot be used, or a wrong URL
    ├── RunError
    │   ├── RunNotFound, VersionNotFound
    │   ├── RunSettled, RunStopping
    │   ├── RunFailed           a Run that was followed ended without completing
    │   ├── IdempotencyConflict, NotThreadTail
    │   └── WaitTimeout
    ├── LogError
    │   ├── CorruptLog          the protocol cannot produce this log
    │   ├── NewerRecord         a newer build wrote it
    │   └── ContentErased       what was said has been erased
    ├── InputError
    │   ├── InvalidArgument     of another kind, or out of its bounds
    │   ├── PayloadTooLarge     above a stated bound
    │   └── InvalidPayload      not JSON that every store keeps, or no such argument
    ├── ModelError
    │   ├── ModelTransient, ModelPermanent, ContextOverflow
    ├── EgressDenied            an address that nobody allowed
    ├── EgressFailed            nobody answered there, or the connection broke
    └── MissingExtra            an optional dependency is not installed

Each carries a stable `code`, its facts as attributes, and a text that says what to do.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from psych_runtime.core.issues import Issue

__all__ = [
    "ContentErased",
    "ContextOverflow",
    "CorruptLog",
    "CorruptRow",
    "EgressDenied",
    "EgressFailed",
    "IdempotencyConflict",
    "InputError",
    "InvalidArgument",
    "InvalidPayload",
    "InvalidSpec",
    "LogError",
    "MissingExtra",
    "ModelError",
    "ModelPermanent",
    "ModelTransient",
    "NewerRecord",
    "NotThreadTail",
    "PayloadTooLarge",
    "PsychError",
    "RegistrationError",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "RunSettled",
    "RunStopping",
    "SchemaMissing",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "UnsupportedStore",
    "VersionNotFound",
    "WaitTimeout",
]


class PsychError(Exception):
    """Base of every error of this library."""

    code: ClassVar[str] = "error"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle facts and text; constructors take keywords only."""
        return _restore, (type(self), self.args, dict(self.__dict__))


def _restore[E: PsychError](
    kind: type[E], args: tuple[object, ...], facts: Mapping[str, object]
) -> E:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class InvalidSpec(PsychError):
    """A Spec that cannot be published (SPEC-4, PUB-1); `issues` lists everything wrong with it."""

    code = "invalid_spec"

    def __init__(self, issues: Sequence["Issue"], *, name: str = "spec") -> None:
        self.issues = tuple(issues)
        self.name = name
        super().__init__("\n".join(issue.text(name) for issue in self.issues))


class RegistrationError(PsychError):
    """A function that cannot be a tool (TOOL-1); says which parameter, and what to add."""

    code = "registration"

    def __init__(self, *, tool: str, problem: str, parameter: str | None = None) -> None:
        self.tool = tool
        self.parameter = parameter
        self.problem = problem
        where = f"tool {tool!r}" + (f", parameter {parameter!r}" if parameter else "")
        super().__init__(f"{where}: {problem}")


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


class StoreReadOnly(StoreError):
    """The database cannot be written; nothing was."""

    code = "store_read_only"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the database is read-only ({problem}); give the process write access")


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
            f"the row {key} of table {table} cannot be read ({problem}); set the column right{hint}"
        )


class SchemaMissing(StoreError):
    """Tables are missing or older than this build; nothing migrates by itself (ST-4)."""

    code = "schema_missing"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; run `await store.migrate()` first")


class UnsupportedStore(StoreError):
    """A store URL or database version that cannot be used (ST-3); says what can."""

    code = "unsupported_store"

    def __init__(self, *, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")


_REACHED = {"settled": "settled", "suspended": "settled or suspended"}


class RunError(PsychError):
    """Base of what concerns one Run or Version."""

    code = "run"


class RunNotFound(RunError):
    """No such Run in this tenant; another tenant's Run looks the same."""

    code = "run_not_found"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run {run_id!r} in this tenant; check the id and the scope")


class VersionNotFound(RunError):
    """No such Version in this tenant: publish it first."""

    code = "version_not_found"

    def __init__(self, *, version: str) -> None:
        self.version = version
        super().__init__(f"no version {version!r} in this tenant; publish the spec first")


class RunSettled(RunError):
    """The Run has ended; nothing was written. A message may start the next Run of the thread."""

    code = "run_settled"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id} has settled; dispatch with continues={run_id!r} to go on")


class RunStopping(RunError):
    """Somebody asked the Run to stop already; only force=True adds to it."""

    code = "run_stopping"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id} is stopping already; force=True gives up what it cannot interrupt"
        )


class RunFailed(RunError):
    """The Run that was followed ended without completing: what was read of it is all there is.

    `state` says how it ended, `reason` is the code of why. Repeating the read changes nothing.
    """

    code = "run_failed"

    def __init__(self, *, run_id: str, state: str, reason: str | None) -> None:
        self.run_id = run_id
        self.state = state
        self.reason = reason
        why = state if reason in (None, state) else f"{state}, {reason}"
        super().__init__(
            f"run {run_id} did not complete ({why}); `psych report` tells what happened"
        )


class IdempotencyConflict(RunError):
    """The key was used for another request (ADM-2).

    Nothing was written; a retry with this key is useless.
    """

    code = "idempotency_conflict"

    def __init__(self, *, key: str, run_id: str) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(f"key {key!r} belongs to another request, of run {run_id}; use a new key")


class NotThreadTail(RunError):
    """`continues` names a Run that is not the settled tail of its thread (R-18)."""

    code = "not_thread_tail"

    def __init__(self, *, run_id: str, tail: str, state: str) -> None:
        self.run_id = run_id
        self.tail = tail
        self.state = state
        super().__init__(
            f"run {run_id} is not the settled tail of its thread: that is {tail} ({state})"
        )


class WaitTimeout(RunError):
    """`wait` gave up; the Run goes on."""

    code = "wait_timeout"

    def __init__(self, *, run_id: str, until: str, timeout_seconds: float) -> None:
        self.run_id = run_id
        self.until = until
        self.timeout_seconds = timeout_seconds
        super().__init__(
            f"run {run_id} has not {_REACHED.get(until, f'reached {until}')} after "
            f"{timeout_seconds:g} s; it goes on: look at its status, or wait again"
        )


class LogError(PsychError):
    """Base of what concerns a log as it is written."""

    code = "log"


class CorruptLog(LogError):
    """A log that the protocol cannot produce (LOG-1); it is never repaired."""

    code = "corrupt_log"

    def __init__(self, *, reason: str, run_id: str, seq: int) -> None:
        self.reason = reason
        self.run_id = run_id
        self.seq = seq
        super().__init__(
            f"{reason}: run {run_id} at seq {seq}; the log is left as it is, see `psych log`"
        )


class NewerRecord(LogError):
    """A record that a newer build wrote (R-16, LOG-4); the log is fine, this build is old."""

    code = "newer_record"

    def __init__(self, *, run_id: str, seq: int, type: str, needs_version: int) -> None:
        self.run_id = run_id
        self.seq = seq
        self.type = type
        self.needs_version = needs_version
        super().__init__(
            f"run {run_id} at seq {seq}: {type!r} needs schema version {needs_version}; "
            "upgrade psych-runtime"
        )


class ContentErased(LogError):
    """What people, models and tools said in this Run has been erased."""

    code = "content_erased"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"the contents of run {run_id} have been erased; its facts and totals are left"
        )


class InputError(PsychError):
    """Base of what is wrong with a value that was given."""

    code = "input"


class PayloadTooLarge(InputError):
    """A value above its bound (LOG-5, R-30); nothing was written."""

    code = "payload_too_large"

    def __init__(self, *, what: str, size_bytes: int, bound_bytes: int) -> None:
        self.what = what
        self.size_bytes = size_bytes
        self.bound_bytes = bound_bytes
        super().__init__(
            f"{what} has {size_bytes} bytes, the bound is {bound_bytes}; "
            "make it smaller or pass a reference"
        )


class InvalidArgument(InputError):
    """An argument that cannot be used: it is of another kind, or out of its bounds."""

    code = "invalid_argument"

    def __init__(self, *, what: str, problem: str) -> None:
        self.what = what
        self.problem = problem
        super().__init__(f"{what}: {problem}")


class InvalidPayload(InputError):
    """A value that is not JSON as every store keeps it (LOG-5), or an argument that is none.

    `what` names it, `problem` says what is right; of a text, where it is wrong.
    """

    code = "invalid_payload"

    def __init__(
        self, *, what: str, problem: str, line: int | None = None, column: int | None = None
    ) -> None:
        self.what = what
        self.problem = problem
        self.line = line
        self.column = column
        where = "" if line is None else f" (line {line}, column {column})"
        super().__init__(f"{what}: {problem}{where}")


class ModelError(PsychError):
    """Base of what a ModelClient may raise; anything else is a bug of the client."""

    code = "model"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class ModelTransient(ModelError):
    """Worth another try, after `retry_after_seconds` when the provider named it."""

    code = "model_transient"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_seconds = retry_after_seconds


class ModelPermanent(ModelError):
    """The same request would fail again."""

    code = "model_permanent"


class ContextOverflow(ModelPermanent):
    """The conversation is too long for the model."""

    code = "context_overflow"


class EgressDenied(PsychError):
    """An outbound connection that nobody allowed (SEC-1)."""

    code = "egress_denied"

    def __init__(self, *, host: str, reason: str) -> None:
        self.host = host
        self.reason = reason
        super().__init__(f"no connection to {host!r}: {reason}")


class EgressFailed(PsychError):
    """Nobody answered, or the connection broke; `sent` is False if certainly nothing was sent."""

    code = "egress_failed"

    def __init__(self, *, host: str, problem: str, sent: bool) -> None:
        self.host = host
        self.problem = problem
        self.sent = sent
        super().__init__(f"{host!r}: {problem}")


class MissingExtra(PsychError):
    """An optional dependency is not installed."""

    code = "missing_extra"

    def __init__(self, *, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs `pip install 'psych-runtime[{extra}]'`")
