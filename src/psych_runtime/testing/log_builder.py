"""Logs for tests: what a Run writes, legally, with real positions, digests and chain.

    log = LogBuilder()
    log.admit("hi")
    log.claim()
    [call] = log.turn(calls=["look"])
    log.start(call)
    log.finish(call, "42")
    log.turn(text="It is 42.")
    log.settle()

Every record is judged by the fold as it is written (LOG-1), so a log that was built is legal.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json

from psych_runtime._system import System
from psych_runtime.core.codec import sha256
from psych_runtime.testing._log_units import LogUnits
from psych_schema.common import Cost, Queue, Scope, Usage, WaitKind
from psych_schema.model import AskedCall, TextPart, UserMessage
from psych_schema.record import (
    AbortRequested,
    ApprovalDecided,
    ApprovalRequested,
    AttemptEnded,
    AttemptStarted,
    Failure,
    History,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    OfferedTool,
    QueueConsumed,
    QueueEnqueued,
    Reason,
    RunAdmitted,
    RunErased,
    RunSettled,
    RunSuspended,
    Said,
    StepCompleted,
    StepStarted,
    ThreadRef,
    Timings,
    ToolCompleted,
    ToolRefused,
    ToolResult,
    ToolsOffered,
    ToolStarted,
    TurnStarted,
    WaitOpened,
    WaitResolved,
)

__all__ = ["LogBuilder"]

_USAGE: Final = Usage(input_tokens=10, cache_read_tokens=0, cache_write_tokens=0, output_tokens=3)
_NO_PRICE: Final = Cost(source="missing", reason="no_price")


class LogBuilder(LogUnits):
    """Writes one Run's log from short calls; fields that a call does not name have defaults.

    Each method writes the records that its docstring names and takes any further field of its
    last record by name. An illegal one raises CorruptLog and writes nothing. What has no method
    here is written with `write(RecordType, field=...)` or, from a draft, `add(record)`.

    `rows`, `entries`, `state`, `conversation` and `header` are the log so far; `units()` and
    `commit_to(store)` bring it to a store, `records_per_unit` records at a time.
    """

    def __init__(
        self,
        *,
        tenant: str = "acme",
        system: System | None = None,
        records_per_unit: int = 1,
    ) -> None:
        super().__init__(tenant=tenant, system=system, records_per_unit=records_per_unit)
        self._names: dict[str, str] = {}  # of tools, by call id
        self._last_text = ""

    # The Run

    def admit(self, input: JsonValue = "hi", **fields: object) -> RunAdmitted:
        """Write run.admitted, of the Version named `version` in `fields`, or of any."""
        given: dict[str, object] = {
            "version": fields.get("version") or self._named("version", "version"),
            "scope": Scope(tenant=self.tenant),
            "input": input,
            "root": self.run_id,
            "thread": ThreadRef(id=self.run_id, position=1),
        }
        return self.write(RunAdmitted, **given | fields)

    def claim(self, **fields: object) -> AttemptStarted:
        """Write attempt.started of a new worker; reason and crashes follow from the Run's state."""
        header = self.header
        taken = header.state == "running"
        resting = "handed_over" if header.epoch else "fresh"
        reasons = {"running": "reclaimed", "suspended": "woken"}
        given: dict[str, object] = {
            "worker": self.system.new_id("wrk"),
            "build": "1.0.0",
            "reason": reasons.get(header.state, resting),
            "crashes": header.crashes + taken,
        }
        return self.write(AttemptStarted, **given | fields)

    def end(self, reason: str = "drained", **fields: object) -> AttemptEnded:
        """Write attempt.ended: drained, blocked or error."""
        return self.write(AttemptEnded, reason=reason, **fields)

    def suspend(self, **fields: object) -> RunSuspended:
        """Write run.suspended, listing the open waits and approvals."""
        waits = (*self.state.ids("wait", "open"), *self.state.ids("approval", "open"))
        return self.write(RunSuspended, **{"waits": waits} | fields)

    def abort(self, **fields: object) -> AbortRequested:
        """Write abort.requested."""
        return self.write(AbortRequested, **{"by": "ann", "reason": "enough"} | fields)

    def settle(
        self, state: str = "completed", *, code: str | None = None, **fields: object
    ) -> RunSettled:
        """Write run.settled, listing what is queued; `code` is the reason, by default `state`.

        A completed Run's output is the last text of its model.
        """
        queued = list(self.state.ids("entry", "queued"))
        later = [one for one in queued if self.state.get("entry", one).text("queue") == "next_run"]
        done = state == "completed"
        given: dict[str, object] = {
            "state": state,
            "reason": None if done else Reason(code=code or state),
            "output": self._last_text if done else None,
            "unconsumed": tuple(one for one in queued if one not in later),
            "next_run": self.system.new_id("run") if later else None,
        }
        return self.write(RunSettled, **given | fields)

    def erase(self, **fields: object) -> RunErased:
        """Write run.erased; the contents stay in `rows`: erasing them is the store's."""
        return self.write(RunErased, **{"by": "ann"} | fields)

    # Turns and model calls

    def turn(self, calls: Sequence[str] = (), *, text: str = "ok", **fields: object) -> list[str]:
        """Write a whole turn that asks for these tools; return the calls' ids.

        turn.started, tools.offered before the first, model.started, model.completed.
        """
        self.begin_turn()
        return self.answer(self.ask(), calls, text=text, **fields)

    def begin_turn(self, **fields: object) -> TurnStarted:
        """Write turn.started of the next turn."""
        given: dict[str, object] = {"turn": self.state.last_turn + 1, "purpose": "answer"}
        return self.write(TurnStarted, **given | fields)

    def offer(self, *names: str) -> str:
        """Write tools.offered with code tools of these names; return its hash."""
        tools = tuple(
            OfferedTool(alias=name, identity=f"code:{name}", definition=self._named("tool", name))
            for name in sorted(names)
        )
        system_ref = self._named("system", "system prompt")
        hash_ = sha256(f"{system_ref} {' '.join(sorted(names))}")
        return self.write(ToolsOffered, hash=hash_, system_ref=system_ref, tools=tools).hash

    def ask(self, **fields: object) -> str:
        """Write model.started in the open turn; return the model call's id.

        The first one comes with tools.offered. `purpose="compaction"` belongs to no turn.
        """
        compacts = fields.get("purpose") == "compaction"
        offer = self.state.last_offer or ("" if compacts else self.offer("look"))
        given: dict[str, object] = {
            "call": self.system.new_id("mc"),
            "turn": None if compacts else self.state.last_turn,
            "purpose": "answer",
            "model": "test-model",
            "tries": 1,
            "offer": None if compacts else offer,
            "history": History(base=self.conversation.base, upto=self.conversation.last),
        }
        return self.write(ModelStarted, **given | fields).call

    def answer(
        self, call: str, calls: Sequence[str] = (), *, text: str = "ok", **fields: object
    ) -> list[str]:
        """Write model.completed: the model said `text` and asked for these tools, with {}.

        Returns the ids of the tool calls, in order.
        """
        asked = [
            AskedCall(call_id=self.system.new_id("call"), name=name, arguments="{}")
            for name in calls
        ]
        ids = [one.call_id for one in asked]
        turn = self.state.get("model", call).get("turn")
        parts = (TextPart(text=text),) if text else ()
        given: dict[str, object] = {
            "call": call,
            "turn": turn,
            "calls": tuple(ids),
            "said": Said(parts=parts, calls=tuple(asked)),
            "finish": "tool_calls" if asked else "stop",
            "usage": _USAGE,
            "cost": _NO_PRICE,
            "timings": Timings(seconds=0.5, first_token_seconds=0.1),
        }
        self.write(ModelCompleted, **given | fields)
        self._names.update((one.call_id, one.name) for one in asked)
        self._last_text = text if turn is not None else self._last_text
        return ids

    def fail(
        self, call: str, *, code: str = "overloaded", transient: bool = True, **fields: object
    ) -> ModelFailed:
        """Write model.failed; `next` is retry unless given."""
        given: dict[str, object] = {
            "call": call,
            "turn": self.state.get("model", call).get("turn"),
            "failure": Failure(code=code, transient=transient),
            "next": "retry",
        }
        return self.write(ModelFailed, **given | fields)

    # Tool calls

    def start(self, call: str, **fields: object) -> ToolStarted:
        """Write tool.started: the first try of a call, or the next one of a safe call.

        With `approval_id` it consumes that grant, for the arguments' digest that it names.
        """
        grant = fields.get("approval_id")
        arguments = fields.get("arguments", {})
        digest = sha256(to_json(arguments).decode())
        if isinstance(grant, str):
            digest = self.state.get("approval", grant).text("digest") or digest
        given: dict[str, object] = {
            "call_id": call,
            "tries": self.state.get("call", call).number("tries") + 1,
            "identity": f"code:{self._names.get(call, 'look')}",
            "arguments": arguments,
            "digest": digest,
            "safe_to_retry": False,
            "interruptible": True,
            "key": call,
        }
        return self.write(ToolStarted, **given | fields)

    def finish(self, call: str, text: str = "42", **fields: object) -> ToolCompleted:
        """Write tool.completed with `text`, ok unless `outcome` says otherwise."""
        given: dict[str, object] = {
            "call_id": call,
            "outcome": "ok",
            "result": ToolResult(parts=(TextPart(text=text),)),
            "duration_seconds": 0.25,
            "source": "executed",
        }
        return self.write(ToolCompleted, **given | fields)

    def refuse(self, call: str, code: str = "denied", **fields: object) -> ToolRefused:
        """Write tool.refused."""
        given: dict[str, object] = {"call_id": call, "code": code, "message": f"It was {code}."}
        return self.write(ToolRefused, **given | fields)

    # People

    def send(self, text: str = "and?", queue: Queue = "steer", **fields: object) -> str:
        """Write queue.enqueued; return the entry's id."""
        given: dict[str, object] = {
            "entry_id": self.system.new_id("ent"),
            "queue": queue,
            "message": UserMessage(parts=(TextPart(text=text),)),
            "by": "ann",
        }
        return self.write(QueueEnqueued, **given | fields).entry_id

    def consume(self, *entries: str, **fields: object) -> QueueConsumed:
        """Write queue.consumed into a model call that is to follow."""
        given: dict[str, object] = {"entries": entries, "into": self.system.new_id("mc")}
        return self.write(QueueConsumed, **given | fields)

    def request(self, call: str, **fields: object) -> str:
        """Write approval.requested for a call; return the approval's id."""
        arguments = fields.get("arguments", {})
        given: dict[str, object] = {
            "approval_id": self.system.new_id("apr"),
            "call_id": call,
            "identity": f"code:{self._names.get(call, 'look')}",
            "risk": "write",
            "arguments": arguments,
            "digest": sha256(to_json(arguments).decode()),
        }
        return self.write(ApprovalRequested, **given | fields).approval_id

    def decide(self, approval: str, decision: str = "approve", **fields: object) -> ApprovalDecided:
        """Write approval.decided; an edit names the `digest` of other arguments."""
        given: dict[str, object] = {
            "approval_id": approval,
            "decision": decision,
            "digest": self.state.get("approval", approval).text("digest"),
            "by": "bob",
        }
        return self.write(ApprovalDecided, **given | fields)

    def wait(
        self, kind: WaitKind = "question", *, due: datetime | None = None, **fields: object
    ) -> str:
        """Write wait.opened; return the wait's id."""
        given: dict[str, object] = {
            "wait_id": self.system.new_id("wait"),
            "kind": kind,
            "due": due,
        }
        return self.write(WaitOpened, **given | fields).wait_id

    def resolve(self, wait: str, how: str = "delivered", **fields: object) -> WaitResolved:
        """Write wait.resolved: from outside when delivered, by the attempt otherwise."""
        given: dict[str, object] = {
            "wait_id": wait,
            "how": how,
            "by": "ann" if how == "delivered" else None,
        }
        return self.write(WaitResolved, **given | fields)

    # Workflows

    def begin_step(self, name: str = "first", **fields: object) -> str:
        """Write step.started of a tool step; return the step's id."""
        step_id = fields.get("step_id")
        given: dict[str, object] = {
            "step_id": step_id or self.system.new_id("step"),
            "path": f"/{name}",
            "kind": "tool",
            "name": name,
            "tries": 1,
            "input_digest": sha256(name),
        }
        return self.write(StepStarted, **given | fields).step_id

    def end_step(self, step_id: str, outcome: str = "ok", **fields: object) -> StepCompleted:
        """Write step.completed; with `retry_at` it will be tried again."""
        return self.write(StepCompleted, step_id=step_id, outcome=outcome, **fields)
