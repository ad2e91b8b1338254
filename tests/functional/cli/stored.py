"""Runs in a SQLite file, for commands that read them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

from jsonschema import Draft202012Validator

from psych_runtime.core.codec import sha256
from psych_runtime.ports.store import Change, HeaderChange, Sealed, Store, Unit
from psych_runtime.store.open import open_store
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import Cost
from psych_schema.store import RecordRow

__all__ = ["asking", "busy", "do", "killed", "published", "stored", "unreadable", "waiting"]

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


def asking(*, first_id: int = 1) -> LogBuilder:
    """Return a Run that waits for consent and for an answer, with a message in its queue."""
    log = LogBuilder(tenant="local", system=CountingSystem(first_id=first_id))
    log.admit("hi")
    log.claim()
    charge, ask = log.turn(["charge", "ask"])
    log.request(charge, arguments={"cents": 5}, expires_at=log.header.head_at)
    log.start(ask)
    log.wait("question", call=ask, ask={"question": "which?"}, expires_at=log.header.head_at)
    log.send("and?")
    log.suspend(wake_at=log.header.head_at)
    return log


def busy(*, first_id: int = 1) -> LogBuilder:
    """Return a Run with a call under way, an abort, and a model call that failed."""
    log = LogBuilder(tenant="local", system=CountingSystem(first_id=first_id))
    log.admit("hi", deadline_seconds=60.0)
    log.claim()
    log.begin_turn()
    log.fail(log.ask())
    [call] = log.answer(log.ask(tries=2), ["look"], cost=Cost(amount="1.50", source="provider"))
    log.start(call)
    log.abort()
    return log


def unreadable(url: str, log: LogBuilder, body: str, *, type: str = "turn.started") -> None:
    """Commit a row behind `log` whose body nobody can read."""
    seq = len(log.rows) + 1
    row = RecordRow(run_id=log.run_id, seq=seq, tenant="local", type=type, body=body)
    sealed = Sealed(row, log.entries[-1].record, sha256(body))
    change = Change(log.run_id, seq - 1, None, (sealed,), HeaderChange())

    async def write(store: Store) -> None:
        await store.commit([Unit("com_x", "local", (change,))])

    do(url, write)


@cache
def published(name: str) -> Draft202012Validator:
    """Return the validator of a published schema."""
    return Draft202012Validator(json.loads((_SCHEMAS / f"{name}.json").read_text("utf-8")))
