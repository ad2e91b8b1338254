"""From a URL to a store (ST-3): what it names decides which adapter is loaded."""

import difflib
import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from psych_runtime.errors import UnsupportedStore
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore

__all__ = ["open_store"]

_SCHEMES: Final = ("memory", "sqlite")
_LATER: Final = ("dynamodb", "mariadb", "mysql", "postgres", "postgresql")
_OPTIONS: Final = ("busy_timeout_seconds", "max_page_count", "mode")
_PREFIX: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}|")
_FORMS: Final = "use memory://, sqlite:///runs.db or sqlite:////var/lib/runs.db"


def open_store(url: str, *, prefix: str = "") -> Store:
    """Return the store that `url` names; enter it with `async with` before anything else.

    A SQLite file that does not exist is created; its tables are made by `migrate()` alone.

    Args:
        url: memory://, sqlite:///relative.db or sqlite:////absolute.db. SQLite takes the
            options mode (rwc, rw or ro), busy_timeout_seconds and max_page_count.
        prefix: goes before every table's name, so that a database can be shared.

    Raises:
        UnsupportedStore: the URL names nothing that this build can open; it says what can be.
            What is wrong with the file itself is told when the store is entered.
    """
    if not _PREFIX.fullmatch(prefix):
        raise UnsupportedStore(
            problem=f"prefix {prefix!r}", remedy="use lower-case letters, digits and _"
        )
    scheme = url.partition("://")[0].partition("+")[0].lower() if "://" in url else ""
    if scheme == "memory":
        return MemoryStore()
    if scheme == "sqlite":
        return _open_sqlite(url, prefix)
    raise _refusal(url, scheme)


def _open_sqlite(url: str, prefix: str) -> Store:
    # loaded here, because not every Python has sqlite3: a browser's has none
    from psych_runtime.store.sqlite._connect import SqliteOptions
    from psych_runtime.store.sqlite.store import SqliteStore

    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path or path == ":memory:":
        remedy = "for a store in memory use memory://" if ":memory:" in url else _FORMS
        raise UnsupportedStore(problem=f"no file in {url!r}", remedy=remedy)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise UnsupportedStore(
                problem=f"unknown option {name!r} in {url!r}", remedy=_nearest(name, _OPTIONS)
            )
    return SqliteStore(
        SqliteOptions(
            path=path,
            prefix=prefix,
            mode=_mode(options),
            busy_timeout_seconds=_number(options, "busy_timeout_seconds", 0.1, 2.0),
            max_page_count=int(_number(options, "max_page_count", 1, 0)) or None,
        )
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


def _number(options: Mapping[str, str], name: str, least: float, default: float) -> float:
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


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"


def _refusal(url: str, scheme: str) -> UnsupportedStore:
    if scheme in _LATER:
        return UnsupportedStore(problem=f"{scheme} stores are not in this build", remedy=_FORMS)
    if not scheme:
        remedy = f"{_FORMS}; a file is sqlite:///{url}" if url.endswith(".db") else _FORMS
        return UnsupportedStore(problem=f"{url!r} is no store URL", remedy=remedy)
    near = difflib.get_close_matches(scheme, _SCHEMES + _LATER, 1)
    hint = f"did you mean {near[0]}://? " if near else ""
    return UnsupportedStore(problem=f"unknown store {scheme}://", remedy=hint + _FORMS)
