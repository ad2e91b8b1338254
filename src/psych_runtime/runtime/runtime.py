"""What a consumer brings together: store, models, tools, policy."""

from collections.abc import Callable, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Final, Self

from psych_runtime._system import System, ambient_system
from psych_runtime.core._model_checks import Serving
from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.core.model_fields import takes_of
from psych_runtime.errors import InvalidArgument, ModelPermanent
from psych_runtime.memory.stored import StoredMemory
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.egress import EgressPolicy
from psych_runtime.ports.memory import MemoryStore
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.secrets import SecretResolver
from psych_runtime.ports.store import Store
from psych_runtime.runtime.requests import check_blob, check_port, check_store
from psych_runtime.secrets.absent import NoSecrets
from psych_runtime.tools.builtin import builtin_tool
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope
from psych_schema.spec import AgentSpec, BuiltinTool, HttpTool

if TYPE_CHECKING:
    from psych_runtime.egress import Outbound, Proxy

__all__ = ["Runtime"]

_MOST_OWNED: Final = 1024
_MAX_OFFLOADED_BYTES: Final = 16 * 1024 * 1024  # to read more of it takes seconds
_LEAST_OFFLOADED_BYTES: Final = 1024


class Runtime:
    """The ports that Runs are executed with; several workers may share one.

    An async context manager around its workers closes what HTTP tools left open.

    Args:
        store: where everything that happens is kept.
        model: one client, or several by name; a Spec then says `name/model`.
        registry: the tools that Specs may name.
        policy: decides each tool call; the default asks for every tool that is not read-only.
        memory: where agents remember; the default is the store, apart for each principal.
        secrets: gives the values of secrets that Specs name; without it there are none.
        egress: judges the addresses that Specs name; the default allows public ones only.
        proxy: which forward proxy the requests of tools go through; the environment names none.
        blob: keeps images, files and what is too large for the log; without it there are none.
        offload_bytes: a result with more bytes as JSON goes to `blob`, a smaller one into the
            log; 1,024 to 262,144, the most that a record takes.
        context: called with a Run's scope inside its own empty contextvars.Context, and with
            None inside the worker's; sets what tools and clients shall find there (RUN-12).
        system: clock, ids and randomness; tests bring their own.
    """

    def __init__(
        self,
        *,
        store: Store,
        model: ModelClient | Mapping[str, ModelClient],
        registry: ToolRegistry | None = None,
        policy: Policy | None = None,
        memory: MemoryStore | None = None,
        blob: BlobStore | None = None,
        offload_bytes: int = MAX_CONTENT_BYTES,
        secrets: SecretResolver | None = None,
        egress: EgressPolicy | None = None,
        proxy: "Proxy | None" = None,
        context: Callable[[Scope | None], None] | None = None,
        system: System | None = None,
    ) -> None:
        check_store(store)
        clients = model if isinstance(model, Mapping) else {"": model}
        for client in clients.values():
            check_port(client, ("stream", "models"), what="model", remedy="pass a ModelClient")
        if policy is not None:
            methods = ("allow_run", "permitted", "decide_tool")
            check_port(policy, methods, what="policy", remedy="let it extend Policy")
        if memory is not None:
            methods = ("remember", "forget", "recall")
            check_port(memory, methods, what="memory", remedy="pass a MemoryStore")
        check_blob(blob, "put", "read")
        if secrets is not None:
            check_port(secrets, ("resolve",), what="secrets", remedy="pass a SecretResolver")
        if egress is not None:
            check_port(egress, ("judge",), what="egress", remedy="pass an EgressPolicy")
        if proxy is not None:
            check_port(proxy, ("bypasses",), what="proxy", remedy="pass Proxy(url)")
        self.store = store
        self.blob = blob
        self.offload_bytes = _checked_bound(offload_bytes)
        self.registry = ToolRegistry() if registry is None else registry
        self.policy: Policy = AskUnlessReadOnly() if policy is None else policy
        self.system = ambient_system() if system is None else system
        self.memory: MemoryStore = StoredMemory(store, self.system) if memory is None else memory
        self.secrets: SecretResolver = NoSecrets() if secrets is None else secrets
        self._egress = egress
        self._proxy = proxy
        self._outbound: Outbound | None = None
        self._clients = clients
        self._context = context
        self._owned: dict[tuple[int, str], tuple[AgentSpec, RegisteredTool]] = {}

    def client(self, model: str) -> tuple[ModelClient, str]:
        """Return who is called for a ModelRef's `model`, and the name that it knows.

        Raises ModelPermanent when no client has that name.
        """
        prefix, slash, rest = model.partition("/")
        if slash and prefix in self._clients:
            return self._clients[prefix], rest
        if len(self._clients) == 1:
            return next(iter(self._clients.values())), model
        known = ", ".join(sorted(self._clients))
        raise ModelPermanent(
            f"no client for model {model!r}; write client/model with one of {known}"
        )

    def models(self) -> frozenset[str] | None:
        """Return the model names that a Spec may use, None when a client cannot know."""
        names: set[str] = set()
        for prefix, client in self._clients.items():
            known = client.models()
            if known is None:
                return None
            names |= {f"{prefix}/{name}" if prefix else name for name in known}
            if len(self._clients) == 1:
                names |= set(known)
        return frozenset(names)

    def serving(self, model: str) -> Serving | None:
        """Return who is called for a ModelRef's `model` and what it sends on, None for nobody."""
        try:
            client, _ = self.client(model)
        except ModelPermanent:
            return None
        return Serving(type(client).__name__, takes_of(client))

    def missing(self, spec: AgentSpec) -> tuple[str, ...]:
        """Return the identities of granted tools that are not registered here (PUB-3)."""
        return tuple(
            f"{tool.kind}:{tool.name}"
            for tool in spec.tools
            if tool.kind == "code" and self.registry.get(tool.name) is None
        )

    def granted(self, spec: AgentSpec) -> Mapping[str, RegisteredTool]:
        """Return the tools that a Spec grants and that are here, by name and in its order."""
        found = (
            self.registry.get(grant.name) if grant.kind == "code" else self._own(spec, grant)
            for grant in spec.tools
        )
        return {tool.name: tool for tool in found if tool is not None}

    def _own(self, spec: AgentSpec, grant: BuiltinTool | HttpTool) -> RegisteredTool:
        """Return a tool that this Spec itself describes; made once for each Spec."""
        known = self._owned.get((id(spec), grant.name))
        if known is not None and known[0] is spec:
            return known[1]
        if len(self._owned) >= _MOST_OWNED:
            self._owned.clear()
        made = self._http(grant) if grant.kind == "http" else builtin_tool(spec, grant.name)
        self._owned[id(spec), grant.name] = spec, made
        return made

    def _http(self, grant: HttpTool) -> RegisteredTool:
        from psych_runtime.tools.http import http_tool

        return http_tool(grant, outbound=self.outbound, secrets=self.secrets, system=self.system)

    @property
    def max_result_bytes(self) -> int:
        """How much a tool's result may have as JSON, its attachments apart."""
        return MAX_CONTENT_BYTES if self.blob is None else _MAX_OFFLOADED_BYTES

    @property
    def outbound(self) -> "Outbound":
        """What sends the requests that Specs describe; made when the first is."""
        if self._outbound is None:
            from psych_runtime.egress import EgressRules, Outbound

            policy = EgressRules() if self._egress is None else self._egress
            self._outbound = Outbound(policy, proxy=self._proxy)
        return self._outbound

    async def aclose(self) -> None:
        """Close what HTTP tools left open on this loop; the store and the models stay open.

        Call it when the workers here have ended, or make the Runtime by `async with`; a later
        call opens what it needs.
        """
        if self._outbound is not None:
            await self._outbound.aclose()

    async def __aenter__(self) -> Self:
        """Return the Runtime itself; nothing is opened before the first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close what HTTP tools left open on this loop."""
        await self.aclose()

    def new_context(self, scope: Scope | None) -> Context:
        """Return an empty context with what the consumer sets in it (R-21)."""
        context = Context()
        if self._context is not None:
            context.run(self._context, scope)
        return context


def _checked_bound(given: object) -> int:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not isinstance(given, int) or not is_number:
        problem = f"must be a number of bytes, got a {type(given).__name__}"
    elif _LEAST_OFFLOADED_BYTES <= given <= MAX_CONTENT_BYTES:
        return given
    else:
        problem = f"must be {_LEAST_OFFLOADED_BYTES} to {MAX_CONTENT_BYTES}, got {given}"
    raise InvalidArgument(what="offload_bytes", problem=problem)
