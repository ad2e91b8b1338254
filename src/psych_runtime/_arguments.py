"""What may be asked: judged before the store is, so that every store answers alike (ST-5, STR-1).

A wrong one is an InvalidArgument that says what is right; none is taken for another one.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Final, get_args

from psych_runtime.errors import InvalidArgument
from psych_runtime.runtime.requests import check_json
from psych_schema.common import RunPhase, Scope

__all__ = [
    "check_flag",
    "check_head",
    "check_instant",
    "check_limit",
    "check_page",
    "check_scope_type",
    "check_state",
    "check_text",
    "check_timeout",
    "check_until",
]

_LARGEST: Final = 2**63 - 1
"""The last seq that a store could have; so many rows it could give."""

_HASH: Final = re.compile("[0-9a-f]{64}")

_STATES: Final[Sequence[str]] = get_args(RunPhase.__value__)


def check_scope_type(scope: object) -> None:
    """Raise InvalidArgument for what is no Scope."""
    if not isinstance(scope, Scope):
        raise InvalidArgument(what="scope", problem="pass Scope(tenant=...)")


def _check_run_id(run_id: object) -> None:
    """Raise InvalidArgument for what is no Run id: what dispatch() returned has one."""
    if not isinstance(run_id, str):
        raise InvalidArgument(what="run_id", problem="pass the id: run.run_id")


def check_page(run_id: object, scope: object, *, after: object = 0, limit: object = None) -> None:
    """Raise InvalidArgument unless this names a part of a Run's log."""
    check_scope_type(scope)
    _check_run_id(run_id)
    _check_after(after)
    if limit is not None:
        check_limit(limit)


def _check_after(after: object) -> None:
    """Raise InvalidArgument for what is no seq to go on behind."""
    if not _is_whole(after, least=0):
        problem = f"pass the seq of a record, or 0 for all: a whole number up to {_LARGEST}"
        raise InvalidArgument(what="after", problem=problem)


def check_head(head: object) -> None:
    """Raise InvalidArgument for what is neither the hash of a record nor None."""
    if head is not None and not (isinstance(head, str) and _HASH.fullmatch(head)):
        problem = f"pass a head_hash: 64 characters 0-9 and a-f; {head!r:.80} is none"
        raise InvalidArgument(what="expected_head", problem=problem)


def check_limit(limit: object) -> None:
    """Raise InvalidArgument for what is no size of a page."""
    if not _is_whole(limit, least=1):
        raise InvalidArgument(what="limit", problem=f"pass a whole number, 1 to {_LARGEST}")


def check_state(state: object) -> None:
    """Raise InvalidArgument for what no header's state can be."""
    if state is not None and state not in _STATES:
        problem = f"pass None or one of {', '.join(_STATES)}; {state!r:.60} is none of them"
        raise InvalidArgument(what="state", problem=problem)


def check_text(value: object, *, what: str, problem: str) -> None:
    """Raise InvalidArgument, saying `problem`, for what is neither a text nor None.

    InvalidPayload, PayloadTooLarge: a text that no record takes.
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidArgument(what=what, problem=problem)
    check_json(value, what=what)


def check_flag(value: object, *, what: str) -> None:
    """Raise InvalidArgument for what is neither True nor False."""
    if not isinstance(value, bool):
        raise InvalidArgument(what=what, problem="pass True or False")


def check_instant(value: object, *, what: str) -> None:
    """Raise InvalidArgument for what is neither an instant nor None."""
    if value is None or (isinstance(value, datetime) and value.utcoffset() is not None):
        return
    raise InvalidArgument(what=what, problem="pass a datetime with a time zone: datetime.now(UTC)")


def check_until(until: object) -> None:
    """Raise InvalidArgument for what nobody can wait for."""
    if until not in ("settled", "suspended") and not _is_whole(until, least=0):
        raise InvalidArgument(what="until", problem="pass 'settled', 'suspended' or a seq")


def check_timeout(seconds: object) -> None:
    """Raise InvalidArgument for what is no time to wait."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        known = False
    else:
        known = seconds <= _LARGEST or seconds == inf  # neither is true of NaN
    if not known:
        raise InvalidArgument(what="timeout_seconds", problem="pass a number of seconds, or None")


def _is_whole(value: object, *, least: int) -> bool:
    """Tell whether `value` is an int from `least` up to what every store can compare."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST
