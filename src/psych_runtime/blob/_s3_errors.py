"""What the errors of S3 and of its client mean for blobs, in one place.

The texts of those errors are not passed on: they may say a credential helper's output or an
address with a password. The code that the service gave, or the error's kind, says enough.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from psych_runtime.errors import BlobStoreFull, BlobStoreUnusable, BlobUnavailable, PsychError

__all__ = ["code_of", "translate", "translate_code"]

_TRANSIENT: Final = frozenset(
    {
        "BadDigest",  # changed on its way
        "InternalError",
        "OperationAborted",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
        "XAmzContentChecksumMismatch",
    }
)
_FULL: Final = frozenset({"QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"})

_CREDENTIALS: Final = "check the credentials of the usual AWS chain (environment, profile, role)"
_REGION: Final = "give the region that the bucket is in, and its endpoint"
_PERMISSIONS: Final = (
    "allow s3:GetObject, s3:PutObject and s3:DeleteObject below the prefix, "
    "and s3:ListBucket on the bucket"
)
_REMEDIES: Final[Mapping[str, str]] = {
    "AccessDenied": _PERMISSIONS,
    "AllAccessDisabled": _PERMISSIONS,
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": _CREDENTIALS,
    "Forbidden": _PERMISSIONS,
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": _CREDENTIALS,
    "InvalidToken": _CREDENTIALS,
    "NoSuchBucket": "create the bucket, or correct its name: it is never created by itself",
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": "set this machine's clock",
    "SignatureDoesNotMatch": _CREDENTIALS,
    "TokenRefreshRequired": _CREDENTIALS,
}
_OTHERWISE: Final = "look the code up at the service; repeating changes nothing"


def code_of(error: BaseException) -> str:
    """Return the code that the service gave, empty for an error that is not its answer."""
    return _answer(error)[0]


def _answer(error: BaseException) -> tuple[str, int]:
    """Return code and HTTP status of an error that the service answered with."""
    response: object = getattr(error, "response", None)
    if not isinstance(response, Mapping):
        return "", 0
    told, about = response.get("Error"), response.get("ResponseMetadata")
    code = told.get("Code") if isinstance(told, Mapping) else None
    status = about.get("HTTPStatusCode") if isinstance(about, Mapping) else None
    return str(code or "Unknown"), status if isinstance(status, int) else 0


def translate(error: Exception, where: str) -> Exception:
    """Return what the port says for `error`, or `error` itself where it is nobody's answer."""
    if isinstance(error, PsychError):
        return error
    from botocore import exceptions as botocore  # aioboto3 has it loaded

    code, status = _answer(error)
    if code:
        return translate_code(code, status, where)
    problem = f"{where}: {type(error).__name__}"
    if isinstance(error, _kinds(botocore, _AWAY)) or _is_transport(error):
        return BlobUnavailable(problem=problem)
    if isinstance(error, _kinds(botocore, _UNKNOWN_CALLER)):
        return BlobStoreUnusable(problem=problem, remedy=_CREDENTIALS)
    if isinstance(error, botocore.BotoCoreError):
        remedy = "check bucket, region, endpoint_url and the AWS configuration"
        return BlobStoreUnusable(problem=problem, remedy=remedy)
    return error


_AWAY: Final = (
    "ChecksumError",
    "ConnectionError",
    "CredentialRetrievalError",  # a role's credentials come over the network, too
    "FlexibleChecksumError",
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


def _kinds(module: object, names: Iterable[str]) -> tuple[type[Exception], ...]:
    return tuple(getattr(module, name) for name in names)


def _is_transport(error: Exception) -> bool:
    """Tell whether a connection broke: the client lets some errors of its transport through."""
    return isinstance(error, OSError) or type(error).__module__.startswith("aiohttp.")


def translate_code(code: str, status: int, where: str) -> Exception:
    """Return what the port says for an answer of the service; status 0 is not known."""
    problem = f"{where}: {code}"
    if code in _FULL or status == 507:
        return BlobStoreFull(problem=problem)
    if code in _TRANSIENT or status == 429 or status >= 500:
        return BlobUnavailable(problem=problem)
    remedy = _REMEDIES.get(code) or (_PERMISSIONS if status == 403 else _OTHERWISE)
    return BlobStoreUnusable(problem=problem, remedy=remedy)
