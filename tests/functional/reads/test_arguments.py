"""What cannot be meant is refused before anything is read, by every function and store alike."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

import pytest

from psych_runtime import (
    AgentSpec,
    ModelRef,
    Runtime,
    Scope,
    administrator,
    answer,
    cancel,
    decide,
    deliver,
    dispatch,
    erase,
    interrupt,
    list_runs,
    publish,
    purge,
    records,
    report,
    send,
    session,
    state,
    status,
    stream,
    stream_text,
    thread,
    verify,
    wait,
)
from psych_runtime.errors import InputError, InvalidArgument, InvalidPayload
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import FakeModel
from tests.functional.reads.logs import ACME, lived
from tests.stores.opening import EVERYWHERE

SPEC = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))
HUGE = 2**63

type Call = Callable[..., Awaitable[object]]
"""A function of the API, called as somebody calls it whom no type checker helps."""


async def _drained(made: AsyncGenerator[object]) -> list[object]:
    return [one async for one in made]


def _iterated(function: Callable[..., AsyncGenerator[object]]) -> Call:
    return lambda *args, **options: _drained(function(*args, **options))


OF_A_RUN: Final[dict[str, Call]] = {
    "status": status,
    "answer": answer,
    "report": report,
    "state": state,
    "records": records,
    "verify": verify,
    "wait": wait,
    "stream": _iterated(stream),
    "stream_text": _iterated(stream_text),
    "interrupt": interrupt,
}
OF_A_TENANT: Final[dict[str, Call]] = {
    "list_runs": list_runs,
    "publish": lambda store, *, scope: publish(store, SPEC, scope=scope),
    "dispatch": lambda store, *, scope: dispatch(store, "0" * 64, scope=scope),
}


async def refused(call: Callable[[], Awaitable[object]]) -> tuple[str, str]:
    """Return what is said to be wrong, and why."""
    with pytest.raises(InputError) as caught:
        await call()
    assert isinstance(caught.value, InvalidArgument | InvalidPayload)
    return caught.value.what, caught.value.problem


@pytest.mark.parametrize("name", OF_A_RUN)
async def test_adm_3_what_dispatch_returned_is_not_the_id(store: Store, name: str) -> None:
    """The error says which attribute to pass."""
    version = await publish(store, SPEC, scope=ACME)
    run = await dispatch(store, version, scope=ACME)
    for odd in (run, None, 7, run.run_id.encode()):
        found = await refused(partial(OF_A_RUN[name], store, odd, scope=ACME))
        assert found == ("run_id", "pass the id: run.run_id")
    assert [one.type for one in await records(store, run.run_id, scope=ACME)] == ["run.admitted"]


@pytest.mark.parametrize("name", [name for name in OF_A_RUN if name != "state"] + ["state"])
async def test_log_5_an_id_that_is_no_unicode_is_refused(store: Store, name: str) -> None:
    """In memory as in a file."""
    what, problem = await refused(partial(OF_A_RUN[name], store, "run_\ud800", scope=ACME))
    assert (what, problem) == ("a name or text", "it is not Unicode: surrogates not allowed")


@pytest.mark.parametrize("scope", ["local", None, {"tenant": "acme"}])
async def test_sec_4_a_scope_is_a_scope(store: Store, scope: object) -> None:
    """A tenant's name alone is none."""
    log = lived()
    await log.commit_to(store)
    for of_a_run in OF_A_RUN.values():
        found = await refused(partial(of_a_run, store, log.run_id, scope=scope))
        assert found == ("scope", "pass Scope(tenant=...)")
    for of_a_tenant in OF_A_TENANT.values():
        found = await refused(partial(of_a_tenant, store, scope=scope))
        assert found == ("scope", "pass Scope(tenant=...)")


def closed_over(function: Call, **options: object) -> Call:
    """Return a call of a function that needs more than a Run and a scope."""
    return lambda store, run_id, *, scope: function(store, run_id, scope=scope, **options)


WRITING: Final[dict[str, Call]] = {
    "send": closed_over(send, message="Hm."),
    "cancel": closed_over(cancel, entry_id="ent_x"),
    "decide": closed_over(decide, decisions={"call_x": "deny"}, by="ann"),
    "deliver": closed_over(deliver, payload=1),
    "erase": closed_over(erase, by="ann"),
    "thread": thread,
    "purge": lambda store, run_id, *, scope: purge(store, scope=scope, before=datetime.now(UTC)),
}


@pytest.mark.parametrize("name", [*OF_A_RUN, *OF_A_TENANT, *WRITING])
@pytest.mark.parametrize("odd", [None, "memory://", FakeModel(), MemoryStore])
async def test_adm_3_what_is_no_open_store_is_refused(name: str, odd: object) -> None:
    """Neither nothing, nor a URL, nor a class; the error says how to get one."""
    call = (OF_A_RUN | WRITING).get(name)
    made = (
        partial(OF_A_TENANT[name], odd, scope=ACME)
        if call is None
        else partial(call, odd, "run_x", scope=ACME)
    )
    what, problem = await refused(made)
    assert what == "store"
    assert "async with open_store(url) as store" in problem


async def test_adm_3_sessions_runtimes_and_operators_need_an_open_store() -> None:
    """As every function does."""
    model = FakeModel()
    odd = cast("Store", 7)

    async def a_session() -> None:
        async with session(model, store=odd):
            raise AssertionError("it began")

    async def a_runtime() -> None:
        Runtime(store=odd, model=model)

    async def an_operator() -> None:
        administrator(odd)

    for call in (a_session, a_runtime, an_operator):
        assert (await refused(call))[0] == "store"


async def test_adm_3_dispatch_refuses_a_spec_and_what_is_no_id(store: Store) -> None:
    """A Spec is no Version; a Run to go on with is named by its id."""
    run: Call = dispatch
    version = await publish(store, SPEC, scope=ACME)
    first = await dispatch(store, version, scope=ACME)
    found = await refused(partial(run, store, SPEC, scope=ACME))
    assert found == ("version", "pass what publish() returned, or its hash")
    found = await refused(partial(run, store, version, scope=ACME, continues=first))
    assert found == ("continues", "pass the id: run.run_id")


@pytest.mark.parametrize("name", ["records", "stream", "stream_text"])
@pytest.mark.parametrize("after", [-1, True, 1.5, None, "1", HUGE])
async def test_str_1_after_is_a_seq(store: Store, name: str, after: object) -> None:
    """Nothing is taken for another place in the log."""
    log = lived()
    await log.commit_to(store)
    found = await refused(partial(OF_A_RUN[name], store, log.run_id, scope=ACME, after=after))
    assert found == (
        "after",
        "pass the seq of a record, or 0 for all: a whole number up to 9223372036854775807",
    )


@EVERYWHERE
async def test_str_1_the_largest_seq_is_behind_every_log(store: Store) -> None:
    """The bound itself is none of them that are refused."""
    log = lived()
    await log.commit_to(store)
    assert await records(store, log.run_id, scope=ACME, after=HUGE - 1, limit=HUGE - 1) == []
    assert await store.read("acme", log.run_id, after=HUGE, limit=HUGE) == []
    for name in ("stream", "stream_text"):
        found = OF_A_RUN[name](store, log.run_id, scope=ACME, after=HUGE - 1)
        assert await found == []


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1", HUGE])
async def test_st_5_a_limit_is_one_or_more(store: Store, limit: object) -> None:
    """An empty page without a cursor would say that there are no more."""
    log = lived()
    await log.commit_to(store)
    read: Call = records
    listed: Call = list_runs
    for call in (
        partial(read, store, log.run_id, scope=ACME, limit=limit),
        partial(listed, store, scope=ACME, limit=limit),
    ):
        assert await refused(call) == ("limit", "pass a whole number, 1 to 9223372036854775807")


@EVERYWHERE
async def test_st_5_the_largest_limit_gives_every_run(store: Store) -> None:
    """It is no error of a store."""
    log = lived()
    await log.commit_to(store)
    page = await list_runs(store, scope=ACME, limit=HUGE - 1)
    assert [one.run_id for one in page.headers] == [log.run_id]
    assert page.cursor is None


@pytest.mark.parametrize("odd", ["completed", "zzz", "", 1, ["ready"]])
async def test_st_5_a_state_that_no_header_has_is_refused(store: Store, odd: object) -> None:
    """The error names those that there are."""
    listed: Call = list_runs
    what, problem = await refused(partial(listed, store, scope=ACME, state=odd))
    assert what == "state"
    assert problem == (
        f"pass None or one of ready, running, suspended, settled, corrupt; {odd!r} is none of them"
    )


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("version", SPEC, "pass its hash: version.hash"),
        ("thread", 1, "pass the id of a thread"),
        ("parent", 1, "pass the id: run.run_id"),
        ("cursor", 1, "pass the cursor of the page before, unchanged"),
        ("created_after", "today", "pass a datetime with a time zone: datetime.now(UTC)"),
        (
            "created_after",
            datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None),
            "pass a datetime with a time zone: datetime.now(UTC)",
        ),
    ],
)
async def test_st_5_a_filter_of_another_type_is_refused(
    store: Store, option: str, value: object, problem: str
) -> None:
    """By both stores alike, not by the database's driver."""
    listed: Call = list_runs
    found = await refused(partial(listed, store, scope=ACME, **{option: value}))
    assert found == (option, problem)


@pytest.mark.parametrize("until", ["zzz", "completed", None, True, -1, 1.5, HUGE])
async def test_str_1_nobody_waits_for_what_never_comes(store: Store, until: object) -> None:
    """Even of a Run that has settled."""
    log = lived()
    await log.commit_to(store)
    waited: Call = wait
    found = await refused(partial(waited, store, log.run_id, scope=ACME, until=until))
    assert found == ("until", "pass 'settled', 'suspended' or a seq")


@pytest.mark.parametrize("seconds", ["1", True, float("nan"), 10**400])
async def test_str_1_a_time_to_wait_is_a_number(store: Store, seconds: object) -> None:
    """Not a number would wait for ever."""
    log = lived()
    await log.commit_to(store)
    waited: Call = wait
    found = await refused(partial(waited, store, log.run_id, scope=ACME, timeout_seconds=seconds))
    assert found == ("timeout_seconds", "pass a number of seconds, or None")


@pytest.mark.parametrize("seconds", [0, -1.5, 2, float("inf"), None])
async def test_str_1_any_number_of_seconds_is_a_time(store: Store, seconds: float | None) -> None:
    """Less than nothing looks once, too."""
    log = lived()
    await log.commit_to(store)
    found = await wait(store, log.run_id, scope=ACME, timeout_seconds=seconds)
    assert found.lifecycle == "done"


async def test_adm_3_a_session_refuses_what_start_returned(store: Store) -> None:
    """Its wait and its stream take the id, as the functions do."""
    async with session(FakeModel().turn(text="a"), store=store) as made:
        run = await made.start(SPEC, "x")
        waited: Call = made.wait
        streamed = _iterated(made.stream)
        for call in (partial(waited, run), partial(streamed, run)):
            assert await refused(call) == ("run_id", "pass the id: run.run_id")
        assert (await made.wait(run.run_id)).lifecycle == "done"
        assert made.scope == Scope(tenant="local")
