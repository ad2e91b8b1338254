"""Everything that the library raises on purpose.

    PsychError
    ├── InvalidSpec             a Spec cannot be published; every issue at once
    ├── RegistrationError       a function cannot be a tool
    ├── StoreError
    │   ├── StoreUnavailable    nobody answered; it may or may not have happened
    │   │   └── StoreFull       no room left
    │   ├── StoreClosed         this handle has been closed
    │   ├── StoreOfAnotherLoop  a handle is of one event loop
    │   ├── StoreReadOnly       the database cannot be written
    │   ├── StoreDenied         a wrong user or password, or too few privileges
    │   ├── CorruptRow          a value that no build writes
    │   ├── SchemaMissing       the tables are not there: migrate first
    │   └── UnsupportedStore    a database that cannot be used, or a wrong URL
    ├── RunError
    │   ├── RunNotFound, VersionNotFound
    │   ├── RunSettled, RunNotSettled, RunStopping
    │   ├── RunFailed           a Run that was followed ended without completing
    │   ├── IdempotencyConflict, NotThreadTail
    │   ├── QueueFull           a Run has as many messages queued as it takes
    │   ├── EntryNotFound       it was never sent this message
    │   ├── EntryOver           a message that is not queued any more
    │   ├── ApprovalError       a decision that is refused
    │   │   ├── ApprovalNotFound, ApprovalConflict
    │   │   └── ApprovalOver, ApprovalSuperseded
    │   ├── WaitNotFound, WaitOver
    │   └── WaitTimeout
    ├── LogError
    │   ├── CorruptLog          the protocol cannot produce this log
    │   ├── NewerRecord         a newer build wrote it
    │   └── ContentErased       what was said has been erased
    ├── InputError
    │   ├── InvalidArgument     of another kind, or out of its bounds
    │   ├── PayloadTooLarge     above a stated bound
    │   ├── InvalidPayload      not JSON that every store keeps, or no such argument
    │   └── MemoryFull          as much is remembered as may be kept
    ├── ModelError
    │   ├── ModelTransient, ModelPermanent, ContextOverflow
    │   └── UnsendableRequest   what the client cannot write; nothing was sent
    ├── EgressDenied            an address that nobody allowed
    ├── EgressFailed            nobody answered there, or the connection broke
    ├── BlobError
    │   ├── BlobUnavailable     nobody answered; it may or may not have happened
    │   │   └── BlobStoreFull   no room left
    │   ├── BlobStoreClosed     this handle has been closed
    │   ├── BlobStoreUnusable   a place that cannot be used, or may not be
    │   ├── BlobNotFound        no such blob of this Run and tenant
    │   └── BlobCorrupt         other bytes than those that were put
    ├── SecretError
    │   ├── SecretNotFound      this tenant has none of this name
    │   ├── SecretUnavailable   it could not be read just now
    │   └── SecretUnusable      its value cannot be used
    └── MissingExtra            an optional dependency is not installed

Each carries a stable `code`, its facts as attributes, and a text that says what to do.
"""

from psych_runtime.errors._base import (
    MissingExtra,
    PsychError,
)
from psych_runtime.errors._blob import (
    BlobCorrupt,
    BlobError,
    BlobNotFound,
    BlobStoreClosed,
    BlobStoreFull,
    BlobStoreUnusable,
    BlobUnavailable,
)
from psych_runtime.errors._input import (
    InputError,
    InvalidArgument,
    InvalidPayload,
    InvalidSpec,
    MemoryFull,
    PayloadTooLarge,
    RegistrationError,
)
from psych_runtime.errors._log import (
    ContentErased,
    CorruptLog,
    LogError,
    NewerRecord,
)
from psych_runtime.errors._model import (
    ContextOverflow,
    EgressDenied,
    EgressFailed,
    ModelError,
    ModelPermanent,
    ModelTransient,
    UnsendableRequest,
)
from psych_runtime.errors._run import (
    ApprovalConflict,
    ApprovalError,
    ApprovalNotFound,
    ApprovalOver,
    ApprovalSuperseded,
    EntryNotFound,
    EntryOver,
    IdempotencyConflict,
    NotThreadTail,
    QueueFull,
    RunError,
    RunFailed,
    RunNotFound,
    RunNotSettled,
    RunSettled,
    RunStopping,
    VersionNotFound,
    WaitNotFound,
    WaitOver,
    WaitTimeout,
)
from psych_runtime.errors._secret import (
    SecretError,
    SecretNotFound,
    SecretUnavailable,
    SecretUnusable,
)
from psych_runtime.errors._store import (
    CorruptRow,
    SchemaMissing,
    StoreClosed,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreOfAnotherLoop,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
)

__all__ = [
    "ApprovalConflict",
    "ApprovalError",
    "ApprovalNotFound",
    "ApprovalOver",
    "ApprovalSuperseded",
    "BlobCorrupt",
    "BlobError",
    "BlobNotFound",
    "BlobStoreClosed",
    "BlobStoreFull",
    "BlobStoreUnusable",
    "BlobUnavailable",
    "ContentErased",
    "ContextOverflow",
    "CorruptLog",
    "CorruptRow",
    "EgressDenied",
    "EgressFailed",
    "EntryNotFound",
    "EntryOver",
    "IdempotencyConflict",
    "InputError",
    "InvalidArgument",
    "InvalidPayload",
    "InvalidSpec",
    "LogError",
    "MemoryFull",
    "MissingExtra",
    "ModelError",
    "ModelPermanent",
    "ModelTransient",
    "NewerRecord",
    "NotThreadTail",
    "PayloadTooLarge",
    "PsychError",
    "QueueFull",
    "RegistrationError",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "RunNotSettled",
    "RunSettled",
    "RunStopping",
    "SchemaMissing",
    "SecretError",
    "SecretNotFound",
    "SecretUnavailable",
    "SecretUnusable",
    "StoreClosed",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreOfAnotherLoop",
    "StoreReadOnly",
    "StoreUnavailable",
    "UnsendableRequest",
    "UnsupportedStore",
    "VersionNotFound",
    "WaitNotFound",
    "WaitOver",
    "WaitTimeout",
]
