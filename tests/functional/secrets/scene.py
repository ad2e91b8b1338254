"""A Run that meets all that a Run can meet, with tools whose service gives the secret away."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from psych_runtime import (
    AgentSpec,
    BasicCredential,
    BearerCredential,
    BuiltinTool,
    CodeTool,
    Edit,
    EgressRules,
    HeaderCredential,
    HttpTool,
    Limits,
    ModelRef,
    OutputRules,
    Permit,
    Runtime,
    Scope,
    StatusView,
    Store,
    answer,
    decide,
    deliver,
    dispatch,
    publish,
    tool,
    wait,
)
from psych_runtime._decisions import Choice
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.testing import FakeModel
from psych_runtime.testing.fake_model import ScriptedCall
from psych_schema.spec import HttpCredential
from tests.canary import HEADER_CANARY
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import Crew, eventually, registry
from tests.functional.secrets.hostile import SECRET_FIELD, SLOW_WAYS, WAYS, Hostile
from tests.functional.secrets.traces import ACME, Lived

__all__ = ["WAYS_OF", "Vault", "live"]

type Json = dict[str, JsonValue]

_BOUND_SECONDS: Final = 120.0
_PICTURE: Final = b"\x89PNG\r\n\x1a\n of the sun"

_CREDENTIALS: Final[Mapping[str, HttpCredential]] = {
    "bearer": BearerCredential(secret="key"),
    "basic": BasicCredential(secret="key", username="ann"),
    "pair": BasicCredential(secret="pair"),
    "field": HeaderCredential(secret="key", header=SECRET_FIELD),
}

_WRITINGS: Final = [way for way in WAYS if way.startswith("text_")]
WAYS_OF: Final = {
    kind: [*_WRITINGS, "json", "fields", "401", "redirected", "image_png"] for kind in _CREDENTIALS
} | {"bearer": [way for way in WAYS if way != "held"]}
"""The writings depend on what the header has; the rest of the ways does not."""

_WAY: Final[Json] = {
    "type": "object",
    "properties": {"way": {"type": "string", "description": "How to answer."}},
    "required": ["way"],
}
_ANSWER: Final[Json] = {
    "type": "object",
    "properties": {"done": {"type": "boolean"}},
    "required": ["done"],
    "additionalProperties": False,
}


class Vault:
    """Keeps the secret; for some names it says it in the wrong place."""

    async def resolve(self, scope: Scope, name: str) -> str:
        """Return what belongs to a name."""
        match name:
            case "pair":
                return f"ann:{HEADER_CANARY}"
            case "torn":
                return f"{HEADER_CANARY}\r\nX-More: {HEADER_CANARY}"
            case "broken":
                raise RuntimeError(f"the vault has {HEADER_CANARY} and no more")
        return HEADER_CANARY


@tool(annotations={"read-only"})
def look() -> str:
    """Look out of the window."""
    return "It is sunny."


def _http(name: str, there: Hostile, **more: object) -> HttpTool:
    return HttpTool.model_validate(
        {
            "name": name,
            "description": "Ask the service.",
            "method": "GET",
            "url": f"{there.url}/{name}/{{way}}",
            "input_schema": _WAY,
            "retries": 1,
            "max_response_bytes": 200_000,
            "timeout_seconds": _BOUND_SECONDS,
            **more,
        }
    )


def _tools(there: Hostile) -> list[HttpTool]:
    made = []
    for kind, credential in _CREDENTIALS.items():
        made += [
            _http(kind, there, credential=credential),
            _http(f"{kind}_slow", there, credential=credential, timeout_seconds=1.0),
            _http(f"{kind}_post", there, credential=credential, method="POST"),
            _http(f"{kind}_head", there, credential=credential, method="HEAD"),
            _http(f"{kind}_fits", there, credential=credential, output_schema=_ANSWER),
        ]
    for name in ("torn", "broken"):
        made.append(_http(name, there, credential=HeaderCredential(secret=name, header="X-Key")))
    return made


def _spec(there: Hostile) -> AgentSpec:
    builtin = ("ask_question", "recall", "remember", "update_tasks")
    return AgentSpec(
        name="helper",
        instructions="Help.",
        model=ModelRef(model="fake"),
        output=OutputRules(json_schema=_ANSWER),
        tools=[
            *_tools(there),
            CodeTool(name="look"),
            *(BuiltinTool.model_validate({"name": name}) for name in builtin),
        ],
        limits=Limits(
            max_tool_calls_per_turn=256, failure_streak=100_000, failure_streak_stop=100_000
        ),
    )


def _calls(tool: str, *ways: str) -> list[ScriptedCall]:
    return [(tool, {"way": way}) for way in ways]


def _model() -> FakeModel:
    model = FakeModel().raises_transient(retry_after_seconds=0.0)
    for kind, ways in WAYS_OF.items():
        model.turn(
            tool_calls=[
                *_calls(kind, *ways),
                *_calls(f"{kind}_head", "fields", "type", "401"),
                *_calls(f"{kind}_fits", "json", "json_long", "text_plain"),
            ]
        )
    model.turn(tool_calls=[call for kind in WAYS_OF for call in _calls(f"{kind}_slow", *SLOW_WAYS)])
    model.turn(tool_calls=_calls("bearer", "held"))
    model.turn(tool_calls=[call for kind in WAYS_OF for call in _calls(f"{kind}_post", "json")])
    tasks: Json = {"tasks": [{"title": "Look", "state": "done"}]}
    questions: Json = {"questions": [{"question": "Which?"}]}
    model.turn(
        tool_calls=[
            *_calls("torn", "json"),
            *_calls("broken", "json"),
            ("look", {}),
            ("remember", {"key": "shoes", "value": "Size 38."}),
            ("recall", {}),
            ("update_tasks", tasks),
            ("ask_question", questions),
        ]
    )
    return model.turn(text="Done.").turn(text='{"done": true}')


async def live(store: Store, folder: Path, there: Hostile) -> Lived:
    """Let the Run end: its first worker dies in a call, people are asked, its answer is mended."""
    flaky, blobs, model = Flaky(store), FileBlobStore(folder), _model()
    version = await publish(store, _spec(there), scope=ACME)
    crew, shown = Crew(), list[str]()
    picture = await blobs.put(ACME.tenant, "run_of_nobody", _PICTURE, media_type="image/png")
    parts: JsonValue = [
        {"kind": "text", "text": "Go."},
        {"kind": "blob", "blob": picture.model_dump()},
    ]
    run = await dispatch(store, version, scope=ACME, input={"message": parts}, deltas=True)
    await blobs.put(ACME.tenant, run.run_id, _PICTURE, media_type="image/png")

    def runtime(through: Store) -> Runtime:
        return Runtime(
            store=through,
            model=model,
            registry=registry(look),
            secrets=Vault(),
            egress=EgressRules(Permit(hosts=["127.0.0.1"])),
            blob=blobs,
        )

    async def suspended() -> StatusView:
        found = await wait(
            store, run.run_id, scope=ACME, until="suspended", timeout_seconds=_BOUND_SECONDS
        )
        shown.append(found.model_dump_json())
        shown.append((await answer(store, run.run_id, scope=ACME)).model_dump_json())
        return found

    made = [runtime(flaky), runtime(store)]
    try:
        first = await crew.start(made[0], poll_seconds=0.2)
        await eventually(lambda: there.count("bearer", "held"), _BOUND_SECONDS)
        await die(flaky, store, first)
        await crew.start(made[1], poll_seconds=0.2)
        asked = await suspended()
        there.over.set()
        await decide(store, run.run_id, scope=ACME, decisions=_decisions(asked), by="bob")
        await suspended()
        await deliver(store, run.run_id, scope=ACME, payload={"answers": ["This."]}, by="ann")
        await wait(store, run.run_id, scope=ACME, timeout_seconds=_BOUND_SECONDS)
    finally:
        flaky.faults.away = False
        await crew.close()
        for one in made:
            await one.aclose()
    return Lived(run.run_id, version.hash, model.requests, folder, shown)


def _decisions(asked: StatusView) -> dict[str, Choice]:
    """Deny one call, change another, and consent to the rest."""
    choices: dict[str, Choice] = {"basic_post": Edit({"way": "401"}), "pair_post": "deny"}
    return {
        pending.approval_id: choices.get(pending.identity.removeprefix("http:"), "approve")
        for pending in asked.pending_approvals
    }
