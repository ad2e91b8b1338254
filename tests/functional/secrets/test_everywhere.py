"""A secret that tools carry is nowhere but on the wire, on every store (SEC-2).

The service repeats it in every way: in answers, refusals, header fields and what is no HTTP.
Searched is all that is left of the Run: the whole database, blobs, what was logged at DEBUG, what
was printed, every view and command, and what the model was sent. What a code tool returns of a
secret of its own is found in each of these places: the search sees it.
"""

import logging
from base64 import b64encode
from collections import Counter
from pathlib import Path

import pytest

from psych_runtime import (
    AllowAll,
    EgressRules,
    Permit,
    Proxy,
    Runtime,
    SecretError,
    Store,
    erase,
    publish,
    records,
    session,
    wait,
)
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.core.secret import as_header, resolve_secret
from psych_runtime.errors import InvalidSpec
from psych_runtime.testing import FakeModel
from psych_schema.record import RunSettled, ToolCompleted, ToolRefused
from tests.canary import HEADER_CANARY, Finding, Logs, in_error, in_logs, in_texts
from tests.functional.engine.harness import Crew, admit, agent, registry
from tests.functional.secrets.hostile import PROXY_WAYS, SLOW_WAYS, Hostile, hostile
from tests.functional.secrets.places import KINDS, place
from tests.functional.secrets.scene import WAYS_OF, Vault, live
from tests.functional.secrets.traces import ACME, Lived, in_commands, leaks, left_of
from tests.functional.tools.http_service import agent as http_agent

every_store = pytest.mark.parametrize("kind", KINDS)


@every_store
async def test_sec_2_a_tool_s_secret_is_nowhere(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Through failures, timeouts, repetitions, a crash, consent and a question; nor once erased."""
    blobs = tmp_path / "blobs"
    with Logs() as logs:
        async with place(kind, tmp_path) as there, hostile() as service:
            lived = await live(there.store, blobs, service)
            await met_everything(there.store, lived, service)
            found = await left_of(there, lived) | await in_commands(there, lived)
            run_id, keeper = lived.run_id, FileBlobStore(blobs)
            await erase(there.store, run_id, scope=ACME, by="ann", blob=keeper)
            erased = await left_of(there, lived)
    found |= {f"{name}, once erased": one for name, one in erased.items()}
    assert leaks(found | said(logs, capfd)) == {}


async def met_everything(store: Store, lived: Lived, service: Hostile) -> None:
    """Check that the secret was sent with each call, and that there was much to take out of."""
    assert {heard.words[-1] for heard in service.asked} == {HEADER_CANARY}
    asked = {(heard.tool, heard.way) for heard in service.asked}
    wanted = {(kind, way) for kind, ways in WAYS_OF.items() for way in ways}
    assert wanted <= asked
    assert service.count("bearer", "again") >= 2
    assert service.count("bearer", "held") >= 2

    log = await records(store, lived.run_id, scope=ACME)
    ended = [one for one in log if isinstance(one, ToolCompleted)]
    outcomes = Counter(one.outcome for one in ended)
    assert outcomes["timed_out"] == len(SLOW_WAYS) * len(WAYS_OF)
    assert outcomes["ok"] > 100
    assert outcomes["error"] > 50
    assert sum("[secret " in one.model_dump_json() for one in ended) > 100
    assert [one.code for one in log if isinstance(one, ToolRefused)] == ["denied"]
    assert log[-1].epoch >= 4  # after a crash, consent and an answer
    assert isinstance(log[-1], RunSettled)
    assert log[-1].output == {"done": True}


async def test_sec_2_a_proxy_s_password_is_nowhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """However the proxy refuses, or opens a way, and repeats what it was sent."""
    model = FakeModel().turn(tool_calls=[("ask", {"n": n}) for n in range(len(PROXY_WAYS))])
    model.turn(text="Done.")
    spec = http_agent("http://127.0.0.1:1", retries=0)
    spec["limits"] = {"max_tool_calls_per_turn": 64, "failure_streak_stop": 1000}
    with Logs() as logs:
        async with place("sqlite", tmp_path) as there, hostile() as service:
            proxy = Proxy(service.url, username="ann", password=HEADER_CANARY)
            rules = EgressRules(Permit(hosts=["127.0.0.1"]))
            async with session(
                model, store=there.store, tenant=ACME.tenant, egress=rules, proxy=proxy
            ) as running:
                run_id = (await running.ask(await running.publish(spec), "Go.")).run_id
            version = (await there.store.header(ACME.tenant, run_id)).version
            lived = Lived(run_id, version, model.requests, shown=[repr(proxy)])
            found = await left_of(there, lived) | await in_commands(there, lived)
            log = await records(there.store, run_id, scope=ACME)
    assert {heard.words[-1] for heard in service.asked} == {HEADER_CANARY}
    assert {heard.way for heard in service.asked} == set(PROXY_WAYS)
    ended = Counter(one.outcome for one in log if isinstance(one, ToolCompleted))
    assert ended == {"error": len(PROXY_WAYS)}
    assert leaks(found | said(logs, capfd)) == {}


@every_store
async def test_sec_2_what_a_tool_leaks_is_found_everywhere(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As it is, or as JSON writes it, and coded: each place is searched, and searched well."""
    with Logs() as logs:
        async with place(kind, tmp_path) as there:
            lived = await leak(there.store, tmp_path / "blobs")
            found = await left_of(there, lived)
            found |= await in_commands(there, lived, ("log", "RUN", "--json"))
    found |= said(logs, capfd)
    places = ["blobs", "logs", "output", "requests", "shown", "store", "views"]
    if kind != "memory":
        places.append("log RUN --json")
    for name in places:
        forms = {one.form for one in found[name]}
        assert forms >= {"hex", "base64, 0", "longest word"}, name
        assert forms & {"json", "plain"}, name


async def leak(store: Store, folder: Path) -> Lived:
    """Let a Run end whose tool knows the secret by itself, and says it wherever it can."""
    raw = HEADER_CANARY.encode()
    texts = [HEADER_CANARY, raw.hex(), b64encode(raw).decode()]

    def leaky() -> list[str]:
        """Leak."""
        logging.getLogger("leaky").debug("It is %s.", texts)
        print(*texts)
        return texts

    blobs, model, crew = FileBlobStore(folder), FakeModel(), Crew()
    model.turn(tool_calls=[("leaky", {})]).turn(text="Done.")
    made = Runtime(
        store=store, model=model, registry=registry(leaky), policy=AllowAll(), blob=blobs
    )
    await crew.start(made)
    try:
        run_id = await admit(store, agent("leaky"))
        await wait(store, run_id, scope=ACME, timeout_seconds=20.0)
    finally:
        await crew.close()
    data = " ".join(texts).encode()
    await blobs.put(ACME.tenant, run_id, data, media_type="text/plain")
    version = (await store.header(ACME.tenant, run_id)).version
    return Lived(run_id, version, model.requests, folder, texts)


def said(logs: Logs, capfd: pytest.CaptureFixture[str]) -> dict[str, list[Finding]]:
    """Search what was logged and printed."""
    return {
        "logs": in_logs(logs.records, HEADER_CANARY),
        "output": in_texts({"output": capfd.readouterr()}, HEADER_CANARY),
    }


@pytest.mark.parametrize("name", ["torn", "broken"])
async def test_sec_2_an_error_about_a_secret_does_not_show_it(name: str) -> None:
    """Where it cannot be sent, or its resolver says it in an error of its own."""
    with pytest.raises(SecretError) as caught:
        as_header(await resolve_secret(Vault(), ACME, name))
    assert in_error(caught.value, HEADER_CANARY, where="error") == []


async def test_sec_2_a_spec_that_holds_a_secret_is_refused_unseen(tmp_path: Path) -> None:
    """In a header, in the query, in the address."""
    spec = http_agent(
        f"http://ann:{b64encode(HEADER_CANARY.encode()).decode()}@127.0.0.1",
        headers={"Authorization": HEADER_CANARY, "X-Api-Key": HEADER_CANARY},
        query={"access_token": HEADER_CANARY},
    )
    async with place("sqlite", tmp_path) as there:
        with pytest.raises(InvalidSpec) as caught:
            await publish(there.store, spec, scope=ACME)
        assert {issue.code for issue in caught.value.issues} >= {"secret_in_spec", "invalid_url"}
        assert in_error(caught.value, HEADER_CANARY, where="error") == []
        assert await there.search() == []
