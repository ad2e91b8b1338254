"""What a consumer brings together: store, models, tools, policy."""

from collections.abc import Callable, Mapping
from contextvars import Context

from psych_runtime._system import System, ambient_system
from psych_runtime.errors import InvalidArgument, ModelPermanent
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope
from psych_schema.spec import AgentSpec

__all__ = ["Runtime"]


class Runtime:
    """The ports that Runs are executed with; several workers may share one.

    Args:
        store: where everything that happens is kept.
        model: one client, or several by name; a Spec then says `name/model`.
        registry: the tools that Specs may name.
        policy: decides each tool call; the default asks for every tool that is not read-only.
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
        context: Callable[[Scope | None], None] | None = None,
        system: System | None = None,
    ) -> None:
        clients = model if isinstance(model, Mapping) else {"": model}
        for client in clients.values():
            _check_port(client, ("stream", "models"), what="model", remedy="pass a ModelClient")
        if policy is not None:
            _check_port(policy, ("decide_tool",), what="policy", remedy="pass a Policy")
        self.store = store
        self.registry = ToolRegistry() if registry is None else registry
        self.policy: Policy = AskUnlessReadOnly() if policy is None else policy
        self.system = ambient_system() if system is None else system
        self._clients = clients
        self._context = context

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

    def missing(self, spec: AgentSpec) -> tuple[str, ...]:
        """Return the identities of granted tools that are not registered here (PUB-3)."""
        return tuple(
            f"{tool.kind}:{tool.name}"
            for tool in spec.tools
            if self.registry.get(tool.name) is None
        )

    def new_context(self, scope: Scope | None) -> Context:
        """Return an empty context with what the consumer sets in it (R-21)."""
        context = Context()
        if self._context is not None:
            context.run(self._context, scope)
        return context


def _check_port(port: object, methods: tuple[str, ...], *, what: str, remedy: str) -> None:
    """Raise InvalidArgument for what cannot be called as the port says."""
    if isinstance(port, type):
        raise InvalidArgument(
            what=what, problem=f"{port.__name__} is a class: pass {port.__name__}()"
        )
    for method in methods:
        if not callable(getattr(port, method, None)):
            problem = f"a {type(port).__name__} has no {method}(): {remedy}"
            raise InvalidArgument(what=what, problem=problem)
