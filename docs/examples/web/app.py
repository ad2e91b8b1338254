"""Serve Runs over HTTP: start one, follow it as Server-Sent Events, decide, write to it, stop it.

    uvicorn --app-dir docs/examples/web app:app --timeout-graceful-shutdown 5

Nothing is executed here: worker.py does that, and PSYCH_STORE, which both read, is all they share.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from order_tools import registry
from pydantic import BaseModel, JsonValue, ValidationError

import psych_runtime
from psych_runtime import Edit, ModelRef, PsychError, Receipt, Scope, StatusView

HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "5"))
"""How often a silent stream says that it is there: proxies cut those that say nothing."""

store = psych_runtime.open_store(
    os.environ.get("PSYCH_STORE", "sqlite:///runs.db"), prefix=os.environ.get("PSYCH_PREFIX", "")
)

SPEC = psych_runtime.load_spec(Path(__file__).with_name("agent.yaml"))
if "PSYCH_MODEL" in os.environ:
    SPEC = SPEC.model_copy(update={"model": ModelRef(model=os.environ["PSYCH_MODEL"])})

STATUS_OF = {
    "run_not_found": 404,
    "approval_not_found": 404,
    "run_settled": 409,
    "run_stopping": 409,
    "idempotency_conflict": 409,
    "approval_conflict": 409,
    "approval_superseded": 409,
    "approval_over": 410,
    "content_erased": 410,
    "payload_too_large": 413,
    "invalid_argument": 422,
    "invalid_payload": 422,
    "queue_full": 429,
    "store_unavailable": 503,
    "store_full": 507,
}
"""From an error's code to HTTP; any other is a fault of this server, 500."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Hold the store open while the server runs."""
    async with store:
        await store.migrate()
        yield


app = FastAPI(title="Refund desk", lifespan=lifespan)


@app.exception_handler(PsychError)
async def refuse(request: Request, error: PsychError) -> JSONResponse:
    """Turn an error of the library into a status and its code; the text says what to do."""
    content = {"code": error.code, "message": str(error)}
    return JSONResponse(content, STATUS_OF.get(error.code, 500))


def your_login_here(
    x_tenant: Annotated[str, Header()] = "", x_user: Annotated[str, Header()] = ""
) -> Scope:
    """Say for whom a request is made. Headers prove nothing: check a session or a token here."""
    try:
        return Scope(tenant=x_tenant, principal=x_user)
    except ValidationError:
        raise HTTPException(401, "X-Tenant and X-User say who you are") from None


Caller = Annotated[Scope, Depends(your_login_here)]
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


class Start(BaseModel):
    """What a Run begins with."""

    message: str


class EditTo(BaseModel):
    """Consent to other arguments."""

    arguments: dict[str, JsonValue]


class Decisions(BaseModel):
    """What a person decided, by call id."""

    decisions: dict[str, Literal["approve", "deny"] | EditTo]
    reason: str | None = None


class Message(BaseModel):
    """What a person says to a Run, or to the one after it."""

    message: str
    queue: Literal["steer", "follow_up", "next_run"] = "steer"


@app.post("/runs", status_code=201)
async def start(body: Start, scope: Caller, key: Key = None) -> dict[str, str | bool]:
    """Admit a Run, once for each Idempotency-Key: from here on it cannot be lost."""
    version = await psych_runtime.publish(store, SPEC, scope=scope, check=registry)
    made = await psych_runtime.dispatch(
        store, version, scope=scope, input=body.model_dump(), idempotency_key=key, deltas=True
    )
    return {"run_id": made.run_id, "created": made.created}


@app.get("/runs/{run_id}")
async def status(run_id: str, scope: Caller) -> StatusView:
    """Say where a Run stands, what it waits for and what blocks it."""
    return await psych_runtime.status(store, run_id, scope=scope)


@app.get("/runs/{run_id}/events")
async def events(
    run_id: str,
    scope: Caller,
    after: Annotated[int, Query(ge=0)] = 0,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> Response:
    """Give every record behind `Last-Event-ID` or `after`, then what comes, until the Run settles.

    204 tells a browser's EventSource that there is nothing to reconnect for.
    """
    after = after if last_event_id is None else last_event_id
    found = await psych_runtime.status(store, run_id, scope=scope)
    if found.state == "settled" and found.head <= after:
        return Response(status_code=204)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    told = tell(run_id, scope, after)
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)


@app.post("/runs/{run_id}/decisions", status_code=202)
async def decide(run_id: str, body: Decisions, scope: Caller, key: Key = None) -> Receipt:
    """Approve, deny or edit calls that wait for consent: all that are named, or none."""
    chosen = {
        call: Edit(choice.arguments) if isinstance(choice, EditTo) else choice
        for call, choice in body.decisions.items()
    }
    by = scope.principal or "somebody"
    return await psych_runtime.decide(
        store, run_id, scope=scope, decisions=chosen, by=by, reason=body.reason, key=key
    )


@app.post("/runs/{run_id}/messages", status_code=202)
async def send(run_id: str, body: Message, scope: Caller, key: Key = None) -> Receipt:
    """Say something to a Run, or to the next one of its thread; the receipt says who took it."""
    said = body.model_dump()
    return await psych_runtime.send(store, run_id, scope=scope, **said, by=scope.principal, key=key)


@app.delete("/runs/{run_id}", status_code=202)
async def stop(run_id: str, scope: Caller, key: Key = None) -> Receipt:
    """Ask a Run to stop. It is stopped by this alone, never by a reader that goes away."""
    return await psych_runtime.interrupt(store, run_id, scope=scope, by=scope.principal, key=key)


async def tell(run_id: str, scope: Scope, after: int) -> AsyncGenerator[str]:
    """Yield each record as an event, and a comment whenever nothing came for a while.

    A slow client holds up nobody: one record is read ahead, the next when that one is taken.
    """
    records = psych_runtime.stream(store, run_id, scope=scope, after=after)
    coming = asyncio.ensure_future(anext(records, None))
    try:
        yield "retry: 1000\n\n"
        while True:
            if not (await asyncio.wait([coming], timeout=HEARTBEAT_SECONDS))[0]:
                yield ": nothing new\n\n"
                continue
            record = coming.result()
            if record is None:
                return
            coming = asyncio.ensure_future(anext(records, None))
            data = record.model_dump_json()
            yield f"id: {record.seq}\nevent: {record.type}\ndata: {data}\n\n"
    except PsychError as error:  # the status is on its way already
        data = json.dumps({"code": error.code, "message": str(error)})
        yield f"event: failure\ndata: {data}\n\n"
    finally:
        coming.cancel()
