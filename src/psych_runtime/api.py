"""The writing half of the API: publish, dispatch, interrupt. Reading is in `_reads`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from psych_runtime._arguments import check_flag, check_page, check_scope_type, check_text
from psych_runtime._shown import is_erased
from psych_runtime._system import System, ambient_system
from psych_runtime.core.canonical import canonical_text, spec_hash
from psych_runtime.core.http_checks import http_schema_issues
from psych_runtime.core.issues import Issue
from psych_runtime.core.json_schema import Work, check_json_schema
from psych_runtime.core.validation import check_spec, read_spec
from psych_runtime.errors import (
    ContentErased,
    IdempotencyConflict,
    InvalidArgument,
    InvalidSpec,
    NotThreadTail,
    RunNotFound,
    VersionNotFound,
)
from psych_runtime.ports.answers import Committed, KeyTaken
from psych_runtime.ports.store import Admit, Change, HeaderChange, Store, Unit
from psych_runtime.runtime.access import is_permitted, permitted_to
from psych_runtime.runtime.admission import admit, run_admitted
from psych_runtime.runtime.commit import commit_surely
from psych_runtime.runtime.outside import PATIENCE_SECONDS, Request, write_outside
from psych_runtime.runtime.requests import (
    JsonLike,
    check_actor,
    check_input,
    check_key,
    check_scope,
    check_store,
    request_digest,
)
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.tools.registry import ToolRegistry
from psych_runtime.tools.reserved import RESERVED_TOOL_NAMES
from psych_schema.common import Scope
from psych_schema.receipt import Receipt
from psych_schema.record import AbortRequested, Record, RunAdmitted, ThreadRef
from psych_schema.spec import Spec
from psych_schema.store import KeyRow, RunRow

__all__ = ["Dispatched", "Version", "dispatch", "interrupt", "publish"]


class Version(NamedTuple):
    """A published Spec; `unchecked` says in words what publishing could not check (PUB-2)."""

    hash: str
    spec: Spec
    unchecked: tuple[str, ...] = ()


class Dispatched(NamedTuple):
    """An admitted Run; not `created` when the idempotency key had admitted it before."""

    run_id: str
    created: bool


async def publish(
    store: Store,
    spec: Spec | Mapping[str, object] | str,
    *,
    scope: Scope,
    check: Runtime | ToolRegistry | None = None,
) -> Version:
    """Store `spec` as an immutable Version of the tenant; the same Spec is the same Version.

    Args:
        spec: a Spec, or one as a mapping or JSON text; `load_spec` reads files.
        check: what Runs will be executed with; without it names cannot be checked.

    Raises:
        InvalidSpec: everything that is wrong with it, at once (SPEC-4, PUB-1).
        StoreUnavailable: it may or may not be stored; publish again.
    """
    if isinstance(spec, str) and not spec.lstrip().startswith("{"):
        message = "expected JSON text; load_spec(...) reads YAML, and files by their path"
        raise InvalidSpec([Issue("", message, "not_json")])
    check_store(store)
    check_scope_type(scope)
    read = read_spec(spec)
    registry = check.registry if isinstance(check, Runtime) else check
    checked = check_spec(
        read,
        tools=None if registry is None else registry.names(),
        models=check.models() if isinstance(check, Runtime) else None,
        serving=check.serving if isinstance(check, Runtime) else None,
        reserved=RESERVED_TOOL_NAMES,
    )
    issues = [*checked.issues, *_schema_issues(read, registry)]
    if isinstance(check, Runtime):
        issues += _access_issues(read, await permitted_to(check.policy, scope))
    if issues:
        raise InvalidSpec(issues)
    hash = spec_hash(read)
    await store.put_version(scope.tenant, hash, canonical_text(read))
    return Version(hash, read, tuple(checked.unchecked))


async def dispatch(
    store: Store,
    version: Version | str,
    *,
    scope: Scope,
    input: JsonLike = None,
    idempotency_key: str | None = None,
    deadline_seconds: float | None = None,
    continues: str | None = None,
    priority: int = 0,
    deltas: bool = False,
    system: System | None = None,
) -> Dispatched:
    """Admit a Run of `version`; return once it is stored. A worker does the work (ADM-3).

    Args:
        version: a published Version, or its hash.
        input: `{"message": text or parts}` or any JSON value, of at most 256 KiB as JSON.
        idempotency_key: one per tenant; the same request again gives the first Run.
        deadline_seconds: from admission, suspensions not counted; None is the Spec's limit.
        continues: the settled Run at the end of a thread that this one goes on with.
        priority: 0 to 9; higher is claimed first, within the tenant.
        deltas: whether pieces of the model's stream are recorded, for readers.

    Raises:
        VersionNotFound: publish it first, in this tenant.
        IdempotencyConflict: the key admitted another request; `run_id` says which.
        NotThreadTail, ContentErased: `continues` is not the settled tail of its thread, or erased.
        PayloadTooLarge, InvalidPayload: the input; nothing was written.
        InvalidArgument: another argument; nothing was written.
        StoreUnavailable: it may or may not be admitted; repeat with the same key.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_scope_type(scope)
    check_scope(scope)
    check_text(continues, what="continues", problem="pass the id: run.run_id")
    check_key(idempotency_key, what="idempotency_key")
    _check_numbers(deadline_seconds, priority)
    given = check_input(input)
    hash = _hash_of(version)
    deadline_seconds = await _deadline(store, scope.tenant, version, deadline_seconds)
    asked = hash, scope.model_dump(), given, deadline_seconds, continues, priority, deltas
    digest = "" if idempotency_key is None else request_digest(*asked)
    known = await _known_run(store, scope.tenant, idempotency_key, digest)
    if known is not None:
        return known
    tail = None if continues is None else await _settled_tail(store, scope.tenant, continues)
    record = run_admitted(
        system,
        version=hash,
        scope=scope,
        input=given,
        thread=None if tail is None else _after(tail),
        deadline_seconds=deadline_seconds,
        priority=priority,
        deltas=bool(deltas),
        key=idempotency_key,
    )
    return await _admit(store, record, tail, digest, system)


def _hash_of(version: object) -> str:
    if isinstance(version, Version):
        return version.hash
    if isinstance(version, str):
        return version
    raise InvalidArgument(what="version", problem="pass what publish() returned, or its hash")


async def _deadline(
    store: Store, tenant: str, version: Version | str, deadline_seconds: float | None
) -> float:
    """Return the Run's deadline, from the Spec unless given. Raises VersionNotFound."""
    hash = _hash_of(version)
    document = await store.version(tenant, hash)
    if document is None:
        raise VersionNotFound(version=hash)
    if deadline_seconds is not None:
        return deadline_seconds
    spec = version.spec if isinstance(version, Version) else read_spec(document)
    return spec.limits.deadline_seconds


async def _admit(
    store: Store, record: RunAdmitted, tail: RunRow | None, digest: str, system: System
) -> Dispatched:
    """Commit the admission; the loser of a race learns who won."""
    commit_id = system.new_id("com")
    admission = admit(record, commit_id=commit_id, system=system)
    keys = () if record.key is None else (_key_row(admission, record.key, digest),)
    unit = Unit(commit_id, record.scope.tenant, (admission, *_reference(tail)), keys)
    [answer] = await commit_surely(store, [unit], system=system, patience_seconds=PATIENCE_SECONDS)
    match answer:
        case Committed():
            return Dispatched(record.run_id, True)
        case KeyTaken():
            return _known(answer.key, answer.digest, answer.receipt, digest)
        case _ if tail is not None:
            await _settled_tail(store, tail.tenant, tail.run_id)
            raise NotThreadTail(run_id=tail.run_id, tail=tail.run_id, state="changed meanwhile")
        case _:
            raise RunNotFound(run_id=record.run_id)


async def interrupt(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    reason: str | None = None,
    by: str | None = None,
    force: bool = False,
    key: str | None = None,
    system: System | None = None,
) -> Receipt:
    """Ask a Run to stop; return once that is in its log. Its attempt stops within a second.

    Args:
        force: give up what cannot be interrupted, too; after 2 s its outcome is unknown.
        key: the same request again gives the same receipt, also after the Run has settled.

    Raises:
        InvalidArgument, InvalidPayload, PayloadTooLarge: an argument; nothing was written.
        RunSettled: it has ended already.
        RunStopping: it is stopping already, and `force` adds nothing.
        IdempotencyConflict: the key belongs to another request.
        StoreUnavailable: it may or may not be in the log; repeat with the same key.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_page(run_id, scope)
    check_actor(by)
    check_key(key, what="key")
    check_text(reason, what="reason", problem="say why in a text")
    check_flag(force, what="force")

    async def make(header: RunRow) -> Sequence[Record]:
        asked = AbortRequested(
            run_id=header.run_id,
            id=system.new_id("rec"),
            at=system.now(),
            by=by,
            reason=reason,
            force=force,
            key=key,
        )
        return (asked,)

    digest = request_digest("interrupt", reason, by, force)
    return await write_outside(
        store, Request(scope.tenant, run_id, key, digest), make, system=system
    )


def _schema_issues(spec: Spec, registry: ToolRegistry | None) -> Iterator[Issue]:
    """Yield what is wrong with the schemas of tools, events and the answer (PUB-1)."""
    if not (spec.tools or spec.events or spec.output):
        return
    work = Work()  # of the whole Spec: many schemas must not take longer than one
    if spec.output is not None:
        yield from check_json_schema(spec.output.json_schema, "/output/json_schema", work=work)
    for place, event in enumerate(spec.events):
        if event.payload_schema is not None:
            pointer = f"/events/{place}/payload_schema"
            yield from check_json_schema(event.payload_schema, pointer, work=work)
    for place, granted in enumerate(spec.tools):
        if granted.kind == "http":
            yield from http_schema_issues(granted, f"/tools/{place}", work)
        tool = registry.get(granted.name) if registry and granted.kind == "code" else None
        if tool is not None:
            schema = tool.definition.model_dump(mode="json")["parameters"]
            # pydantic judges the arguments; the schema only tells the model, patterns and all
            yield from check_json_schema(schema, f"/tools/{place}", work=work, is_matched=False)


def _access_issues(spec: Spec, patterns: Collection[str] | None) -> Iterator[Issue]:
    """Yield the granted tools that the scope may not use (TOOL-3)."""
    for place, granted in enumerate(spec.tools if patterns is not None else ()):
        if not is_permitted(f"{granted.kind}:{granted.name}", patterns or ()):
            message = "the policy does not permit this tool to the scope"
            yield Issue(f"/tools/{place}/name", message, "not_permitted")


def _check_numbers(deadline_seconds: float | None, priority: int) -> None:
    if deadline_seconds is not None and not _is_number(deadline_seconds, 0, 1e9):
        problem = "a deadline is a number of seconds, more than 0 and at most 1e9"
        raise InvalidArgument(what="deadline_seconds", problem=problem)
    if not (_is_number(priority, -1, 9) and isinstance(priority, int)):
        raise InvalidArgument(what="priority", problem="a priority is 0 to 9")


def _is_number(value: object, above: float, at_most: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return above < value <= at_most


async def _known_run(store: Store, tenant: str, key: str | None, digest: str) -> Dispatched | None:
    """Return what the key admitted before. Raises IdempotencyConflict."""
    row = None if key is None else await store.key(tenant, "", key)
    return None if row is None else _known(row.key, row.digest, row.receipt, digest)


def _known(key: str, digest: str, receipt: str, wanted: str) -> Dispatched:
    run_id = Receipt.model_validate_json(receipt).run_id
    if digest != wanted:
        raise IdempotencyConflict(key=key, run_id=run_id)
    return Dispatched(run_id, False)


def _key_row(admission: Admit, key: str, digest: str) -> KeyRow:
    header = admission.header
    receipt = Receipt(run_id=header.run_id, seq=1, head_hash=header.head_hash)
    return KeyRow(
        tenant=header.tenant,
        run_id="",
        key=key,
        digest=digest,
        receipt=receipt.model_dump_json(),
    )


async def _settled_tail(store: Store, tenant: str, run_id: str) -> RunRow:
    """Return the header of the thread's tail, which must be `run_id` and settled (R-18)."""
    header = await store.header(tenant, run_id)
    tail = await store.tail(tenant, header.thread)
    if tail is None or tail.run_id != run_id or tail.state != "settled":
        found = header if tail is None else tail
        raise NotThreadTail(run_id=run_id, tail=found.run_id, state=found.state)
    if await is_erased(store, tail):
        raise ContentErased(run_id=run_id)
    return tail


def _after(tail: RunRow) -> ThreadRef:
    return ThreadRef(id=tail.thread, position=tail.position + 1, previous=tail.run_id)


def _reference(tail: RunRow | None) -> tuple[Change, ...]:
    """Return the change that keeps a predecessor from being purged."""
    if tail is None:
        return ()
    return (Change(tail.run_id, tail.head, None, (), HeaderChange(referenced=True)),)
