"""A Run at rest: what people may do with one whose log does not fit, or whose tool is gone."""

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from psych_runtime._decisions import Choice, Edit, decide
from psych_runtime._messages import cancel, send
from psych_runtime._reads import status
from psych_runtime.api import interrupt
from psych_runtime.errors import ApprovalNotFound, CorruptLog
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_schema.common import Queue
from psych_schema.record import ApprovalRequested
from psych_schema.store import RecordRow
from tests.functional.engine.behaviour.people import Till, asking
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    eventually,
    kinds_of,
    of_type,
    runtime,
)
from tests.functional.engine.holed import holed

type Act = Callable[[Store, str, str], Awaitable[object]]


async def resting(store: Store, crew: Crew) -> tuple[str, str]:
    """Return a Run that asks for consent, and the call; no worker runs any more."""
    run = await asking(store, crew, Till().pay, policy=AskUnlessReadOnly())
    await crew.stop(run.worker)
    return run.run_id, run.one.call_id


def deciding(choice: Choice) -> Act:
    """Return a decision about the call."""
    return lambda store, run_id, call_id: decide(
        store, run_id, scope=ACME, decisions={call_id: choice}, by="ann"
    )


def sending(queue: Queue) -> Act:
    """Return a message into a queue."""
    return lambda store, run_id, _: send(store, run_id, scope=ACME, message="Hm.", queue=queue)


TAKEN: dict[str, Act] = {
    "approve": deciding("approve"),
    "edit": deciding(Edit({"to": "bob", "amount": 1})),
    "steer": sending("steer"),
    "next_run": sending("next_run"),
    "interrupt": lambda store, run_id, _: interrupt(store, run_id, scope=ACME, by="ann"),
}
"""What people may do with a Run that asks for consent."""

NAMED: dict[str, Act] = {
    "approve": deciding("approve"),
    "edit": deciding(Edit({"to": "bob", "amount": 1})),
    "decide about another": lambda store, run_id, _: decide(
        store, run_id, scope=ACME, decisions={"call_x": "deny"}, by="ann"
    ),
    "cancel": lambda store, run_id, _: cancel(store, run_id, "ent_x", scope=ACME),
}
"""What reads the request for consent, or the log to say why nothing can be done."""


@pytest.mark.parametrize("name", NAMED)
async def test_log_3_nothing_is_written_where_what_is_named_is_lost(
    store: Store, crew: Crew, name: str
) -> None:
    """Its header does not know yet; whoever reads the log is told."""
    run_id, call_id = await resting(store, crew)
    [asked] = await of_type(store, run_id, ApprovalRequested)
    head = (await store.header(ACME.tenant, run_id)).head
    broken = holed(store, asked.seq)
    with pytest.raises(CorruptLog, match="begin another thread") as caught:
        await NAMED[name](broken, run_id, call_id)
    assert caught.value.reason == "seq_not_next"
    assert (await store.header(ACME.tenant, run_id)).head == head


@pytest.mark.parametrize("place", [2, -1])
@pytest.mark.parametrize("name", TAKEN)
async def test_log_3_what_is_added_to_a_log_with_a_hole_wakes_who_finds_it(
    store: Store, crew: Crew, name: str, place: int
) -> None:
    """Nobody read it since it rests; status tells at once, the worker marks it and does nothing."""
    run_id, call_id = await resting(store, crew)
    head = (await store.header(ACME.tenant, run_id)).head
    broken = holed(store, place if place > 0 else head)
    found = await status(broken, run_id, scope=ACME)
    assert found.blocked_on is not None
    assert found.blocked_on.code == "corrupt_log"
    await TAKEN[name](broken, run_id, call_id)
    await crew.start(runtime(broken, FakeModel(), Till().pay))

    async def marked() -> bool:
        return (await store.header(ACME.tenant, run_id)).state == "corrupt"

    await eventually(marked)
    assert (await kinds_of(store, run_id))[head + 1 :] == ["attempt.started"]
    with pytest.raises(CorruptLog, match="begin another thread"):
        await TAKEN[name](broken, run_id, call_id)


class Counted:
    """A store, and how many records it has given."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.records = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Count them."""
        rows = await self._inner.read(tenant, run_id, after=after, limit=limit)
        self.records += len(rows)
        return rows


@pytest.mark.parametrize(
    ("name", "records"),
    [("steer", 0), ("next_run", 0), ("interrupt", 0), ("approve", 2), ("edit", 3)],
)
async def test_r_20_an_outside_writer_reads_only_what_it_names(
    store: Store, crew: Crew, name: str, records: int
) -> None:
    """The request for consent, for its arguments and for its phase; an edit the Run's salt."""
    run_id, call_id = await resting(store, crew)
    counted = Counted(store)
    await TAKEN[name](cast("Store", counted), run_id, call_id)
    assert counted.records == records


async def test_app_1_a_sound_log_still_tells_what_nobody_asked_about(
    store: Store, crew: Crew
) -> None:
    """Only a log that does not fit is called so."""
    run_id, call_id = await resting(store, crew)
    with pytest.raises(ApprovalNotFound):
        await NAMED["decide about another"](store, run_id, call_id)
    await NAMED["approve"](store, run_id, call_id)


async def test_pub_3_status_tells_that_no_worker_has_the_tool_of_an_approved_call(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Once the worker that had it is known to be gone."""
    run_id, call_id = await resting(store, crew)
    await TAKEN["approve"](store, run_id, call_id)
    clock.shift_seconds = 60
    await crew.start(runtime(store, FakeModel()))

    async def blocked() -> bool:
        return (await status(store, run_id, scope=ACME)).blocked_on is not None

    await eventually(blocked)
    found = (await status(store, run_id, scope=ACME)).blocked_on
    assert found is not None
    assert (found.code, found.tools) == ("no_worker_has_tool", ("code:pay",))
