"""Which fields of a Spec a client sends on, and which its server has not (MOD-9)."""

from collections.abc import Iterable

from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.model import ModelField

__all__ = ["fields_without"]


def fields_without(
    fields: frozenset[ModelField], without: Iterable[ModelField]
) -> frozenset[ModelField]:
    """Return `fields` without those named. InvalidArgument: one that is not among them."""
    named = frozenset(without)
    unknown = ", ".join(sorted(named - fields))
    if unknown:
        problem = f"no field that this client has: {unknown}; it has {', '.join(sorted(fields))}"
        raise InvalidArgument(what="without", problem=problem)
    return fields - named
