"""The final answer as data: JSON that fits the Spec's schema, or why it is none (MOD-9)."""

from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.core.foreign import parse_json
from psych_runtime.core.json_schema import check_instance
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_schema.spec import OutputRules

__all__ = ["OUTPUT_INVALID", "Misfit", "Output", "read_output", "repair_text"]

OUTPUT_INVALID: Final = "output_invalid"
"""Code of the advisory that asks for a repair, and of the Run that got none."""

_WHAT: Final = "the answer"
_SHOWN_SCHEMA_BYTES: Final = 4000


class Output(NamedTuple):
    """An answer that fits."""

    value: JsonValue


class Misfit(NamedTuple):
    """An answer that does not; `problem` is for the model."""

    problem: str


def read_output(text: str, rules: OutputRules) -> Output | Misfit:
    """Read the model's last words as JSON and check them; raises nothing."""
    try:
        value = parse_json(text, what=_WHAT, max_bytes=MAX_CONTENT_BYTES)
        check_instance(value, dict(rules.json_schema), what=_WHAT)
    except InvalidPayload as error:
        place = "" if error.line is None else f" (line {error.line}, column {error.column})"
        return Misfit(f"{error.problem}{place}")
    except PayloadTooLarge as error:
        return Misfit(f"more than {error.bound_bytes} bytes")
    if len(to_json(value)) > MAX_CONTENT_BYTES // 2:  # a number may be longer than it was
        return Misfit(f"more than {MAX_CONTENT_BYTES // 2} bytes")
    return Output(value)


def repair_text(misfit: Misfit, rules: OutputRules) -> str:
    """Say to the model what is wrong, and what to do (R-25)."""
    schema = canonical_json(dict(rules.json_schema))
    wanted = schema if len(schema.encode()) <= _SHOWN_SCHEMA_BYTES else "the one you were given"
    return (
        f"Your answer is not what was asked for: {misfit.problem}. Nobody has read it. Answer once "
        "more, with JSON alone and nothing before or behind it, that fits this JSON Schema: "
        f"{wanted}"
    )
