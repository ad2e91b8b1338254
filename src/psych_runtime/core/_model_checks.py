"""What is wrong with the models of a Spec, and what their clients do not send (MOD-9, PUB-1)."""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from psych_runtime.core._locate import pointer_of
from psych_runtime.core._redact import shown
from psych_runtime.core.issues import Issue
from psych_runtime.core.model_fields import asked_fields, clashes
from psych_runtime.core.near import nearest
from psych_runtime.ports.model import PLAIN, Takes
from psych_schema.spec import FallbackModel, ModelRef, Spec

__all__ = ["FindServing", "Serving", "model_issues", "model_names", "unchecked_models"]

_SHARED: Final = ("parallel_tool_calls", "stop_sequences", "tool_choice")
"""What ModelRef says for its fallbacks, too."""


class Serving(NamedTuple):
    """Who answers for a model, and what it sends on."""

    client: str
    takes: Takes


type FindServing = Callable[[str], Serving | None]
"""Finds who answers for a ModelRef's `model`; None when no client does."""


def model_issues(
    spec: Spec, models: Collection[str] | None, serving: FindServing | None
) -> Iterator[Issue]:
    """Yield what is wrong; without `models` and `serving`, as far as the Spec alone tells."""
    yield from _choice_issues(spec)
    seen: set[str] = set()
    for pointer, one in _models(spec):
        place = f"{pointer}/model"
        if one.model in seen:
            message = "stands here before; each model once"
            yield Issue(place, message, "doubled_name", shown(one.model))
        seen.add(one.model)
        if models is not None and one.model not in models:
            issue = Issue(place, "no client has this model", "unknown_model", shown(one.model))
            yield issue._replace(suggestion=nearest(one.model, models))
        elif serving is not None:
            found = serving(one.model)
            if found is None:
                message = "no client has this name; write client/model"
                yield Issue(place, message, "unknown_model", shown(one.model))
            else:
                yield from _untaken(spec, pointer, one, found)


def model_names(spec: Spec) -> list[str]:
    """Return the models that a Spec may call, each once."""
    return list(dict.fromkeys(one.model for _, one in _models(spec)))


def unchecked_models(
    spec: Spec, models: Collection[str] | None, serving: FindServing | None
) -> Iterator[str]:
    """Yield in words what nobody could check (PUB-2)."""
    if models is None:
        for name in model_names(spec):
            yield f"whether the model {name!r} exists (no client knows its models)"
    if serving is None:
        asked = {field for _, one in _models(spec) for field in asked_fields(one)}
        asked |= {"output"} if spec.output is not None else set()
        names = ", ".join(sorted(asked - PLAIN.fields))
        if names:
            yield f"whether the models' clients take {names} (no Runtime was given)"


def _models(spec: Spec) -> Iterator[tuple[str, ModelRef | FallbackModel]]:
    yield "/model", spec.model
    for place, one in enumerate(spec.model.fallbacks):
        yield f"/model/fallbacks/{place}", one


def _untaken(
    spec: Spec, pointer: str, one: ModelRef | FallbackModel, found: Serving
) -> Iterator[Issue]:
    """Find what is asked of a model and never reaches it."""
    asked = {field: f"{pointer}/{field}" for field in asked_fields(one)}
    asked |= {f: f"/model/{f}" for f in asked_fields(spec.model) if f in _SHARED}
    if spec.output is not None:
        asked["output"] = "/output"
    for field, place in sorted(asked.items()):
        if field not in found.takes.fields:
            message = (
                f"the model {one.model!r} is called by {found.client}, which does not take "
                f"{field}; leave it out, or name another model"
            )
            yield Issue(place, message, "untaken_field")
    for name in clashes(one, found.takes):
        message = f"{found.client} writes this itself; use the field that the Spec has for it"
        yield Issue(f"{pointer}/extras{pointer_of((name,))}", message, "reserved_extra")


def _choice_issues(spec: Spec) -> Iterator[Issue]:
    """Find a choice among tools that are not granted."""
    choice = spec.model.tool_choice
    if choice is None:
        return
    granted = [tool.name for tool in spec.tools]
    place = "/model/tool_choice"
    if choice.mode != "tool":
        if choice.tool is not None:
            message = f"goes with the mode tool, not with {choice.mode}; leave it out"
            yield Issue(f"{place}/tool", message, "unknown_selector", shown(choice.tool))
        if choice.mode == "required" and not granted:
            message = "requires a call, and no tool is granted"
            yield Issue(f"{place}/mode", message, "nothing_to_work_on", shown(choice.mode))
    elif choice.tool is None:
        yield Issue(place, "'tool' is missing; write the name of one", "missing_field")
    elif choice.tool not in granted:
        near = nearest(choice.tool, granted)
        message = "no tool of this name is granted"
        yield Issue(f"{place}/tool", message, "unknown_selector", shown(choice.tool), near)
