"""The URL of a SQLite file."""

from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from psych_runtime.core.near import nearest
from psych_runtime.errors import UnsupportedStore
from psych_runtime.store._server_url import number
from psych_runtime.store.sqlite._connect import SqliteOptions

__all__ = ["sqlite_options"]

_OPTIONS: Final = ("busy_timeout_seconds", "max_page_count", "mode")


def sqlite_options(url: str, prefix: str, *, forms: str) -> SqliteOptions:
    """Return how a file is opened. UnsupportedStore: `forms` says how a URL is written."""
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path or path == ":memory:":
        remedy = "for a store in memory use memory://" if ":memory:" in url else forms
        raise UnsupportedStore(problem=f"no file in {url!r}", remedy=remedy)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            near = nearest(name, _OPTIONS)
            remedy = f"did you mean {near!r}?" if near else f"use one of {', '.join(_OPTIONS)}"
            raise UnsupportedStore(problem=f"unknown option {name!r} in {url!r}", remedy=remedy)
    return SqliteOptions(
        path=path,
        prefix=prefix,
        mode=_mode(options),
        busy_timeout_seconds=number(options, "busy_timeout_seconds", 0.1, 2.0),
        max_page_count=int(number(options, "max_page_count", 1, 0)) or None,
    )


def _mode(options: Mapping[str, str]) -> Literal["rwc", "rw", "ro"]:
    match options.get("mode", "rwc"):
        case "rwc":
            return "rwc"
        case "rw":
            return "rw"
        case "ro":
            return "ro"
        case mode:
            raise UnsupportedStore(problem=f"mode={mode}", remedy="use rwc, rw or ro")
