"""From a URL to where the tables are: dynamodb://eu-west-1, and what may be said behind `?`."""

from typing import Final
from urllib.parse import parse_qsl, urlsplit

from psych_runtime.errors import UnsupportedStore
from psych_runtime.store.dynamodb._client import DynamoOptions

__all__ = ["options_of"]

_NAMES: Final = ("endpoint_url", "patience_seconds", "shards")
_FORMS: Final = (
    "use dynamodb://eu-west-1, or dynamodb:// for the region of the AWS chain; an emulator is "
    "dynamodb://us-east-1?endpoint_url=http://127.0.0.1:8000"
)


def options_of(url: str, prefix: str) -> DynamoOptions:
    """Return what `url` says; credentials come from the AWS chain alone.

    UnsupportedStore: it says something else. What it says is not repeated: it may be a secret.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc or ":" in parts.netloc or parts.path.strip("/") or parts.fragment:
        raise UnsupportedStore(problem="a dynamodb URL names a region only", remedy=_FORMS)
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in asked:
        if name not in _NAMES:
            raise UnsupportedStore(
                problem=f"unknown option {name!r} of a dynamodb URL",
                remedy=f"use one of {', '.join(_NAMES)}",
            )
    options = DynamoOptions(region=parts.netloc or None, prefix=prefix)
    if "endpoint_url" in asked:
        options = options._replace(endpoint_url=_address(asked["endpoint_url"]))
    if "patience_seconds" in asked:
        seconds = _number("patience_seconds", asked["patience_seconds"], 0.1)
        options = options._replace(patience_seconds=seconds)
    if "shards" in asked:
        options = options._replace(shards=int(_number("shards", asked["shards"], 1)))
    return options


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise UnsupportedStore(
            problem="endpoint_url is no address",
            remedy="use http://host:port or https://host, without a user",
        )
    return text


def _number(name: str, text: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not least <= value < float("inf"):
        raise UnsupportedStore(problem=f"{name}={text}", remedy=f"use a number, {least:g} or more")
    return value
