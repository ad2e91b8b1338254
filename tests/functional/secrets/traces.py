"""Searches everything that a Run leaves behind, by where it is."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from psych_runtime import (
    ModelRequest,
    RunFailed,
    Scope,
    Store,
    answer,
    list_runs,
    records,
    report,
    state,
    status,
    stream_text,
    thread,
    verify,
)
from tests.canary import HEADER_CANARY, Finding, in_error, in_folder, in_object, in_texts
from tests.functional.cli.inside import psych
from tests.functional.secrets.places import Place

__all__ = ["ACME", "Lived", "in_commands", "leaks", "left_of"]

ACME: Final = Scope(tenant="acme", principal="ann")

_COMMANDS: Final = (
    ("log", "RUN"),
    ("log", "RUN", "--json"),
    ("report", "RUN"),
    ("verify",),
    ("doctor", "--rebuild", "--json"),
)


class Lived(NamedTuple):
    """A Run that has ended, and what became of it outside of the store.

    `shown` is what people saw meanwhile.
    """

    run_id: str
    version: str
    requests: Sequence[ModelRequest] = ()
    blobs: Path | None = None
    shown: Sequence[str] = ()


async def left_of(place: Place, lived: Lived) -> dict[str, list[Finding]]:
    """Search the store, its views, blobs, and what models and people were told."""
    requests = [request.model_dump_json() for request in lived.requests]
    found = {
        "store": await place.search(),
        "views": await _in_views(place.store, lived),
        "requests": in_texts({"requests": requests}, HEADER_CANARY),
        "shown": in_texts({"shown": lived.shown}, HEADER_CANARY),
    }
    if lived.blobs is not None:
        found["blobs"] = in_folder(lived.blobs, HEADER_CANARY)
    return found


def leaks(found: Mapping[str, list[Finding]]) -> dict[str, list[Finding]]:
    """Leave the places where something was found."""
    return {name: all_there for name, all_there in found.items() if all_there}


async def in_commands(
    place: Place, lived: Lived, *commands: Sequence[str]
) -> dict[str, list[Finding]]:
    """Search what these commands print, on lines of any width; all of them unless said."""
    where = ("--store", place.url, "--prefix", place.prefix, "--tenant", ACME.tenant)
    shown: dict[str, object] = {}
    for command in commands or _COMMANDS if place.url != "memory://" else ():
        words = [lived.run_id if word == "RUN" else word for word in command]
        ran = await asyncio.to_thread(psych, *words, *where, COLUMNS="100000")
        assert ran.code == 0, ran.err
        shown[" ".join(command)] = [ran.out, ran.err]
    return {name: in_texts({name: said}, HEADER_CANARY) for name, said in shown.items()}


async def _in_views(store: Store, lived: Lived) -> list[Finding]:
    """Search what readers are given, and how it looks as JSON."""
    run_id = lived.run_id
    views = {
        "status": await status(store, run_id, scope=ACME),
        "answer": await answer(store, run_id, scope=ACME),
        "report": await report(store, run_id, scope=ACME),
        "thread": await thread(store, run_id, scope=ACME),
        "verify": await verify(store, run_id, scope=ACME),
    }
    shown: dict[str, object] = {
        "records": await records(store, run_id, scope=ACME),
        "runs": await list_runs(store, scope=ACME),
        "version": await store.version(ACME.tenant, lived.version),
        **{name: [view, view.model_dump_json()] for name, view in views.items()},
    }
    folded = await state(store, run_id, scope=ACME)
    found = in_object(folded, HEADER_CANARY, where="state")
    try:
        shown["text"] = [one async for one in stream_text(store, run_id, scope=ACME)]
    except RunFailed as error:
        found += in_error(error, HEADER_CANARY, where="error")
    return found + in_texts(shown, HEADER_CANARY)
