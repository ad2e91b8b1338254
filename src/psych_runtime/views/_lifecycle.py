"""Where a Run stands in words for people, what blocks it, how it ended (PUB-3, LOG-3, R-16)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from psych_runtime.core.models import trusted
from psych_runtime.views._failure import failure_text
from psych_runtime.views._survey import Survey
from psych_schema.base import format_instant
from psych_schema.common import EndState
from psych_schema.store import WorkerRow
from psych_schema.view import BlockedOn, Ended, Lifecycle

__all__ = ["blocked_on", "ended", "lifecycle"]

_ended: Final = trusted(Ended)

_RETRIED: Final = frozenset({"attempt_failed", "model_retry"})
_ENDS: Final[Mapping[EndState, Lifecycle]] = {"completed": "done", "aborted": "stopped"}


def ended(survey: Survey) -> Ended | None:
    """Return how the Run ended; None while it lives, and for a log that nobody can trust."""
    settled = survey.settled
    if settled is None or survey.corrupt:
        return None
    code = settled.reason.code if settled.reason else None
    return _ended(state=settled.state, code=code, at=settled.at)


def lifecycle(survey: Survey, blocked: BlockedOn | None) -> Lifecycle:
    """Return the one word for where the Run stands; `blocked` is what `blocked_on` said."""
    header = survey.header
    if survey.corrupt:
        return "failed"
    if survey.settled is not None:
        return _ENDS.get(survey.settled.state, "failed")
    if blocked is not None and blocked.code not in _RETRIED:
        return "blocked"
    if header.abort is not None:
        return "stopping"
    match header.state:
        case "running":
            return "running"
        case "suspended":
            return "waiting"
        case _:
            return "queued"


def blocked_on(
    survey: Survey,
    *,
    spec_tools: Sequence[str] | None = None,
    workers: Sequence[WorkerRow] = (),
) -> BlockedOn | None:
    """Return what must change before the Run goes on, None when nothing must.

    A Run that no worker could take because there is none is queued, not blocked: nothing is
    wrong with it, and a worker may just not have been started yet. `code` is `corrupt_log` or
    `newer_record`, as of the errors of that name, or `no_worker_has_tool`. What only time must
    pass for is `model_retry` or `attempt_failed`: such a Run is not blocked, it goes on by itself.
    """
    header = survey.header
    if survey.problem is not None:
        reason, seq = survey.problem
        message = f"{reason} at seq {seq}; the log is left as it is, see `psych log`"
        return BlockedOn(code="corrupt_log", message=message)
    if header.state == "settled":
        return _unreadable_end(survey)
    held = header.state == "running" and (
        not workers or any(one.id == header.worker for one in workers)
    )
    if header.abort is not None:
        return None
    if held or header.state == "suspended":
        return _model_retry(survey)
    released = survey.released
    needs = released.needs_version if released is not None else None
    if needs is None and survey.newer and not survey.whole:
        needs = header.schema_version
    if needs is not None:
        message = f"its log needs schema version {needs}; start a worker with a newer psych-runtime"
        return BlockedOn(code="newer_record", message=message)
    if spec_tools is not None and workers:
        lacking = _tools(spec_tools, workers)
    elif released is not None and released.missing:
        lacking = _tools(released.missing, workers)
    else:
        lacking = None
    return lacking or _attempt_failed(survey)


def _model_retry(survey: Survey) -> BlockedOn | None:
    """Return when a failed model call is made again, and why it must be."""
    failed, header = survey.failed, survey.header
    if failed is None or failed.next != "retry":
        return None
    at = header.wake_at if header.state == "suspended" else failed.retry_at
    if at is None:
        return None
    message = f"{failure_text(failed)}; {_again('the model is', at)}"
    return BlockedOn(code="model_retry", message=message)


def _attempt_failed(survey: Survey) -> BlockedOn | None:
    """Return when a Run is executed again whose last attempt ended with an error."""
    released, at = survey.released, survey.header.wake_at
    if released is None or released.reason != "error" or at is None:
        return None
    message = (
        f"the attempt failed: {released.code or 'unknown'}; {_again('the Run is', at)}; "
        "the log of its worker says more"
    )
    return BlockedOn(code="attempt_failed", message=message)


def _again(what: str, at: datetime) -> str:
    return f"{what} tried again at {format_instant(at)}, by itself, while a worker runs"


def _unreadable_end(survey: Survey) -> BlockedOn | None:
    if survey.settled is not None:
        return None
    needs = survey.header.schema_version
    message = f"how it ended is written in schema version {needs}; upgrade psych-runtime"
    return BlockedOn(code="newer_record", message=message)


def _tools(needed: Sequence[str], workers: Sequence[WorkerRow]) -> BlockedOn | None:
    """Return which tools no worker has; when each has some, what the best one lacks."""
    wanted = set(needed)
    lacking = [wanted - set(one.tools) for one in workers] or [wanted]
    if not all(lacking):
        return None
    nowhere = set.intersection(*lacking)
    best = min(lacking, key=_fewest)
    missing = sorted(nowhere or best)
    names = ", ".join(identity.partition(":")[2] or identity for identity in missing)
    what = "tool" if len(missing) == 1 else "tools"
    message = f"no live worker has {what} {names}"
    if not nowhere:
        message = f"no live worker has all the tools it needs; one lacks only {names}"
    return BlockedOn(code="no_worker_has_tool", message=message, tools=tuple(missing))


def _fewest(tools: set[str]) -> tuple[int, list[str]]:
    return len(tools), sorted(tools)
