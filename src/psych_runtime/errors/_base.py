"""What every error is, and what is missing on this machine."""

from collections.abc import Mapping
from typing import ClassVar

__all__ = ["MissingExtra", "PsychError"]


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


class MissingExtra(PsychError):
    """An optional dependency is not installed."""

    code = "missing_extra"

    def __init__(self, *, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs `pip install 'psych-runtime[{extra}]'`")
