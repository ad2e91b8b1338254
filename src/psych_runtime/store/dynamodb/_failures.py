"""What the errors of DynamoDB and of its client mean for the store, in one place.

Their texts are not passed on: they may tell a session token, a signed request or an address
with a password. The code that the service gave, or the error's kind, says enough.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from psych_runtime.errors import (
    PayloadTooLarge,
    PsychError,
    SchemaMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    UnsupportedStore,
)
from psych_runtime.store.dynamodb._wire import Item, item_of

__all__ = ["Again", "Exists", "Reason", "Refused", "translate"]

_HELD: Final = "ConditionalCheckFailed"
_TRANSIENT: Final = frozenset(
    {
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",  # too many changes of tables at once
        "ProvisionedThroughputExceeded",  # as a reason of a transaction
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_CREDENTIALS: Final = "check the credentials of the usual AWS chain (environment, profile, role)"
_PERMISSIONS: Final = (
    "allow GetItem, BatchGetItem, Query, PutItem, UpdateItem, DeleteItem, BatchWriteItem and "
    "ConditionCheckItem on the tables and on their indexes"
)
_REMEDIES: Final[Mapping[str, str]] = {
    "AccessDeniedException": _PERMISSIONS,
    "AccessDenied": _PERMISSIONS,
    "ExpiredToken": _CREDENTIALS,
    "ExpiredTokenException": _CREDENTIALS,
    "IncompleteSignature": _CREDENTIALS,
    "IncompleteSignatureException": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "InvalidSignatureException": "check the secret key, and set this machine's clock",
    "MissingAuthenticationToken": _CREDENTIALS,
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "NotAuthorized": _PERMISSIONS,
    "OptInRequired": "enable DynamoDB in this account and region",
    "RequestExpired": "set this machine's clock",
    "SignatureDoesNotMatch": "check the secret key, and set this machine's clock",
    "UnrecognizedClientException": _CREDENTIALS,
}
_AWAY: Final = (
    "ChecksumError",
    "ConnectionError",
    "CredentialRetrievalError",  # a role's credentials come over the network, too
    "HTTPClientError",
    "IncompleteReadError",
    "MetadataRetrievalError",
)
_UNKNOWN_CALLER: Final = (
    "NoAuthTokenError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "SSOError",
    "TokenRetrievalError",
)
_LAYOUT: Final = "use another prefix, or the tables that `migrate()` makes"


class Reason(NamedTuple):
    """Why one write of a transaction was refused; `held` is False where it was not.

    `item` is what stands there, None when nothing does.
    """

    held: bool
    item: Item | None


class Refused(Exception):
    """A condition does not hold: nothing was written, by this try.

    `doubtful`: an earlier try of the same request got no answer, so it may have been that one.
    """

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__()
        self.reasons = reasons
        self.doubtful = False


class Exists(Exception):
    """The table or index is there already, or is being made."""


class Again(Exception):
    """Send the same request again; `done` tells whether it may have happened."""

    def __init__(self, problem: str, *, done: bool) -> None:
        super().__init__(problem)
        self.problem = problem
        self.done = done


def translate(error: Exception, operation: str) -> Exception:
    """Return Again, Exists, Refused, what the port says, or `error` itself where it is a bug.

    `operation` is what was asked for.
    """
    if isinstance(error, PsychError):
        return error
    code, status = _answer(error)
    problem = f"DynamoDB, {operation}: {code or type(error).__name__}"
    if code:
        return _translate_code(error, code, status, problem)
    if isinstance(error, TimeoutError):
        return Again(problem, done=True)
    from botocore import exceptions as botocore  # aioboto3 has it loaded
    from botocore import parsers

    if isinstance(error, (parsers.ResponseParserError, *_kinds(botocore, _AWAY))):
        return Again(problem, done=True)
    if _is_transport(error):
        return Again(problem, done=True)
    if isinstance(error, _kinds(botocore, _UNKNOWN_CALLER)):
        return StoreDenied(problem=problem, remedy=_CREDENTIALS)
    if isinstance(error, botocore.BotoCoreError):
        remedy = "check region, endpoint_url and the AWS configuration"
        return UnsupportedStore(problem=problem, remedy=remedy)
    return error


def _translate_code(error: Exception, code: str, status: int, problem: str) -> Exception:
    if code == "TransactionCanceledException":
        return _cancelled(error, problem)
    if code == "ConditionalCheckFailedException":
        return Refused((Reason(True, item_of(_response(error).get("Item"))),))
    if code == "ResourceInUseException":
        return Exists()
    if code in _TRANSIENT or status == 429:
        return Again(problem, done=code == "TransactionInProgressException")
    if status >= 500:
        return Again(problem, done=True)
    if code in ("ResourceNotFoundException", "TableNotFoundException"):
        return SchemaMissing(problem=f"{problem}: a table or an index of it is missing")
    if code == "ValidationException":
        return _invalid(error, problem)
    if code == "ItemCollectionSizeLimitExceededException":
        return StoreFull(problem=problem)
    if code in _REMEDIES or status in (401, 403):
        return StoreDenied(problem=problem, remedy=_REMEDIES.get(code, _PERMISSIONS))
    return error


def _cancelled(error: Exception, problem: str) -> Exception:
    """Return what the reasons of a cancelled transaction mean together."""
    told = _response(error).get("CancellationReasons")
    listed = told if isinstance(told, Sequence) else ()
    reasons = [each for each in listed if isinstance(each, Mapping)]
    codes = [str(each.get("Code") or "None") for each in reasons]
    for code in codes:
        if code in _TRANSIENT:  # the other conditions are judged when all of them can be
            return Again(f"{problem}: {code}", done=False)
    if any(code in ("ValidationError", "ItemCollectionSizeLimitExceeded") for code in codes):
        return _too_large()
    if _HELD not in codes:
        return Again(problem, done=False)
    return Refused(
        [
            Reason(code == _HELD, item_of(each.get("Item")))
            for code, each in zip(codes, reasons, strict=True)
        ]
    )


def _invalid(error: Exception, problem: str) -> Exception:
    message = _message(error)
    if "size" in message and "exceeded" in message:
        return _too_large()
    if "does not match the schema" in message or "missing the key" in message:
        return UnsupportedStore(problem=f"{problem}: the tables have other keys", remedy=_LAYOUT)
    if "specified index" in message:
        return SchemaMissing(problem=f"{problem}: an index is missing")
    return error


def _too_large() -> StoreError | PayloadTooLarge:
    return PayloadTooLarge(what="an item of DynamoDB", size_bytes=409_601, bound_bytes=409_600)


def _response(error: Exception) -> Mapping[str, object]:
    response: object = getattr(error, "response", None)
    return response if isinstance(response, Mapping) else {}


def _message(error: Exception) -> str:
    told = _response(error).get("Error")
    return str(told.get("Message") or "").lower() if isinstance(told, Mapping) else ""


def _answer(error: Exception) -> tuple[str, int]:
    """Return code and HTTP status of an error that the service answered with."""
    response = _response(error)
    if not response:
        return "", 0
    told, about = response.get("Error"), response.get("ResponseMetadata")
    code = told.get("Code") if isinstance(told, Mapping) else None
    status = about.get("HTTPStatusCode") if isinstance(about, Mapping) else None
    return str(code or "Unknown"), status if isinstance(status, int) else 0


def _kinds(module: object, names: Iterable[str]) -> tuple[type[Exception], ...]:
    return tuple(getattr(module, name) for name in names)


def _is_transport(error: Exception) -> bool:
    """Tell whether a connection broke: the client lets some errors of its transport through."""
    return isinstance(error, OSError) or type(error).__module__.startswith("aiohttp.")
