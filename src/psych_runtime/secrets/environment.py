"""Secrets in environment variables of one prefix: a Spec reaches no other variable (SEC-2)."""

import os
import re
from collections.abc import Mapping
from itertools import permutations
from typing import Final

from psych_runtime.errors import InvalidArgument, SecretNotFound
from psych_schema.common import Scope

__all__ = ["EnvironmentSecrets"]

_PREFIX: Final = re.compile(r"[A-Z][A-Z0-9_]*_")
_OTHER: Final = re.compile(r"[^A-Z0-9]")


class EnvironmentSecrets:
    """Implements the port over the environment as it is at each use.

    The variable is the prefix and the name in capitals, with `_` for what is neither letter nor
    digit: `stripe-key` is `PSYCH_SECRET_STRIPE_KEY`. One that is set to nothing is not there.

    Args:
        prefix: of what every tenant may use; None, where tenants share nothing.
        tenants: a tenant's name to the prefix of its own, which comes before `prefix`.
        environ: other variables than this process's.

    Raises InvalidArgument for a prefix that has no capitals with a `_` at their end, and for
    one that another begins with: through it a tenant would read what is another's.
    """

    def __init__(
        self,
        prefix: str | None = "PSYCH_SECRET_",
        *,
        tenants: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._prefix = prefix
        self._tenants = dict(tenants or {})
        self._environ = os.environ if environ is None else environ
        _check([*({prefix} if prefix is not None else ()), *self._tenants.values()])

    def __repr__(self) -> str:
        """Name the prefix."""
        return f"EnvironmentSecrets({self._prefix!r})"

    async def resolve(self, scope: Scope, name: str) -> str:
        """Return the variable's value. SecretNotFound says which one to set."""
        prefixes = [one for one in (self._tenants.get(scope.tenant), self._prefix) if one]
        variables = [prefix + _OTHER.sub("_", name.upper()) for prefix in prefixes]
        for variable in variables:
            value = self._environ.get(variable)
            if value:
                return value
        remedy = f"set {variables[0]}" if variables else "this tenant has no prefix"
        raise SecretNotFound(name=name, remedy=remedy)


def _check(prefixes: list[str]) -> None:
    for prefix in prefixes:
        if not _PREFIX.fullmatch(prefix):
            problem = f"{prefix!r}: write capitals, digits and _, with a _ at the end"
            raise InvalidArgument(what="prefix", problem=problem)
    for one, other in permutations(prefixes, 2):
        if other.startswith(one):
            problem = f"{other!r} begins with {one!r}: no prefix may begin with another one"
            raise InvalidArgument(what="prefix", problem=problem)
