"""What every error is, and what is missing on this machine."""

from collections.abc import Mapping
from typing import ClassVar, Final

__all__ = ["MissingExtra", "PsychError", "brief", "lasting"]

_SHOWN: Final = 80


class PsychError(Exception):
    """Base of every error of this library."""

    code: ClassVar[str] = "error"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle facts and text; constructors take keywords only."""
        return _restore, (type(self), self.args, dict(self.__dict__))


def brief(text: object, *, most: int = _SHOWN) -> str:
    """Return what a caller gave as a message repeats it: both ends; an attribute has all of it."""
    given = str(text)
    if len(given) <= most:
        return given
    rest = most // 4
    return f"{given[: most - rest]}…{given[-rest:]}"


def lasting(seconds: float) -> str:
    """Return a time as people say it, in the largest unit that makes a short number of it."""
    for unit, length in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.4g} {unit}"
    return f"{seconds:g} s"


def _restore[E: PsychError](
    kind: type[E], args: tuple[object, ...], facts: Mapping[str, object]
) -> E:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class MissingExtra(PsychError):
    """An optional dependency is not installed."""

    code = "missing_extra"

    def __init__(self, *, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs `pip install 'psych-runtime[{extra}]'`")
