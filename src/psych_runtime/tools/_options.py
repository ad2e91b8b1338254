"""What an author says of a tool beside its code; `@tool` and `register` take the same (TOOL-1)."""

import inspect
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from psych_runtime.errors import RegistrationError
from psych_runtime.tools.reconciled import Reconcile
from psych_runtime.tools.text import clip, did_you_mean, quote
from psych_schema.common import Risk

__all__ = ["ANNOTATIONS", "DEFAULT_TIMEOUT_SECONDS", "ToolOptions"]

ANNOTATIONS: Final = frozenset({"read-only", "write", "destructive"})
DEFAULT_TIMEOUT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """The options of one tool, checked when it is made.

    `name` None is the function's own; `annotations` is any collection of ANNOTATIONS.

    Raises:
        RegistrationError: an unknown or contradictory annotation, or a value out of range.
    """

    name: str | None = None
    annotations: Collection[str] = frozenset()
    safe_to_retry: bool = False
    interruptible: bool = True
    concurrent: bool = True
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    reconcile: Reconcile | None = None

    def checked(self, tool: str) -> "ToolOptions":
        """Return the options of tool `tool` with plain types, or refuse them."""
        if self.name is not None and not isinstance(self.name, str):
            raise RegistrationError(tool=tool, problem="name must be a string, or None")
        for flag in ("safe_to_retry", "interruptible", "concurrent"):
            if not isinstance(getattr(self, flag), bool):
                raise RegistrationError(tool=tool, problem=f"{flag} must be True or False")
        _check_reconcile(tool, self.reconcile, safe_to_retry=self.safe_to_retry)
        return ToolOptions(
            name=self.name,
            annotations=_annotations(tool, self.annotations),
            safe_to_retry=self.safe_to_retry,
            interruptible=self.interruptible,
            concurrent=self.concurrent,
            timeout_seconds=_timeout(tool, self.timeout_seconds),
            reconcile=self.reconcile,
        )

    @property
    def risk(self) -> Risk:
        """What the tool may do to the world; without an annotation it may write."""
        if "destructive" in self.annotations:
            return "destructive"
        return "read_only" if "read-only" in self.annotations else "write"


def _annotations(tool: str, given: object) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise RegistrationError(
            tool=tool, problem='annotations must be a set of names: annotations={"read-only"}'
        )
    names = frozenset(str(name) for name in given)
    known = ", ".join(sorted(ANNOTATIONS))
    for name in sorted(names - ANNOTATIONS):
        hint = did_you_mean(name, ANNOTATIONS)
        raise RegistrationError(
            tool=tool, problem=f"unknown annotation {quote(name)}{hint} (known: {known})"
        )
    if "read-only" in names and len(names) > 1:
        other = " and ".join(sorted(names - {"read-only"}))
        raise RegistrationError(
            tool=tool, problem=f"a read-only tool cannot also be {other}; keep what is true"
        )
    return names


def _check_reconcile(tool: str, given: object, *, safe_to_retry: bool) -> None:
    if given is None:
        return
    if isinstance(given, type) or not _takes_one(given):
        raise RegistrationError(
            tool=tool,
            problem="reconcile must be a function of a StartedCall that returns a Reconciled",
        )
    if safe_to_retry:
        raise RegistrationError(
            tool=tool,
            problem="a call that is safe to retry runs again, so that reconcile would never be "
            "asked; keep one of them",
        )


def _takes_one(function: object) -> bool:
    """Tell whether something can be called with one argument; what does not say, may be."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _timeout(tool: str, given: object) -> float:
    valid = isinstance(given, int | float) and not isinstance(given, bool)
    if not valid or not isinstance(given, int | float) or not math.isfinite(given) or given <= 0:
        raise RegistrationError(
            tool=tool,
            problem=f"timeout_seconds must be a positive number, got {clip(repr(given), 40)}",
        )
    return float(given)
