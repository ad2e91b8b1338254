"""No secrets at all: what a Runtime has that was given none."""

from psych_runtime.errors import SecretNotFound
from psych_schema.common import Scope

__all__ = ["NoSecrets"]


class NoSecrets:
    """Implements the port without a secret, and says how to give some."""

    async def resolve(self, scope: Scope, name: str) -> str:
        """Raise SecretNotFound."""
        raise SecretNotFound(
            name=name, remedy="give the Runtime some: secrets=EnvironmentSecrets() reads variables"
        )
