"""A call's arguments: the text as the model wrote it, read and checked before anything runs.

What cannot be read is never executed; the model gets at most 1 KB that says where it is wrong
and what was expected (MOD-2, R-30). What it wrote is quoted only where it is not JSON.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.foreign import parse_json
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools._explain import kind_of
from psych_runtime.tools._fitting import MAX_PROBLEMS
from psych_runtime.tools._json import whole_numbers
from psych_runtime.tools._summary import summarize
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.text import clip, ended, quote

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
    fit = tool.judge(given)
    if fit.problems:
        return _malformed(tool, "; ".join(fit.problems[:MAX_PROBLEMS]))
    return Arguments(fit.effective, digest_text, fit.values)


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


def _malformed(tool: RegisteredTool, problem: str) -> Malformed:
    said = clip(f"Malformed arguments of {tool.name}: {problem}", _MAX_PROBLEM_BYTES)
    text = f"{ended(said)} The tool was not executed. Expected: {expected(tool)}"
    return Malformed(clip(text, _MAX_MESSAGE_BYTES))
