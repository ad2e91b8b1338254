"""The URL of a database server: what is ours in it, and what is the driver's."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from psych_runtime.core.near import nearest
from psych_runtime.errors import UnsupportedStore
from psych_runtime.store.sql._database import SqlOptions

__all__ = ["number", "server_options"]

_OPTIONS: Final = ("pool_size", "pooler", "timeout_seconds")
_FORM: Final = "use scheme://user:password@host:port/database, special characters as %XX"


def server_options(
    url: str,
    prefix: str,
    *,
    scheme: str,
    port: int,
    known: Sequence[str] | None = None,
    named: bool = False,
) -> SqlOptions:
    """Return how a server is reached. UnsupportedStore: an option that cannot be used.

    `known` are the driver's options, None for any; `named` whether it must name a database.
    `where` in the answer names host, port and database, never user or password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UnsupportedStore(problem="the URL has no host", remedy=_FORM) from None
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" or parts.fragment:
        raise UnsupportedStore(problem="the URL has / ? # or @ in user or password", remedy=_FORM)
    if named and not parts.path.strip("/"):
        raise UnsupportedStore(problem="the URL names no database", remedy=_FORM)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours: dict[str, str] = {name: given.pop(name) for name in _OPTIONS if name in given}
    for name in given:
        near = nearest(name, (*_OPTIONS, *(known or ())))
        if (known is not None and name not in known) or (known is None and near):
            names = ", ".join((*_OPTIONS, *(known or ())))
            remedy = f"did you mean {near!r}?" if near else f"use one of {names}"
            raise UnsupportedStore(problem=f"unknown option {name!r}", remedy=remedy)
    try:
        where = f"{parts.hostname or 'localhost'}:{parts.port or port}{parts.path}"
    except ValueError:
        problem = "the port of the URL is no number up to 65535"
        raise UnsupportedStore(problem=problem, remedy=_FORM) from None
    pooler = ours.get("pooler", "none")
    if pooler not in ("none", "transaction"):
        raise UnsupportedStore(problem=f"pooler={pooler}", remedy="use none or transaction")
    return SqlOptions(
        url=urlunsplit(parts._replace(scheme=scheme, query=urlencode(given))),
        where=where,
        prefix=prefix,
        pool_size=int(number(ours, "pool_size", 1, 8)),
        timeout_seconds=number(ours, "timeout_seconds", 0.1, 2.5),
        pooled=pooler == "transaction",
    )


def number(options: Mapping[str, str], name: str, least: float, default: float) -> float:
    """Return a number of the options. UnsupportedStore: it is none, or below `least`."""
    text = options.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not least <= value < float("inf"):
        raise UnsupportedStore(problem=f"{name}={text}", remedy=f"use a number, {least:g} or more")
    return value
