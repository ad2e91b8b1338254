"""What a function returned or raised, as the outcome of its call (TOOL-7, MOD-7)."""

from typing import Final

from pydantic import JsonValue, ValidationError

from psych_runtime.core.models import trusted
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools._core_schema import Checked, check_python
from psych_runtime.tools._explain import explain
from psych_runtime.tools.attachment import attachments_in
from psych_runtime.tools.executed import MESSAGE_BYTES, RAN, Executed, failed
from psych_runtime.tools.results import json_size, to_result
from psych_runtime.tools.text import clip, ended
from psych_schema.model import JsonPart, Part, TextPart
from psych_schema.record import ToolResult

__all__ = ["TOO_LARGE", "described", "read", "returned"]

TOO_LARGE: Final = "result_too_large"
"""The code of a result that nothing keeps."""

_MAX_INNER_ERRORS: Final = 3

_json_part: Final = trusted(JsonPart)


def returned(tool: str, returns: Checked | None, value: object, max_bytes: int) -> Executed:
    """Return the outcome of a call that returned `value`; raises nothing.

    `returns` judges it, where the tool says what it returns.
    """
    try:
        if returns is not None:
            check_python(returns, value)
        result = to_result(tool, value, max_bytes=max_bytes)
        return Executed("ok", result, attachments=tuple(attachments_in(value)))
    except ValidationError as error:
        said = explain(error, value, "result")
        problem = ended(f"{tool} returned what its return type does not allow: {said}")
        return failed("result_invalid", f"{problem} {RAN}")
    except InvalidPayload as error:
        return failed("result_invalid", f"{ended(f'{error.what}: {error.problem}')} {RAN}")
    except PayloadTooLarge as error:
        return _too_large(error)
    except (Exception, SystemExit) as error:  # what it returned brings code of its own
        problem = ended(f"{tool} returned what cannot be read: {described(error)}")
        return failed("result_invalid", f"{problem} {RAN}")


def read(tool: str, value: JsonValue, max_bytes: int) -> Executed:
    """Return the outcome of a call that brought JSON or text, read here, so that it can be kept."""
    part: Part = TextPart(text=value) if isinstance(value, str) else _json_part(value=value)
    size = json_size((part,))
    if size > max_bytes:
        what = f"the result of {tool}"
        return _too_large(PayloadTooLarge(what=what, size_bytes=size, bound_bytes=max_bytes))
    return Executed("ok", ToolResult(parts=(part,)))


def _too_large(error: PayloadTooLarge) -> Executed:
    sizes = f"at least {error.size_bytes} bytes, the bound is {error.bound_bytes}"
    return failed(TOO_LARGE, f"{error.what} is too large: {sizes}; ask for less. {RAN}")


def described(error: BaseException) -> str:
    """Return type and message; of a group also its first errors."""
    try:
        text = str(error)
    except Exception:  # foreign code
        text = "(its text cannot be read)"
    said = clip(type(error).__name__, 80) + (f": {clip(text, 1024)}" if text else "")
    if not isinstance(error, BaseExceptionGroup):
        return said
    inner = [described(one) for one in error.exceptions[:_MAX_INNER_ERRORS]]
    return clip(f"{said}: {'; '.join(inner)}", MESSAGE_BYTES)
