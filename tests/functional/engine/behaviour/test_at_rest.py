"""A Run at rest: what people may do with one whose log does not fit, or whose tool is gone."""

from collections.abc import Awaitable, Callable

import pytest

from psych_runtime._decisions import Choice, Edit, decide
from psych_runtime._deliveries import deliver
from psych_runtime._messages import cancel, send
from psych_runtime._reads import status
from psych_runtime.api import interrupt
from psych_runtime.errors import ApprovalNotFound, CorruptLog
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_schema.record import ApprovalRequested
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    of_type,
    only,
    runtime,
)
from tests.functional.engine.holed import holed

type Act = Callable[[Store, str, str], Awaitable[object]]


async def pay(cents: int) -> str:
    """Pay.

    Args:
        cents: How much.
    """
    return f"paid {cents}"


async def resting(store: Store, crew: Crew) -> tuple[str, str]:
    """Return a Run that waits for consent, and the call; no worker runs any more."""
    model = FakeModel().turn(tool_calls=[("pay", {"cents": 3})]).turn(text="Done.")
    worker = await crew.start(runtime(store, model, pay, policy=AskUnlessReadOnly()))
    run_id = await admit(store, agent("pay"))

    async def rests() -> bool:
        return (await status(store, run_id, scope=ACME)).state == "suspended"

    await eventually(rests)
    await crew.stop(worker)
    return run_id, only(await of_type(store, run_id, ApprovalRequested)).call_id


def deciding(choice: Choice) -> Act:
    """Return a decision about the call."""
    return lambda store, run_id, call_id: decide(
        store, run_id, scope=ACME, decisions={call_id: choice}, by="ann"
    )


ACTS: dict[str, Act] = {
    "approve": deciding("approve"),
    "edit": deciding(Edit({"cents": 1})),
    "decide about another": lambda store, run_id, _: decide(
        store, run_id, scope=ACME, decisions={"call_x": "deny"}, by="ann"
    ),
    "steer": lambda store, run_id, _: send(store, run_id, scope=ACME, message="Hm."),
    "next_run": lambda store, run_id, _: send(
        store, run_id, scope=ACME, message="Hm.", queue="next_run"
    ),
    "cancel": lambda store, run_id, _: cancel(store, run_id, "ent_x", scope=ACME),
    "deliver": lambda store, run_id, _: deliver(store, run_id, scope=ACME, payload=1),
}


@pytest.mark.parametrize("name", ACTS)
async def test_log_3_nothing_is_added_to_a_log_at_rest_that_has_a_hole(
    store: Store, crew: Crew, name: str
) -> None:
    """Its header does not know yet, and nobody would ever read what is added."""
    run_id, call_id = await resting(store, crew)
    head = (await store.header(ACME.tenant, run_id)).head
    [asked] = await of_type(store, run_id, ApprovalRequested)
    for seq in (2, asked.seq, head):
        with pytest.raises(CorruptLog, match="begin another thread") as caught:
            await ACTS[name](holed(store, seq), run_id, call_id)
        assert (caught.value.reason, caught.value.seq) == ("seq_not_next", seq)
        found = await status(holed(store, seq), run_id, scope=ACME)
        assert found.blocked_on is not None
        assert found.blocked_on.code == "corrupt_log"
    assert (await store.header(ACME.tenant, run_id)).head == head


async def test_log_3_an_interrupt_of_such_a_run_is_taken(store: Store, crew: Crew) -> None:
    """It wakes a worker, which finds what is wrong and marks the Run."""
    run_id, _ = await resting(store, crew)
    await interrupt(holed(store, 2), run_id, scope=ACME, by="ann")
    await crew.start(runtime(holed(store, 2), FakeModel()))

    async def marked() -> bool:
        return (await store.header(ACME.tenant, run_id)).state == "corrupt"

    await eventually(marked)


async def test_app_1_a_sound_log_still_tells_what_nobody_asked_about(
    store: Store, crew: Crew
) -> None:
    """Only a log that does not fit is called so."""
    run_id, call_id = await resting(store, crew)
    with pytest.raises(ApprovalNotFound):
        await ACTS["decide about another"](store, run_id, call_id)
    await ACTS["approve"](store, run_id, call_id)


async def test_pub_3_status_tells_that_no_worker_has_the_tool_of_an_approved_call(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Once the worker that had it is known to be gone."""
    run_id, call_id = await resting(store, crew)
    await ACTS["approve"](store, run_id, call_id)
    clock.shift_seconds = 60
    await crew.start(runtime(store, FakeModel()))

    async def blocked() -> bool:
        return (await status(store, run_id, scope=ACME)).blocked_on is not None

    await eventually(blocked)
    found = (await status(store, run_id, scope=ACME)).blocked_on
    assert found is not None
    assert (found.code, found.tools) == ("no_worker_has_tool", ("code:pay",))
