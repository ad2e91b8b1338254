"""Runs in a SQLite file, for commands that read them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

from jsonschema import Draft202012Validator

from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from psych_runtime.testing import CountingSystem, LogBuilder

__all__ = ["do", "killed", "published", "stored", "waiting"]

_SCHEMAS: Final = Path(__file__).parents[3] / "generated" / "schema"


def do(url: str, act: Callable[[Store], Awaitable[None]]) -> None:
    """Open a store, do something with it, close it."""

    async def run() -> None:
        async with open_store(url) as store:
            await act(store)

    asyncio.run(run())


def stored(folder: Path, *logs: LogBuilder) -> str:
    """Migrate a store in `folder`, commit the logs, and return the store's URL."""
    url = f"sqlite:///{folder / 'runs.db'}"

    async def write(store: Store) -> None:
        await store.migrate()
        for log in logs:
            await log.commit_to(store)

    do(url, write)
    return url


def killed(*, tenant: str = "local", first_id: int = 1) -> LogBuilder:
    """Return a Run whose worker died in the middle of a tool call; another one finished it."""
    log = LogBuilder(tenant=tenant, system=CountingSystem(first_id=first_id))
    log.admit({"message": "What does it cost?"})
    log.claim()
    look, charge = log.turn(["look", "charge"], text="Let me look.")
    log.start(look)
    log.start(charge)
    log.finish(look, "7 dollars")
    log.claim()
    log.finish(charge, outcome="unknown", duration_seconds=0.0)
    log.turn(text="It costs 7 dollars.")
    log.settle()
    return log


def waiting(*, first_id: int = 5000) -> LogBuilder:
    """Return a Run that nobody has taken yet."""
    log = LogBuilder(tenant="local", system=CountingSystem(first_id=first_id))
    log.admit("hi")
    return log


@cache
def published(name: str) -> Draft202012Validator:
    """Return the validator of a published schema."""
    return Draft202012Validator(json.loads((_SCHEMAS / f"{name}.json").read_text("utf-8")))
