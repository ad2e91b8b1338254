"""What a running tool may know of its call (R-9): for whom it acts, and a key to repeat by."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from psych_schema.common import Scope

__all__ = ["StartedCall", "ToolContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool is executed for; a parameter of this type stays out of the schema.

    `idempotency_key` is the same when the call is executed again after a crash: pass it on to
    services that recognise a repeated request. `epoch` only rises: a service that keeps the
    highest one seen can refuse an attempt that has been given up.
    """

    scope: Scope
    run_id: str
    call_id: str
    idempotency_key: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedCall(ToolContext):
    """A call that began, and whose end nobody recorded: what a tool's `reconcile` is asked about.

    `arguments` are those that the function was called with, by name and of its types;
    `started_at` is when, by the clock of the worker that began it. By now its timeout and a
    lease are over: what still runs of it was given up.
    """

    arguments: Mapping[str, object]
    started_at: datetime
