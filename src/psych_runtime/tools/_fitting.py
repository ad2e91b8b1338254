"""Whether a call's arguments fit their tool, and what the tool gets of them (MOD-2).

A function's arguments are judged by its signature and arrive as its types; those of a tool that
a document declares by its JSON Schema, and arrive as JSON.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue, ValidationError

from psych_runtime.core.json_schema import check_instance
from psych_runtime.errors import InvalidPayload
from psych_runtime.tools._explain import explain
from psych_runtime.tools._json_schema import Parameter
from psych_runtime.tools.text import clip, did_you_mean, quote

__all__ = ["MAX_PROBLEMS", "Fit", "Given", "Judge", "by_schema", "by_signature"]

MAX_PROBLEMS: Final = 6

type Given = Mapping[str, JsonValue]
"""Arguments as the model gave them, by name."""


class Fit(NamedTuple):
    """What became of arguments; with problems they fit nothing."""

    effective: Mapping[str, JsonValue]  # with the defaults of the rest
    values: Mapping[str, object]  # as the tool takes them
    problems: Sequence[str] = ()


type Judge = Callable[[Given], Fit]


def by_signature(parameters: Sequence[Parameter], schema: Mapping[str, JsonValue]) -> Judge:
    """Return what judges the arguments of a function, which `schema` describes to the model."""
    known = [one.name for one in parameters]
    required = [one.name for one in parameters if one.required]

    def judge(given: Given) -> Fit:
        problems = _names(given, known, required)
        values: dict[str, object] = {}
        for parameter in parameters:
            if parameter.name in given:
                problem = _convert(parameter, given[parameter.name], values)
                problems += [problem] if problem else []
        return Fit({**given, **dict(_defaults(schema, given))}, values, problems)

    return judge


def by_schema(
    tool: str, schema: Mapping[str, JsonValue], misfit: Callable[[Given], str | None]
) -> Judge:
    """Return what judges arguments by a schema; `misfit` says what is wrong beside it."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    is_closed = schema.get("additionalProperties") is False
    needed = [str(one) for one in required] if isinstance(required, list | tuple) else []
    plain = {**schema}

    def judge(given: Given) -> Fit:
        effective = {**given, **dict(_defaults(schema, given))}
        problems = _names(effective, known if is_closed else {*known, *effective}, needed)
        if not problems:
            try:
                check_instance(effective, plain, what=tool)
                problem = misfit(effective)
            except InvalidPayload as error:
                problem = error.problem
            problems += [] if problem is None else [problem]
        return Fit(effective, effective, problems)

    return judge


def _names(given: Given, known: Collection[str], required: Iterable[str]) -> list[str]:
    """Say which required arguments are missing and which names nobody knows."""
    missing = [f"{name} is required" for name in required if name not in given]
    unknown = [name for name in given if name not in known]
    named = [
        f"{quote(name)} is no argument of this tool{did_you_mean(name, known)}"
        for name in unknown[:MAX_PROBLEMS]
    ]
    return missing + named


def _defaults(schema: Mapping[str, JsonValue], given: Given) -> Iterator[tuple[str, JsonValue]]:
    """Yield what the rest of the parameters have, where JSON can say it."""
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        if name not in given and isinstance(one, Mapping) and "default" in one:
            yield name, one["default"]


def _convert(parameter: Parameter, value: JsonValue, values: dict[str, object]) -> str | None:
    """Put the object that the function takes into `values`, or say why there is none."""
    try:
        text = json.dumps(value, allow_nan=False)
        values[parameter.name] = parameter.checked.validator.validate_json(text)
    except ValidationError as error:
        return explain(error, value, parameter.name)
    except (Exception, SystemExit) as error:  # a validator is foreign code: what it raises is data
        return f"{parameter.name} is refused: {clip(type(error).__name__, 60)}"
    return None
