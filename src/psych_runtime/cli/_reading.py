"""What every command that reads a store begins with: where it is, whose Runs, and one look.

Nothing is executed and nothing is written; a SQLite file that is not there is not made.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from psych_runtime.cli.output import well_formed
from psych_runtime.errors import UnsupportedStore
from psych_runtime.ports.store import Store
from psych_runtime.store._shown_url import shown_url
from psych_runtime.store.open import open_store
from psych_schema.common import Scope

__all__ = ["Prefix", "RunId", "StoreUrl", "Tenant", "look", "scope_of", "shown", "sqlite_path"]


def _unicode(text: str) -> str:
    """Return `text`; wrong usage when no store could look for it."""
    if well_formed(text) != text:
        raise typer.BadParameter("is not Unicode")
    return text


StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="PSYCH_STORE",
        metavar="URL",
        help="Where the Runs are: sqlite:///runs.db, postgresql://user:password@host/database, ...",
    ),
]
Prefix = Annotated[
    str,
    typer.Option("--prefix", envvar="PSYCH_PREFIX", help="Before every table's name."),
]
Tenant = Annotated[str, typer.Option("--tenant", callback=_unicode, help="Whose Runs.")]
RunId = Annotated[
    str,
    typer.Argument(metavar="RUN_ID", callback=_unicode, help="A Run; `psych runs` lists them."),
]


def look[T](url: str, ask: Callable[[Store], Awaitable[T]], *, prefix: str = "") -> T:
    """Open the store, which must exist, ask it, close it; return what was asked for."""

    async def run() -> T:
        async with open_store(_existing(url), prefix=prefix) as store:
            return await ask(store)

    return asyncio.run(run())


def scope_of(tenant: str) -> Scope:
    """Return the scope of a tenant; wrong usage when its name cannot be one."""
    if not 1 <= len(tenant) <= 128:
        raise typer.BadParameter("a tenant has 1 to 128 characters", param_hint="--tenant")
    return Scope(tenant=tenant)


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL, None for another store."""
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    return Path(path) if parts.scheme.startswith("sqlite") and path else None


def shown(url: str) -> str:
    """Return `url` without its password (SEC-2)."""
    return shown_url(url)


def _existing(url: str) -> str:
    """Return `url` so that opening it creates nothing."""
    path = sqlite_path(url)
    if path is None or "mode=" in urlsplit(url).query:
        return url
    if not path.exists():
        raise UnsupportedStore(
            problem=f"no file {path}", remedy="check --store; migrate() creates it"
        )
    return f"{url}{'&' if '?' in url else '?'}mode=rw"
