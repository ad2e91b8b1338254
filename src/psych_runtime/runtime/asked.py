"""Which model is asked, with what beside the conversation, and who stands in (MOD-9, RUN-11).

Everything here follows from the Spec and the log: the next attempt asks the same.
"""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.codec import sha256
from psych_runtime.core.fold import RunState
from psych_runtime.core.models import trusted
from psych_runtime.errors import ContextOverflow, ModelError, ModelTransient, UnsendableRequest
from psych_runtime.runtime.offer import Offer
from psych_schema.model import Message, ModelRequest, OutputFormat
from psych_schema.record import Failure
from psych_schema.spec import AgentSpec, FallbackModel, ModelRef, ToolChoice

__all__ = ["Asked", "asked_next", "has_stand_in", "make_request", "params_of", "tool_choice_of"]

type Asked = ModelRef | FallbackModel

_BAD_REQUEST: Final = frozenset({400, 413, 422})
"""What a provider says of a request that another would not take either."""

_SAMPLING: Final = ("temperature", "top_p", "seed", "max_output_tokens", "cache")

_output_format: Final = trusted(OutputFormat)


def asked_next(model: ModelRef, state: RunState) -> tuple[Asked, str | None]:
    """Return the model that the next call goes to, and the failed call that it stands in for.

    A Run stays with the model that it came to.
    """
    models = _in_order(model)
    call = state.last_model
    last = state.get("model", call)
    names = [one.model for one in models]
    place = names.index(name) if (name := last.text("model")) in names else 0
    if last.phase == "failed" and last.text("next") == "fallback":
        failure = last.get("failure")
        overflow = isinstance(failure, Failure) and failure.code == ContextOverflow.code
        found = _stand_in(models[place + 1 :], overflow=overflow)
        if found is not None:
            return found, call
    return models[place], None


def has_stand_in(model: ModelRef, name: str, error: ModelError) -> bool:
    """Tell whether another model may bring what the one named could not.

    A bad request is nobody else's. A conversation that is too long is only a model's whose
    context window the Spec says is larger.
    """
    if isinstance(error, UnsendableRequest):
        return False
    overflow = isinstance(error, ContextOverflow)
    if not overflow and not isinstance(error, ModelTransient) and error.status in _BAD_REQUEST:
        return False
    models = _in_order(model)
    place = [one.model for one in models].index(name)
    return _stand_in(models[place + 1 :], overflow=overflow) is not None


def _in_order(model: ModelRef) -> Sequence[Asked]:
    """Return the models of a Spec; publishing saw that each name is there once."""
    return (model, *model.fallbacks)


def _stand_in(models: Sequence[Asked], *, overflow: bool) -> Asked | None:
    for one in models:
        if not overflow or (isinstance(one, FallbackModel) and one.larger_context):
            return one
    return None


def tool_choice_of(spec: AgentSpec, turn: int) -> ToolChoice | None:
    """Return what holds in a turn: a call is required in the first one only."""
    choice = spec.model.tool_choice
    if choice is None or choice.mode in ("auto", "none") or turn == 1:
        return choice
    return None


def make_request(
    spec: AgentSpec,
    asked: Asked,
    *,
    name: str,
    turn: int,
    offer: Offer,
    messages: Sequence[Message],
) -> ModelRequest:
    """Return the request; `name` is what the client calls the model."""
    return ModelRequest.model_construct(  # to look at each message is most of a long Run
        model=name,
        system=offer.system,
        messages=messages,
        tools=offer.definitions,
        temperature=asked.temperature,
        top_p=asked.top_p,
        seed=asked.seed,
        max_output_tokens=asked.max_output_tokens,
        stop_sequences=spec.model.stop_sequences,
        tool_choice=tool_choice_of(spec, turn),
        parallel_tool_calls=spec.model.parallel_tool_calls,
        output=_format_of(spec),
        cache=asked.cache,
        extras=asked.extras,
        ref=asked.model,
        stream_idle_seconds=spec.limits.stream_idle_seconds,
    )


def _format_of(spec: AgentSpec) -> OutputFormat | None:
    if spec.output is None:
        return None
    return _output_format(
        name=spec.name, json_schema=spec.output.json_schema, strict=spec.output.strict
    )


def params_of(spec: AgentSpec, asked: Asked, turn: int) -> dict[str, JsonValue]:
    """Return what a record says of the request; of what may be long, the hash (LOG-2)."""
    given = {name: getattr(asked, name) for name in _SAMPLING}
    params: dict[str, JsonValue] = {k: v for k, v in given.items() if v is not None}
    if spec.model.stop_sequences:
        params["stop_sequences"] = list(spec.model.stop_sequences)
    choice = tool_choice_of(spec, turn)
    if choice is not None:
        params["tool_choice"] = choice.mode if choice.tool is None else f"tool:{choice.tool}"
    if spec.model.parallel_tool_calls is not None:
        params["parallel_tool_calls"] = spec.model.parallel_tool_calls
    if spec.output is not None:
        params["output"] = sha256(canonical_json(dict(spec.output.json_schema)))
    if asked.extras:
        params["extras"] = sha256(canonical_json(dict(asked.extras)))
    return params
