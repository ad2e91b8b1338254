"""The port for secrets: a Spec names one, the operator keeps it (SEC-2)."""

import re
from typing import Final, Protocol

from psych_schema.common import Scope

__all__ = ["MAX_SECRET_BYTES", "MIN_SECRET_CHARACTERS", "SECRET_NAME", "SecretResolver"]

SECRET_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_./-]{0,127}")
"""What a name is, as in Specs; use `fullmatch`."""

MIN_SECRET_CHARACTERS: Final = 6
"""A shorter value would be found in ordinary words: it could not be kept out of texts."""

MAX_SECRET_BYTES: Final = 16_384  # of UTF-8: several certificates with their key


class SecretResolver(Protocol):
    """Gives the value of a secret to whoever is about to use it.

    Called on the executor's loop, several calls at a time, again for every use: a value that
    was changed is used at once. A method may await and must not block. A secret belongs to a
    tenant, or to all; what else is in the scope may tell them apart.

    Called with names that match SECRET_NAME only. That makes no name a path: `a/../b` is one.
    """

    async def resolve(self, scope: Scope, name: str) -> str:
        """Return the value that this scope may use, without a line break that a file ends with.

        SecretNotFound: there is none, or it is another tenant's, which looks the same.
        SecretUnavailable: nobody knows; the caller may ask again. Anything else that is raised
        becomes SecretUnavailable with no word of its text, which could hold the value.
        """
