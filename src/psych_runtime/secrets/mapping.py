"""Secrets in a mapping, of a tenant or for all."""

from collections.abc import Mapping
from typing import Final, Never

from psych_runtime.errors import InvalidArgument, SecretNotFound
from psych_schema.common import Scope

__all__ = ["MappingSecrets"]

_NONE: Final[Mapping[str, str]] = {}


class MappingSecrets:
    """Implements the port over mappings of name to value, which are asked at each use.

    Args:
        shared: what every tenant may use.
        tenants: what one tenant may use, by its name; it comes before `shared`.

    Raises InvalidArgument for what is no mapping.
    """

    def __init__(
        self,
        shared: Mapping[str, str] | None = None,
        *,
        tenants: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        both: tuple[tuple[str, object], ...] = (("shared", shared), ("tenants", tenants))
        for what, given in both:
            if given is not None and not isinstance(given, Mapping):
                problem = f"pass a mapping, no {type(given).__name__}"
                raise InvalidArgument(what=what, problem=problem)
        self._shared = _NONE if shared is None else shared
        self._tenants = {} if tenants is None else tenants

    def __repr__(self) -> str:
        """Say what it is, not what it holds."""
        return "MappingSecrets()"

    def __reduce_ex__(self, protocol: object) -> Never:
        """Refuse to be pickled."""
        raise TypeError("secrets stay in their process")

    async def resolve(self, scope: Scope, name: str) -> str:
        """Return the tenant's value, or else the one for all. Raises SecretNotFound."""
        for mapping in (self._tenants.get(scope.tenant, _NONE), self._shared):
            value = mapping.get(name)
            if value is not None:
                return value
        raise SecretNotFound(
            name=name, remedy="add it to the mapping that MappingSecrets was made of"
        )
