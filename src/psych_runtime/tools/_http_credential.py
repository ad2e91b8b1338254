"""A tool's credential, for one request: resolved right before it, and kept out of texts (SEC-2)."""

from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

from psych_runtime.core.redaction import Redactor
from psych_runtime.core.secret import Secret, as_header, resolve_secret
from psych_runtime.errors import SecretUnusable
from psych_runtime.ports.secrets import MIN_SECRET_CHARACTERS, SecretResolver
from psych_schema.common import Scope
from psych_schema.spec import BasicCredential, HeaderCredential, HttpCredential

__all__ = ["Carried", "carried"]


class Carried(NamedTuple):
    """What a credential adds to a request, and what takes it out of what comes back."""

    headers: Mapping[str, str]
    redactor: Redactor

    def __repr__(self) -> str:
        """Name the headers only."""
        return f"Carried({', '.join(self.headers)})"


async def carried(
    credential: HttpCredential | None, secrets: SecretResolver, scope: Scope
) -> Carried:
    """Return what a request of `scope` carries; asked for anew each time.

    Raises SecretNotFound, SecretUnavailable, SecretUnusable.
    """
    if credential is None:
        return Carried({}, Redactor())
    secret = await resolve_secret(secrets, scope, credential.secret)
    match credential:
        case BasicCredential():
            return _basic(credential, secret)
        case HeaderCredential():
            headers = {credential.header: as_header(secret)}
        case _:
            headers = {"Authorization": f"Bearer {as_header(secret)}"}
    return Carried(headers, Redactor([secret]))


def _basic(credential: BasicCredential, secret: Secret) -> Carried:
    """Return name and password as HTTP's basic scheme has them (RFC 7617, in UTF-8)."""
    pair, hidden = secret.reveal(), [secret]
    if credential.username is not None:
        pair = f"{credential.username}:{pair}"
    else:
        _, colon, password = pair.partition(":")
        if not colon:
            problem = "without a username, it has to be name:password"
            raise SecretUnusable(name=secret.name, problem=problem)
        if len(password) >= MIN_SECRET_CHARACTERS:  # a service may repeat it alone
            hidden.append(Secret(secret.name, password))
    encoded = b64encode(pair.encode()).decode()
    return Carried({"Authorization": f"Basic {encoded}"}, Redactor(hidden))
