"""What may be dispatched, and what is refused before anything is written (R-30, LOG-5)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
from pydantic import JsonValue

from psych_runtime import AgentSpec, ModelRef, Scope, Store, Version, publish
from psych_runtime._decisions import decide
from psych_runtime._deliveries import deliver
from psych_runtime._messages import cancel
from psych_runtime._reads import list_runs, records
from psych_runtime.api import dispatch, interrupt
from psych_runtime.errors import InvalidArgument, InvalidPayload, PayloadTooLarge
from psych_runtime.store.open import open_store
from psych_schema.record import RunAdmitted

ACME = Scope(tenant="acme")
BOUND = 256 * 1024


@pytest.fixture
async def store(url: str | None) -> AsyncIterator[Store]:
    """An empty store."""
    async with open_store(url or "memory://") as opened:
        await opened.migrate()
        yield opened


@pytest.fixture
async def version(store: Store) -> Version:
    """A published agent."""
    spec = AgentSpec(name="helper", instructions="Help.", model=ModelRef(model="fake"))
    return await publish(store, spec, scope=ACME)


async def _nothing_written(store: Store) -> None:
    assert (await list_runs(store, scope=ACME)).headers == ()


def _deep(levels: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("text", ["x" * BOUND, "é" * (BOUND // 2), "\x00" * (BOUND // 6 + 1)])
async def test_r_30_an_input_above_the_bound_is_refused(
    store: Store, version: Version, text: str
) -> None:
    """Measured as JSON in UTF-8; the error names size and bound."""
    with pytest.raises(PayloadTooLarge) as caught:
        await dispatch(store, version, scope=ACME, input={"message": text})
    assert caught.value.what == "input"
    assert caught.value.bound_bytes == BOUND
    assert caught.value.size_bytes > BOUND
    await _nothing_written(store)


async def test_r_30_an_input_at_the_bound_is_taken(store: Store, version: Version) -> None:
    """To the byte: quotes, braces and the name count."""
    text = "x" * (BOUND - len('{"message":""}'))
    run = await dispatch(store, version, scope=ACME, input={"message": text})
    [admitted] = await records(store, run.run_id, scope=ACME)
    assert isinstance(admitted, RunAdmitted)
    assert admitted.input == {"message": text}
    with pytest.raises(PayloadTooLarge):
        await dispatch(store, version, scope=ACME, input={"message": text + "x"})


@pytest.mark.parametrize(
    "value",
    ["a\ud800b", {"message": "\udfff"}, {"k\ud800": 1}, ["ok", "\ud83d"]],
)
async def test_log_5_a_lone_surrogate_is_refused(
    store: Store, version: Version, value: JsonValue
) -> None:
    """No store could give it back."""
    with pytest.raises(InvalidPayload) as caught:
        await dispatch(store, version, scope=ACME, input=value)
    assert caught.value.what == "input"
    await _nothing_written(store)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"message": float("nan")}, "/message: NaN and infinity are not JSON"),
        ([1, [float("inf")]], "/1/0: NaN and infinity are not JSON"),
        ({"tags": {"a"}}, "/tags: not JSON: use dict, list, str, int, float, bool or None"),
        (b"bytes", "/: not JSON: use dict, list, str, int, float, bool or None"),
        ((1, 2), "/: not JSON: use dict, list, str, int, float, bool or None"),
        ({1: "one"}, "a key is a text"),
    ],
)
async def test_log_5_what_is_no_json_is_refused_with_its_place(
    store: Store, version: Version, value: JsonValue, problem: str
) -> None:
    """The pointer says which part; nothing is written."""
    with pytest.raises(InvalidPayload) as caught:
        await dispatch(store, version, scope=ACME, input=value)
    assert problem in caught.value.problem
    assert not (await list_runs(store, scope=ACME)).headers


async def test_sec_3_a_scope_has_a_bound(store: Store, version: Version) -> None:
    """Its attributes would stand in every log."""
    big = Scope(tenant="acme", attributes={"note": "x" * 20_000})
    with pytest.raises(PayloadTooLarge) as caught:
        await dispatch(store, version, scope=big)
    assert caught.value.bound_bytes == 16 * 1024
    odd = Scope(tenant="acme", attributes={"note": "\ud800"})
    with pytest.raises(InvalidPayload):
        await dispatch(store, version, scope=odd)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("deadline_seconds", "5"),
        ("deadline_seconds", True),
        ("deadline_seconds", 1e12),
        ("priority", "1"),
        ("priority", 1.5),
        ("priority", True),
        ("idempotency_key", 5),
        ("continues", 5),
    ],
)
async def test_adm_1_an_argument_of_another_kind_is_refused(
    store: Store, version: Version, option: str, value: object
) -> None:
    """The error is ours and names the argument; nothing is written."""
    with pytest.raises(InvalidArgument) as caught:
        await dispatch(store, version, scope=ACME, **cast("Any", {option: value}))
    assert caught.value.what == option
    await _nothing_written(store)


async def test_r_30_who_interrupts_has_a_bound(store: Store, version: Version) -> None:
    """A name of 257 characters is refused before anything is written."""
    run = await dispatch(store, version, scope=ACME)
    for by, kind in (
        ("", InvalidArgument),
        ("x" * 257, InvalidArgument),
        ("\ud800", InvalidPayload),
    ):
        with pytest.raises(kind):
            await interrupt(store, run.run_id, scope=ACME, by=by)
    assert [one.type for one in await records(store, run.run_id, scope=ACME)] == ["run.admitted"]


async def test_log_5_too_deep_an_input_is_refused(store: Store, version: Version) -> None:
    """What could not be read back is not written."""
    with pytest.raises(InvalidPayload):
        await dispatch(store, version, scope=ACME, input=_deep(300))
    await _nothing_written(store)


@pytest.mark.parametrize(
    "value",
    ["a\x00b", "😀 é \u2028", 2**63, -(2**70), 1e308, None, True, [], {}, {"": {"\x00": [1.5]}}],
)
async def test_log_5_an_input_comes_back_as_it_was(
    store: Store, version: Version, value: JsonValue
) -> None:
    """On every store."""
    run = await dispatch(store, version, scope=ACME, input=value)
    [admitted] = await records(store, run.run_id, scope=ACME)
    assert isinstance(admitted, RunAdmitted)
    assert admitted.input == value
    assert type(admitted.input) is type(value)


@pytest.mark.parametrize("key", ["", "x" * 257, "next:1"])
async def test_adm_2_a_key_that_is_none_is_refused(
    store: Store, version: Version, key: str
) -> None:
    """Empty, too long, or of the kind that the runtime keeps for itself."""
    with pytest.raises(InvalidArgument) as caught:
        await dispatch(store, version, scope=ACME, input="x", idempotency_key=key)
    assert caught.value.what == "idempotency_key"
    await _nothing_written(store)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e10])
async def test_run_7_a_deadline_that_is_none_is_refused(
    store: Store, version: Version, seconds: float
) -> None:
    """Before anything is written."""
    with pytest.raises(InvalidArgument) as caught:
        await dispatch(store, version, scope=ACME, input="x", deadline_seconds=seconds)
    assert caught.value.what == "deadline_seconds"
    await _nothing_written(store)


@pytest.mark.parametrize("priority", [-1, 10])
async def test_r_15_a_priority_that_is_none_is_refused(
    store: Store, version: Version, priority: int
) -> None:
    """0 to 9."""
    with pytest.raises(InvalidArgument) as caught:
        await dispatch(store, version, scope=ACME, input="x", priority=priority)
    assert caught.value.what == "priority"
    await _nothing_written(store)


async def test_r_30_a_reason_for_an_interrupt_has_the_same_bounds(
    store: Store, version: Version
) -> None:
    """The Run is not interrupted."""
    run = await dispatch(store, version, scope=ACME, input="x")
    with pytest.raises(PayloadTooLarge):
        await interrupt(store, run.run_id, scope=ACME, reason="x" * BOUND)
    with pytest.raises(InvalidPayload):
        await interrupt(store, run.run_id, scope=ACME, reason="\ud800")
    assert len(await records(store, run.run_id, scope=ACME)) == 1


type Say = Callable[[Store, str], Awaitable[object]]


@pytest.mark.parametrize(
    ("say", "what"),
    [
        (lambda store, run: interrupt(store, run, scope=ACME, reason=cast("str", 5)), "reason"),
        (lambda store, run: interrupt(store, run, scope=ACME, force=cast("bool", "yes")), "force"),
        (
            lambda store, run: decide(
                store, run, scope=ACME, decisions={"a": "deny"}, by="ann", reason=cast("str", ["x"])
            ),
            "reason",
        ),
        (
            lambda store, run: decide(
                store, run, scope=ACME, decisions={"\ud800": "approve"}, by="ann"
            ),
            "decisions",
        ),
        (lambda store, run: deliver(store, run, scope=ACME, payload=1, wait="\ud800"), "wait"),
        (lambda store, run: deliver(store, run, scope=ACME, payload=1, event="\ud800"), "event"),
        (lambda store, run: cancel(store, run, "\ud800", scope=ACME), "entry_id"),
    ],
)
async def test_r_30_what_no_record_takes_is_refused_by_its_name(
    store: Store, version: Version, say: Say, what: str
) -> None:
    """A reason that is no text, a flag that is none, half a character."""
    run = await dispatch(store, version, scope=ACME)
    with pytest.raises((InvalidArgument, InvalidPayload)) as caught:
        await say(store, run.run_id)
    assert getattr(caught.value, "what", None) == what
    assert [one.type for one in await records(store, run.run_id, scope=ACME)] == ["run.admitted"]
