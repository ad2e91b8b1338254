"""What a caller gave."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from psych_runtime.errors._base import PsychError, brief

if TYPE_CHECKING:
    from psych_runtime.core.issues import Issue

__all__ = [
    "InputError",
    "InvalidArgument",
    "InvalidPayload",
    "InvalidSpec",
    "MemoryFull",
    "PayloadTooLarge",
    "RegistrationError",
]

_PROBLEM: Final = 2000  # characters: it may name a place in what was given


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
        where = f"tool {brief(tool)!r}"
        if parameter:
            where += f", parameter {brief(parameter)!r}"
        super().__init__(f"{where}: {problem}")


class InputError(PsychError):
    """Base of what is wrong with a value that was given."""

    code = "input"


class PayloadTooLarge(InputError):
    """A value above its bound (LOG-5, R-30); nothing was written.

    `as_json`: its bytes are counted as JSON in UTF-8, quotes and escapes with them.
    """

    code = "payload_too_large"

    def __init__(
        self, *, what: str, size_bytes: int, bound_bytes: int, as_json: bool = False
    ) -> None:
        self.what = what
        self.size_bytes = size_bytes
        self.bound_bytes = bound_bytes
        self.as_json = as_json
        counted = "bytes as JSON" if as_json else "bytes"
        super().__init__(
            f"{brief(what)} has {size_bytes} {counted}, the bound is {bound_bytes}; "
            "make it smaller or pass a reference"
        )


class InvalidArgument(InputError):
    """An argument that cannot be used: it is of another kind, or out of its bounds."""

    code = "invalid_argument"

    def __init__(self, *, what: str, problem: str) -> None:
        self.what = what
        self.problem = problem
        super().__init__(f"{brief(what)}: {brief(problem, most=_PROBLEM)}")


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
        super().__init__(f"{brief(what)}: {brief(problem, most=_PROBLEM)}{where}")


class MemoryFull(InputError):
    """An owner remembers as much as may be kept; nothing has changed.

    `entries` are there besides the new one, `size_bytes` is what all of them would count.
    """

    code = "memory_full"

    def __init__(
        self, *, entries: int, bound_entries: int, size_bytes: int, bound_bytes: int
    ) -> None:
        self.entries = entries
        self.bound_entries = bound_entries
        self.size_bytes = size_bytes
        self.bound_bytes = bound_bytes
        super().__init__(
            f"{entries} entries are remembered, and {size_bytes} bytes with this one; at most "
            f"{bound_entries} and {bound_bytes} are kept: forget some, or say it in fewer words"
        )
