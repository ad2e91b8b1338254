"""A secret's value on its way from where it is kept to where it is sent (SEC-2)."""

from collections.abc import Callable
from typing import Final, Never, Self, final

from psych_runtime.errors import (
    InvalidArgument,
    SecretError,
    SecretNotFound,
    SecretUnavailable,
    SecretUnusable,
)
from psych_runtime.ports.secrets import (
    MAX_SECRET_BYTES,
    MIN_SECRET_CHARACTERS,
    SECRET_NAME,
    SecretResolver,
)
from psych_schema.common import Scope

__all__ = ["Secret", "as_header", "check_secret_name", "resolve_secret"]

_NAME_FORM: Final = (
    "a secret's name has 1 to 128 of a-z A-Z 0-9 _ . / - and begins with a letter; "
    "name it, never write its value"
)


@final
class Secret:
    """A value with a name, shown by its name alone; only `reveal` gives the value.

    Raises SecretUnusable for a value of fewer than MIN_SECRET_CHARACTERS, of more than
    MAX_SECRET_BYTES, of nothing but blanks, or that is no Unicode.
    """

    __slots__ = ("_reveal", "name")

    name: str
    _reveal: Callable[[], str]

    def __init__(self, name: str, value: str) -> None:
        problem = _problem(value)
        if problem:
            raise SecretUnusable(name=name, problem=problem)
        self.name = name
        self._reveal = lambda: value  # what lists attributes meets a function

    def reveal(self) -> str:
        """Return the value; it belongs on the wire, and into no text."""
        return self._reveal()

    def __repr__(self) -> str:
        """Name it."""
        return f"Secret({self.name!r})"

    def __format__(self, spec: str) -> str:
        """Name it, in whatever form was asked for."""
        return format(repr(self), spec)

    def __copy__(self) -> Self:
        """Return itself: there is no second value to lose."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: there is no second value to lose."""
        return self

    def __reduce_ex__(self, protocol: object) -> Never:
        """Refuse to be pickled."""
        raise TypeError("a secret stays in its process: pass its name")


def as_header(secret: Secret) -> str:
    """Return the value as a header carries it.

    SecretUnusable, which does not repeat it: a header is printable ASCII with no blank at
    either end; a line break or NUL would end it.
    """
    value = secret.reveal()
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        problem = "a header is printable ASCII on one line, with no blank at either end"
        raise SecretUnusable(name=secret.name, problem=problem)
    return value


def check_secret_name(name: object) -> None:
    """Raise InvalidArgument for what is no name; it may be the value itself and is not shown."""
    if not isinstance(name, str) or not SECRET_NAME.fullmatch(name):
        raise InvalidArgument(what="secret", problem=_NAME_FORM)


async def resolve_secret(resolver: SecretResolver, scope: Scope, name: str) -> Secret:
    """Ask for a secret that is used now, and for that use only.

    Raises SecretNotFound, SecretUnavailable, SecretUnusable, and InvalidArgument for a name
    that is none. What a resolver raises is not chained: it could hold the value.
    """
    check_secret_name(name)
    try:
        value: object = await resolver.resolve(scope, name)
    except Exception as error:  # the operator's code
        problem: SecretError = _without_value(error, name)
    else:
        if isinstance(value, str):
            return Secret(name, value)
        problem = SecretUnusable(name=name, problem=f"it is a {type(value).__name__}, no text")
    raise problem  # here no foreign error is its context


def _without_value(error: Exception, name: str) -> SecretError:
    """Return a new error with what may be told of `error`."""
    if isinstance(error, SecretNotFound):
        return SecretNotFound(name=name, remedy=error.remedy)
    if isinstance(error, SecretUnavailable | SecretUnusable):
        return type(error)(name=name, problem=error.problem)
    return SecretUnavailable(name=name, problem=f"the resolver raised {type(error).__name__}")


def _problem(value: str) -> str | None:
    if not value.strip():
        return "it is empty"
    if len(value) < MIN_SECRET_CHARACTERS:
        least = f"use {MIN_SECRET_CHARACTERS} characters or more"
        return f"it is too short to be kept out of texts; {least}"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is no Unicode"
    if size > MAX_SECRET_BYTES:
        return f"it has {size} bytes, at most {MAX_SECRET_BYTES} are read"
    return None
