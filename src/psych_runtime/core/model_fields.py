"""What a model is asked for beside the conversation, and whether its client sends that (MOD-9)."""

from collections.abc import Iterator
from typing import Final, TypeGuard, get_args

from psych_runtime.core._redact import shown
from psych_runtime.ports.model import PLAIN, DeclaringClient, ModelClient, ModelField, Takes
from psych_schema.model import ModelRequest
from psych_schema.spec import FallbackModel, ModelRef

__all__ = ["FIELDS", "asked_fields", "clashes", "takes_of", "unsendable"]

FIELDS: Final[tuple[ModelField, ...]] = get_args(ModelField.__value__)
"""Every field that a client may take or not, sorted."""

_UNSET: Final[tuple[object, ...]] = (None, (), {})


def asked_fields(asking: ModelRef | FallbackModel | ModelRequest) -> Iterator[ModelField]:
    """Yield the fields that are set, sorted."""
    for field in FIELDS:
        if getattr(asking, field, None) not in _UNSET:
            yield field


def clashes(asking: ModelRef | FallbackModel | ModelRequest, takes: Takes) -> list[str]:
    """Return the names of extras that the client writes itself, sorted."""
    return sorted(takes.own & asking.extras.keys())


def takes_of(client: ModelClient) -> Takes:
    """Return what a client sends on; PLAIN when it does not say."""
    return client.takes() if _declares(client) else PLAIN


def _declares(client: ModelClient) -> TypeGuard[DeclaringClient]:
    return callable(getattr(client, "takes", None))


def unsendable(request: ModelRequest, takes: Takes, *, client: str) -> str | None:
    """Say what of `request` a client would not send as it is, None when it sends all of it."""
    for field in asked_fields(request):
        if field not in takes.fields:
            return f"{client} does not take {field}; leave it out, or call another model"
    for name in clashes(request, takes):
        return f"extras have {shown(name)}, which {client} writes itself; take it out"
    names = {tool.name for tool in request.tools}
    choice = request.tool_choice
    if choice is None or choice.mode in ("auto", "none"):
        return None
    if choice.mode == "tool" and choice.tool not in names:
        given = "none" if choice.tool is None else shown(choice.tool)
        return f"tool_choice names {given}, which is not among the tools of this request"
    return None if names else "tool_choice requires a call, and this request has no tools"
