"""A call's arguments: the text as the model wrote it, read and checked before anything runs.

What cannot be read is never executed; the model gets at most 1 KB that says where it is wrong
and what was expected (MOD-2, R-30). What it wrote is quoted only where it is not JSON.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue, ValidationError

from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.foreign import parse_json
from psych_runtime.core.json_schema import check_instance
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools._explain import explain, kind_of
from psych_runtime.tools._json import whole_numbers
from psych_runtime.tools._json_schema import Parameter
from psych_runtime.tools._summary import summarize
from psych_runtime.tools.registry import RegisteredTool
from psych_runtime.tools.text import clip, did_you_mean, ended, quote

__all__ = [
    "MAX_ARGUMENTS_BYTES",
    "Arguments",
    "Malformed",
    "check_arguments",
    "digest_text",
    "expected",
    "read_arguments",
]

MAX_ARGUMENTS_BYTES: Final = 64 * 1024
"""What the arguments of one call may have as UTF-8 text: the log takes no more of a call."""

_MAX_MESSAGE_BYTES: Final = 1024
_MAX_PROBLEM_BYTES: Final = 560
_MAX_EXPECTED_BYTES: Final = 360
_MAX_PROBLEMS: Final = 6
_NEAR: Final = 24
_LINE_END: Final = re.compile(r"\r\n|[\r\n]")


class Arguments(NamedTuple):
    """Arguments that fit their tool."""

    effective: Mapping[str, JsonValue]  # what was given, with the defaults of the rest
    digest_text: str  # the one text of what was given: RFC 8785
    values: Mapping[str, object]  # the objects that the function takes, of what was given


class Malformed(NamedTuple):
    """Arguments that do not fit; `message` is for the model, at most 1 KB."""

    message: str


def read_arguments(tool: RegisteredTool, text: str) -> Arguments | Malformed:
    """Read a call's arguments as the model wrote them; raises nothing.

    An empty text is `{}` for a tool without parameters, and malformed for any other.
    """
    if not text.strip():
        if tool.definition.parameters.get("properties"):
            return _malformed(tool, "nothing instead of an object")
        text = "{}"
    try:
        value = parse_json(text, what=tool.name, max_bytes=MAX_ARGUMENTS_BYTES)
    except InvalidPayload as error:
        return _malformed(tool, f"not readable as JSON: {error.problem}{_place(error, text)}")
    except PayloadTooLarge as error:
        sizes = f"{error.size_bytes} bytes, the bound is {error.bound_bytes}"
        return _malformed(tool, f"too large: {sizes}")
    return check_arguments(tool, value)


def check_arguments(tool: RegisteredTool, value: JsonValue) -> Arguments | Malformed:
    """Check arguments that are JSON already, as stored or edited by a person; raises nothing."""
    if not isinstance(value, dict):
        return _malformed(tool, f"{kind_of(value)} instead of an object")
    try:
        given = {name: whole_numbers(one) for name, one in value.items()}
        digest_text = canonical_json(given)
    except (ValueError, RecursionError):
        return _malformed(tool, "not JSON that can be stored (NaN, broken text or too deep)")
    if tool.misfit is not None:
        return _declared(tool, given, digest_text, tool.misfit)
    known = [one.name for one in tool.signature.parameters]
    required = [one.name for one in tool.signature.parameters if one.required]
    problems = _names(given, known, required)
    values: dict[str, object] = {}
    for parameter in tool.signature.parameters:
        if parameter.name in given:
            problem = _convert(parameter, given[parameter.name], values)
            problems += [problem] if problem else []
    if problems:
        return _malformed(tool, "; ".join(problems[:_MAX_PROBLEMS]))
    return Arguments(given | dict(_defaults(tool, given)), digest_text, values)


def digest_text(value: JsonValue) -> str:
    """Return the one text of arguments as a digest takes it; ValueError for no JSON object."""
    if not isinstance(value, dict):
        raise ValueError("arguments are an object")
    return canonical_json({name: whole_numbers(one) for name, one in value.items()})


def expected(tool: RegisteredTool) -> str:
    """Return what the tool takes, in at most 360 bytes."""
    return clip(summarize(tool.definition.parameters), _MAX_EXPECTED_BYTES)


def _place(error: InvalidPayload, text: str) -> str:
    """Say where reading stopped, and quote a little of what stands there."""
    if error.line is None or error.column is None:
        return ""
    line = _LINE_END.split(text, error.line)[error.line - 1]
    near = quote(line[max(0, error.column - 1 - _NEAR) : error.column - 1 + _NEAR])
    return f" (line {error.line}, column {error.column}, near {near})"


def _names(
    value: Mapping[str, JsonValue], known: Collection[str], required: Iterable[str]
) -> list[str]:
    """Say which required arguments are missing and which names nobody knows."""
    missing = [f"{name} is required" for name in required if name not in value]
    unknown = [name for name in value if name not in known]
    named = [
        f"{quote(name)} is no argument of this tool{did_you_mean(name, known)}"
        for name in unknown[:_MAX_PROBLEMS]
    ]
    return missing + named


def _declared(
    tool: RegisteredTool,
    given: Mapping[str, JsonValue],
    digest_text: str,
    misfit: Callable[[Mapping[str, JsonValue]], str | None],
) -> Arguments | Malformed:
    """Judge arguments by a schema that a document declares; the tool gets them as JSON."""
    schema = {**tool.definition.parameters}
    effective = {**given, **dict(_defaults(tool, given))}
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    is_closed = schema.get("additionalProperties") is False
    needed = [str(one) for one in required] if isinstance(required, list | tuple) else []
    problems = _names(effective, known if is_closed else {*known, *effective}, needed)
    if not problems:
        try:
            check_instance(effective, schema, what=tool.name)
            problem = misfit(effective)
        except InvalidPayload as error:
            problem = error.problem
        problems += [] if problem is None else [problem]
    if problems:
        return _malformed(tool, "; ".join(problems[:_MAX_PROBLEMS]))
    return Arguments(effective, digest_text, effective)


def _defaults(
    tool: RegisteredTool, given: Mapping[str, JsonValue]
) -> Iterator[tuple[str, JsonValue]]:
    """Yield what the rest of the parameters have, where JSON can say it."""
    properties = tool.definition.parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        if name not in given and isinstance(schema, Mapping) and "default" in schema:
            yield name, schema["default"]


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


def _malformed(tool: RegisteredTool, problem: str) -> Malformed:
    said = clip(f"Malformed arguments of {tool.name}: {problem}", _MAX_PROBLEM_BYTES)
    text = f"{ended(said)} The tool was not executed. Expected: {expected(tool)}"
    return Malformed(clip(text, _MAX_MESSAGE_BYTES))
