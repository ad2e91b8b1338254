"""Decisions about calls that ask for consent: once, by a named person, for exactly these arguments.

What a call is, its arguments and their digest come from the log, never from whoever decides
(R-12). Decisions of one request are one unit: all or none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from psych_runtime._arguments import check_page, check_text
from psych_runtime._system import System, ambient_system
from psych_runtime.core.codec import decode, sha256
from psych_runtime.errors import (
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalOver,
    ApprovalSuperseded,
    CorruptLog,
    InvalidArgument,
)
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, opened, run_settled, whole_log, write_outside
from psych_runtime.runtime.requests import (
    JsonLike,
    check_actor,
    check_json,
    check_key,
    check_store,
    request_digest,
)
from psych_runtime.tools.arguments import digest_text
from psych_schema.common import Scope
from psych_schema.receipt import Receipt
from psych_schema.record import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    Record,
    Verdict,
)
from psych_schema.store import RunRow

__all__ = ["Choice", "Edit", "decide"]

_MOST: Final = 64  # decisions of one request


class Edit(NamedTuple):
    """Consent to other arguments than those that were asked for, in one step."""

    arguments: Mapping[str, JsonLike]


type Choice = Literal["approve", "deny"] | Edit


class _Choice(NamedTuple):
    """A decision as it goes into the log."""

    decision: Literal["approve", "deny", "edit"]
    arguments: JsonValue


class _Known(Exception):
    """Everything that is asked for has been decided in just this way before."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__()
        self.receipt = receipt


async def decide(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    decisions: Mapping[str, Choice],
    by: str,
    reason: str | None = None,
    key: str | None = None,
    system: System | None = None,
) -> Receipt:
    """Approve or deny calls that wait for consent; return once that is in the log (R-12).

    `status().pending_approvals` lists them. The same decision again changes nothing.

    Args:
        decisions: by call id or approval id: "approve", "deny" or `Edit(arguments)`; 1 to 64,
            all or none of them are written.
        by: who decides; it stands in the log and in the report.
        reason: why; the model reads it where a call is denied.
        key: the same request again gives the same receipt, also after the Run has settled.

    Raises:
        InvalidArgument, InvalidPayload, PayloadTooLarge: an argument; nothing was written.
        ApprovalNotFound: the Run has asked nobody about such a call.
        ApprovalConflict: somebody decided otherwise before; it says who.
        ApprovalOver: it has expired, or the Run was stopped.
        ApprovalSuperseded: the call or its tool has changed; look again.
        CorruptLog: the Run's log cannot be trusted; nothing can follow in it.
        RunSettled, IdempotencyConflict, StoreUnavailable: as for `interrupt`.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_page(run_id, scope)
    chosen = _checked(decisions)
    if by is None:
        raise InvalidArgument(what="by", problem="say who decides: it stands in the log")
    check_actor(by)
    check_key(key, what="key")
    check_text(reason, what="reason", problem="say why in a text")

    asked = _Asked(store, chosen, by, reason, key, system)
    request = Request(scope.tenant, run_id, key, request_digest("decide", chosen, by, reason))
    try:
        return await write_outside(store, request, asked.records, system=system)
    except _Known as known:
        return known.receipt


@dataclass(frozen=True, slots=True)
class _Asked:
    """What somebody decided, and how it goes into a log."""

    store: Store
    chosen: Mapping[str, _Choice]
    by: str
    reason: str | None
    key: str | None
    system: System

    async def records(self, header: RunRow) -> Sequence[Record]:
        """Return the records that say it; raises why it cannot be said, or that it was."""
        wanted = await _requests(self.store, header, self.chosen)
        edits = any(choice.decision == "edit" for choice in self.chosen.values())
        salt = await _salt(self.store, header) if edits else ""
        records: dict[str, Record] = {}
        known: list[ApprovalDecided] = []
        for name, choice in self.chosen.items():
            asked = wanted.get(name)
            if asked is None:
                known.append(await _decided(self.store, header, name, choice, salt))
                continue
            _check_time(header, name, asked, self.system)
            if asked.approval_id in records:
                problem = f"{asked.approval_id} is named twice, by its call and by itself"
                raise InvalidArgument(what="decisions", problem=problem)
            records[asked.approval_id] = self._record(asked, choice, salt)
        if not records:
            raise _Known(await _receipt(self.store, header, max(one.seq for one in known)))
        return tuple(records.values())

    def _record(self, asked: ApprovalRequested, choice: _Choice, salt: str) -> ApprovalDecided:
        digest = _digest(asked, choice, salt)
        edited = choice.decision == "edit" and digest != asked.digest
        decision = "approve" if choice.decision == "edit" and not edited else choice.decision
        verdict = Verdict(arguments=choice.arguments if edited else None, reason=self.reason)
        return ApprovalDecided(
            run_id=asked.run_id,
            id=self.system.new_id("rec"),
            at=self.system.now(),
            by=self.by,
            approval_id=asked.approval_id,
            decision=decision,
            digest=digest,
            verdict=verdict if edited or self.reason is not None else None,
            key=self.key,
        )


def _checked(decisions: object) -> dict[str, _Choice]:
    if not isinstance(decisions, Mapping) or not 1 <= len(decisions) <= _MOST:
        problem = f'pass 1 to {_MOST} decisions by call id: {{call_id: "approve"}}'
        raise InvalidArgument(what="decisions", problem=problem)
    return {_name(name): _choice(name, choice) for name, choice in decisions.items()}


def _name(name: object) -> str:
    if isinstance(name, str):
        check_text(name, what="decisions", problem="pass the id of a call or an approval")
        return name
    raise InvalidArgument(what="decisions", problem=f"{name!r:.60} is no id of a call or approval")


def _choice(name: object, choice: object) -> _Choice:
    if choice == "approve" or choice == "deny":
        return _Choice(choice, None)
    if isinstance(choice, Edit) and isinstance(choice.arguments, Mapping):
        arguments = check_json(choice.arguments, what=f"arguments of {name:.80}")
        return _Choice("edit", arguments)
    problem = f'{name!s:.80}: pass "approve", "deny" or Edit({{...}}), not {choice!r:.60}'
    raise InvalidArgument(what="decisions", problem=problem)


async def _requests(
    store: Store, header: RunRow, names: Mapping[str, object]
) -> dict[str, ApprovalRequested]:
    """Return what the Run asks for, of the approvals that are open, by both of its names."""
    ids = [one for one in header.open if one.startswith("apr_")]
    if all(name.startswith("apr_") for name in names):
        ids = [one for one in ids if one in names]
    found: dict[str, ApprovalRequested] = {}
    for record in await opened(store, header, ids):
        if isinstance(record, ApprovalRequested):  # a grant was moved by its decision
            found[record.approval_id] = found[record.call_id] = record
    return found


async def _salt(store: Store, header: RunRow) -> str:
    [first] = await store.read(header.tenant, header.run_id, limit=1)
    return first.salt or ""


def _check_time(header: RunRow, name: str, asked: ApprovalRequested, system: System) -> None:
    if asked.expires_at is not None and asked.expires_at <= system.now():
        raise ApprovalOver(run_id=header.run_id, name=name, reason="expired")


def _digest(asked: ApprovalRequested, choice: _Choice, salt: str) -> str:
    """Return what is consented to; an edit that says what was shown changes nothing."""
    if choice.decision != "edit" or choice.arguments == asked.arguments:
        return asked.digest
    return sha256(salt + digest_text(choice.arguments))


# why nothing can be decided any more


async def _decided(
    store: Store, header: RunRow, name: str, choice: _Choice, salt: str
) -> ApprovalDecided:
    """Return the same decision if it was made before, or raise why it cannot be made."""
    if header.state == "corrupt":
        raise CorruptLog(reason="corrupt", run_id=header.run_id, seq=header.head)
    log = await whole_log(store, header)
    asked = [r for r in log if isinstance(r, ApprovalRequested) and name in _names(r)]
    if not asked:
        raise ApprovalNotFound(run_id=header.run_id, name=name)
    last = asked[-1]
    for record in log:
        if isinstance(record, ApprovalRequested) and record.supersedes == last.approval_id:
            raise ApprovalSuperseded(run_id=header.run_id, name=name, by=record.approval_id)
    decided = _decision_of(log, last)
    if decided is not None:
        if _agrees(decided, last, choice, salt):
            return decided
        raise ApprovalConflict(
            run_id=header.run_id, name=name, decision=decided.decision, by=decided.by
        )
    if any(isinstance(r, ApprovalExpired) and r.approval_id == last.approval_id for r in log):
        raise ApprovalOver(run_id=header.run_id, name=name, reason="expired")
    if header.state == "settled":
        raise await run_settled(store, header)
    raise ApprovalOver(run_id=header.run_id, name=name, reason="voided")


def _names(record: ApprovalRequested) -> tuple[str, str]:
    return record.approval_id, record.call_id


def _decision_of(log: Sequence[Record], asked: ApprovalRequested) -> ApprovalDecided | None:
    for record in log:
        if isinstance(record, ApprovalDecided) and record.approval_id == asked.approval_id:
            return record
    return None


def _agrees(decided: ApprovalDecided, asked: ApprovalRequested, choice: _Choice, salt: str) -> bool:
    denies = choice.decision == "deny"
    if denies or decided.decision == "deny":
        return denies and decided.decision == "deny"
    return decided.digest == _digest(asked, choice, salt)


async def _receipt(store: Store, header: RunRow, seq: int) -> Receipt:
    [row] = await store.read(header.tenant, header.run_id, after=seq - 1, limit=1)
    return Receipt(run_id=header.run_id, seq=seq, head_hash=decode(row).hash)
