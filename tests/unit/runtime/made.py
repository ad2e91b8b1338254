"""A claimed Run in a store in memory, and its journal, driven by hand."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from psych_runtime._system import System
from psych_runtime.core.awaited import Awaited
from psych_runtime.core.codec import Position, decode, seal
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance
from psych_runtime.core.streaks import Streaks
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Sealed, Store, Unit
from psych_runtime.runtime.admission import admit, run_admitted
from psych_runtime.runtime.journal import Flushes, Journal
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import LogBuilder
from psych_schema.common import Scope
from psych_schema.model import TextPart, UserMessage
from psych_schema.record import (
    AdvisoryAdded,
    AttemptEnded,
    QueueCancelled,
    QueueEnqueued,
    Record,
    RunSettled,
)
from tests.unit.core.drafts import draft

SYSTEM = System()
TENANT = "acme"


class Quiet:
    """Flushes nothing; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def dirty(self, journal: Journal) -> None:
        """Count."""
        self.asked += 1


class Made(NamedTuple):
    """A Run that this attempt holds."""

    store: Store
    run: str
    journal: Journal
    kicks: list[None]


async def held(store: Store | None = None, flushes: Flushes | None = None) -> Made:
    """Admit and claim a Run; return it with its journal at seq 2."""
    store = MemoryStore() if store is None else store
    commit = SYSTEM.new_id("com")
    record = run_admitted(
        SYSTEM, version="0" * 64, scope=Scope(tenant=TENANT), input={"message": "Go."}
    )
    await store.commit([Unit(commit, TENANT, (admit(record, commit_id=commit, system=SYSTEM),))])
    header = await store.header(TENANT, record.run_id)
    claim = Claim.of(header, worker=SYSTEM.new_id("wrk"), crashes=0)
    await store.commit([claim_unit(header, claim, system=SYSTEM)])
    state, conversation = RunState(), Conversation()
    for row in await store.read(TENANT, record.run_id):
        entry = decode(row)
        advance(state, entry)
        conversation.add(entry.record)
    kicks: list[None] = []
    journal = Journal(
        tenant=TENANT,
        run_id=record.run_id,
        epoch=1,
        crashes=0,
        state=state,
        conversation=conversation,
        awaited=Awaited(),
        streaks=Streaks(),
        flushes=Quiet() if flushes is None else flushes,
        system=SYSTEM,
        on_foreign=lambda: kicks.append(None),
    )
    return Made(store, record.run_id, journal, kicks)


def advisory(run: str, text: str = "Mind the gap.") -> AdvisoryAdded:
    """Return a note."""
    return AdvisoryAdded(
        run_id=run,
        id=SYSTEM.new_id("rec"),
        at=SYSTEM.now(),
        advisory_id=SYSTEM.new_id("adv"),
        code="test",
        message=text,
    )


def settled(run: str, state: str = "completed") -> RunSettled:
    """Return a decision that ends everything."""
    assert state in ("completed", "failed")
    return RunSettled(
        run_id=run,
        id=SYSTEM.new_id("rec"),
        at=SYSTEM.now(),
        state="completed" if state == "completed" else "failed",
    )


def compacting(run: str) -> tuple[Record, Record]:
    """Return notes of a model call that sums up."""
    call, envelope = "mc_" + "1" * 26, {"run_id": run, "at": SYSTEM.now()}
    log = LogBuilder()
    started = draft(log, "model.started", call=call, turn=None, purpose="compaction")
    completed = draft(log, "model.completed", call=call, turn=None)
    return started.model_copy(update=envelope), completed.model_copy(update=envelope)


def compacted(run: str) -> Record:
    """Return a decision that names a record which is not there."""
    record = draft(LogBuilder(), "context.compacted", call="mc_" + "1" * 26)
    return record.model_copy(update={"run_id": run, "at": SYSTEM.now()})


def ended(run: str) -> AttemptEnded:
    """Return a decision that lets the Run go."""
    return AttemptEnded(run_id=run, id=SYSTEM.new_id("rec"), at=SYSTEM.now(), reason="drained")


def steer(run: str, text: str = "Be brief.") -> QueueEnqueued:
    """Return an outside record."""
    return QueueEnqueued(
        run_id=run,
        id=SYSTEM.new_id("rec"),
        at=SYSTEM.now(),
        entry_id=SYSTEM.new_id("ent"),
        queue="steer",
        message=UserMessage(parts=(TextPart(text=text),)),
    )


def cancel(run: str, entry: str) -> QueueCancelled:
    """Return an outside record that takes an entry back."""
    return QueueCancelled(run_id=run, id=SYSTEM.new_id("rec"), at=SYSTEM.now(), entry_id=entry)


async def write(made: Made, *drafts: Record, epoch: int = 0, commit: str | None = None) -> None:
    """Append records as somebody else does, whatever they are."""
    await _append(made, await _sealed(made, drafts, epoch, commit))


async def write_hidden(made: Made) -> str:
    """Append a record in a form that this build does not know; return its hash."""
    [sealed] = await _sealed(made, [steer(made.run).model_copy(update={"v": 2})], 0, None)
    row = sealed.row.model_copy(update={"body": "B261130171828208752?" + sealed.row.body})
    await _append(made, [sealed._replace(row=row)])
    return sealed.hash


async def _sealed(
    made: Made, drafts: Sequence[Record], epoch: int, commit: str | None
) -> list[Sealed]:
    header = await made.store.header(TENANT, made.run)
    return seal(
        drafts,
        Position(header.head, header.head_hash, header.head_at),
        tenant=TENANT,
        epoch=epoch,
        commit_id=SYSTEM.new_id("com") if commit is None else commit,
        salts=iter(SYSTEM.salt, ""),
    )


async def _append(made: Made, records: Sequence[Sealed]) -> None:
    first = records[0].record
    change = Change(made.run, first.seq - 1, None, tuple(records), HeaderChange())
    assert await made.store.commit([Unit(first.commit, TENANT, (change,))]) == [Committed()]


async def catch_up(made: Made) -> None:
    """Let the journal absorb what stands behind its head."""
    after = made.journal.position.seq
    made.journal.absorb(await made.store.read(TENANT, made.run, after=after))


async def types_of(made: Made) -> list[str]:
    """Return the types in the log."""
    return [row.type for row in await made.store.read(TENANT, made.run)]


async def begun(task: "asyncio.Task[None]") -> "asyncio.Task[None]":
    """Let a task run until it waits."""
    for _ in range(3):
        await asyncio.sleep(0)
    return task
