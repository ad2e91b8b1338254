"""The on-ramp: store, registry, runtime and worker in one `async with`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from psych_runtime._arguments import check_timeout
from psych_runtime._consent import Approve, Asks, Tools, approver
from psych_runtime._decisions import Choice, decide
from psych_runtime._reads import answer, stream, wait
from psych_runtime._system import System
from psych_runtime.api import Dispatched, Version, dispatch, publish
from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.errors import WaitTimeout
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.egress import EgressPolicy
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.secrets import SecretResolver
from psych_runtime.ports.store import Store
from psych_runtime.runtime.requests import JsonLike, check_store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.store.open import open_store
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope
from psych_schema.record import Record
from psych_schema.spec import Spec
from psych_schema.view import AnswerView, StatusView

if TYPE_CHECKING:
    from psych_runtime.egress import Proxy

__all__ = ["Session", "session"]

_BY: Final = "session"
_GRACE_SECONDS: Final = 5.0
_MIGRATED: Final = ("memory", "sqlite")  # what is this program's own


class Session:
    """A store, a runtime and a running worker; everything in it is the real object."""

    def __init__(
        self,
        runtime: Runtime,
        worker: Worker,
        scope: Scope,
        approve: Asks | None = None,
    ) -> None:
        self.runtime = runtime
        self.worker = worker
        self.scope = scope
        self._approve = approve

    @property
    def store(self) -> Store:
        """The store."""
        return self.runtime.store

    @property
    def registry(self) -> ToolRegistry:
        """The tools that Specs may name."""
        return self.runtime.registry

    async def publish(self, spec: Spec | Mapping[str, object] | str) -> Version:
        """Publish `spec`, checked against this session's tools and models."""
        return await publish(self.store, spec, scope=self.scope, check=self.runtime)

    async def start(
        self,
        spec: Spec | Version,
        message: JsonLike,
        *,
        continues: str | None = None,
        idempotency_key: str | None = None,
    ) -> Dispatched:
        """Publish and dispatch; return at once. A text is `{"message": text}`."""
        version = spec if isinstance(spec, Version) else await self.publish(spec)
        return await dispatch(
            self.store,
            version,
            scope=self.scope,
            input={"message": message} if isinstance(message, str) else message,
            continues=continues,
            idempotency_key=idempotency_key,
            deltas=True,
            system=self.runtime.system,
        )

    async def ask(
        self,
        spec: Spec | Version,
        message: JsonLike,
        *,
        continues: str | None = None,
        timeout_seconds: float | None = 120.0,
    ) -> AnswerView:
        """Run to the answer, or to what the Run waits for that nobody here decides.

        Args:
            timeout_seconds: how long at most, whoever is asked to approve included; None waits
                as long as it takes. A plain function that blocks holds up the whole loop.

        Raises:
            WaitTimeout: the time is over; the Run goes on and can be asked for by its id.
            InvalidArgument: what `approve` returned is no choice, or an edit that does not fit
                the tool; nothing was decided, and the Run waits on.
        """
        check_timeout(timeout_seconds)
        version = spec if isinstance(spec, Version) else await self.publish(spec)
        tools = self.runtime.granted(version.spec)
        run = await self.start(version, message, continues=continues)
        clock = asyncio.get_running_loop().time
        end = None if timeout_seconds is None else clock() + timeout_seconds
        while True:
            left = None if end is None else max(0.0, end - clock())
            try:
                status = await wait(
                    self.store,
                    run.run_id,
                    scope=self.scope,
                    until="suspended",
                    timeout_seconds=left,
                )
            except WaitTimeout as error:  # it had only what was left
                seconds = timeout_seconds or 0.0
                raise WaitTimeout(
                    run_id=run.run_id, until=error.until, timeout_seconds=seconds
                ) from None
            decisions = await self._choices(status, tools, end, timeout_seconds)
            if not decisions:
                return await answer(self.store, run.run_id, scope=self.scope)
            await decide(
                self.store,
                run.run_id,
                scope=self.scope,
                decisions=decisions,
                by=_BY,
                system=self.runtime.system,
            )

    async def _choices(
        self, status: StatusView, tools: Tools, end: float | None, timeout_seconds: float | None
    ) -> dict[str, Choice]:
        """Ask about each call that waits for consent. Raises WaitTimeout at the loop's `end`."""
        choices: dict[str, Choice] = {}
        limit = asyncio.timeout_at(end)
        try:
            async with limit:
                for pending in status.pending_approvals if self._approve else ():
                    choice = await self._approve(pending, tools) if self._approve else None
                    if choice is not None:
                        choices[pending.approval_id] = choice
        except TimeoutError:
            if not limit.expired():  # it is whose function was asked
                raise
            raise WaitTimeout(
                run_id=status.run_id, until="decided", timeout_seconds=timeout_seconds or 0.0
            ) from None
        return choices

    async def wait(self, run_id: str, *, timeout_seconds: float | None = None) -> StatusView:
        """Return once the Run has settled. Raises WaitTimeout."""
        return await wait(self.store, run_id, scope=self.scope, timeout_seconds=timeout_seconds)

    def stream(self, run_id: str, *, after: int = 0) -> AsyncGenerator[Record]:
        """Yield every record after `after`, until the Run settles."""
        return stream(self.store, run_id, scope=self.scope, after=after)


@asynccontextmanager
async def session(
    model: ModelClient | Mapping[str, ModelClient],
    *,
    tools: Iterable[object] = (),
    registry: ToolRegistry | None = None,
    store: Store | str | None = None,
    tenant: str = "local",
    approve: Approve | None = None,
    policy: Policy | None = None,
    blob: BlobStore | None = None,
    offload_bytes: int = MAX_CONTENT_BYTES,
    secrets: SecretResolver | None = None,
    egress: EgressPolicy | None = None,
    proxy: "Proxy | None" = None,
    context: Callable[[Scope | None], None] | None = None,
    system: System | None = None,
) -> AsyncIterator[Session]:
    """Run agents in this process: the shortest way to a durable answer.

    Args:
        tools: functions that the model may call, marked with `@tool` or plain.
        registry: tools that are registered already; `tools` are added to it.
        store: a store, or the URL of one; None keeps everything in memory. A SQLite file
            opened here is migrated here; other stores say what to run.
        tenant: whose Runs they are.
        approve: who decides, while `ask` waits, about calls that the policy asks for: "terminal",
            or a function of the pending approval that returns "approve", "deny", `Edit({...})`,
            or None to leave it waiting. An edit that does not fit the tool is refused: `ask`
            raises InvalidArgument, and at the terminal it is said and asked again.
        policy, blob, offload_bytes, secrets, egress, proxy, context, system: as for Runtime.
    """
    registry = ToolRegistry() if registry is None else registry
    decides = approver(approve)
    registry.register_all(tools)
    scope = Scope(tenant=tenant)
    async with AsyncExitStack() as opened:
        runtime = Runtime(
            store=await opened.enter_async_context(_opened(store)),
            model=model,
            registry=registry,
            policy=policy,
            blob=blob,
            offload_bytes=offload_bytes,
            secrets=secrets,
            egress=egress,
            proxy=proxy,
            context=context,
            system=system,
        )
        opened.push_async_callback(runtime.aclose)
        worker = Worker(runtime, grace_seconds=_GRACE_SECONDS)
        async with _at_work(worker):
            yield Session(runtime, worker, scope, decides)


@asynccontextmanager
async def _opened(store: Store | str | None) -> AsyncIterator[Store]:
    """Give a store as it is, or open what a URL names; what is this program's own is migrated."""
    if store is not None and not isinstance(store, str):
        check_store(store)
        yield store
        return
    url = "memory://" if store is None else store
    async with open_store(url) as there:
        if url.startswith(_MIGRATED):
            await there.migrate()
        else:
            await there.workers()  # or the first to hear of missing tables is the worker
        yield there


@asynccontextmanager
async def _at_work(worker: Worker) -> AsyncIterator[None]:
    """Let `worker` run as long as the block does."""
    running = asyncio.create_task(worker.run())
    try:
        yield
    except (asyncio.CancelledError, KeyboardInterrupt):
        running.cancel()  # whoever interrupts the program does not wait for a model
        raise
    finally:
        worker.stop()
        with suppress(asyncio.CancelledError):
            await running
