"""What is wrong with a secret; none of these ever holds a value, nor a part of one (SEC-2)."""

from typing import Final

from psych_runtime.errors._base import PsychError, brief

__all__ = ["SecretError", "SecretNotFound", "SecretUnavailable", "SecretUnusable"]

_SAID: Final = 500  # characters: it may name a file


class SecretError(PsychError):
    """Base of what is wrong with a secret."""

    code = "secret"


class SecretNotFound(SecretError):
    """A tenant has no secret of this name; `remedy` says where one belongs."""

    code = "secret_not_found"

    def __init__(self, *, name: str, remedy: str) -> None:
        self.name = name
        self.remedy = remedy
        super().__init__(f"no secret {brief(name)!r} for this tenant; {brief(remedy, most=_SAID)}")


class SecretUnavailable(SecretError):
    """A secret could not be read just now; it may be there. Try again, or see to its place."""

    code = "secret_unavailable"

    def __init__(self, *, name: str, problem: str) -> None:
        self.name = name
        self.problem = problem
        super().__init__(
            f"secret {brief(name)!r} could not be read ({brief(problem, most=_SAID)}); "
            "see to the place where it is kept, then try again"
        )


class SecretUnusable(SecretError):
    """A secret is there, and its value cannot be used; `problem` says what is right."""

    code = "secret_unusable"

    def __init__(self, *, name: str, problem: str) -> None:
        self.name = name
        self.problem = problem
        super().__init__(f"secret {brief(name)!r} cannot be used: {brief(problem, most=_SAID)}")
