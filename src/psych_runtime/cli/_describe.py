"""One line about a record: what a person wants to know of it beside its type."""

from pydantic_core import to_json

from psych_runtime.cli._text import brief, seconds
from psych_runtime.core.codec import is_erased
from psych_schema.model import BlobPart, Part, TextPart
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    Envelope,
    ModelCompleted,
    ModelDelta,
    ModelFailed,
    ModelStarted,
    Record,
    RunAdmitted,
    RunSettled,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
    TurnStarted,
)

__all__ = ["describe"]

_ENVELOPE = {*Envelope.model_fields, "type"}


def describe(record: Record) -> str:
    """Return what `record` says, on one line without control characters."""
    text = _words(record)
    return brief(f"(erased) {text}" if is_erased(record) else text)


def _words(record: Record) -> str:
    match record:
        case RunAdmitted():
            return f"tenant {record.scope.tenant}: {_json(record.input)}"
        case AttemptStarted():
            crashes = f", {record.crashes} crashes" if record.crashes else ""
            return f"{record.reason}, {record.worker}{crashes}"
        case AttemptEnded():
            return " ".join([record.reason, record.code or "", *record.missing])
        case TurnStarted():
            return f"turn {record.turn}"
        case ModelStarted():
            return f"{record.model}, try {record.tries}, {record.purpose}"
        case ModelDelta():
            return f"{record.channel}: {record.text or ''}"
        case ModelCompleted():
            return f"{seconds(record.timings.seconds)}, {record.finish}: {_said(record)}"
        case ModelFailed():
            why = record.said.message if record.said else None
            return f"{record.failure.code}, {record.next}: {why or ''}"
        case ToolStarted():
            return f"{record.identity}, try {record.tries}, {record.call_id}"
        case ToolCompleted():
            result = record.result
            what = f"{_text(result.parts)} {result.message or ''}" if result else ""
            return f"{record.outcome}, {seconds(record.duration_seconds)}: {what}"
        case ToolRefused():
            return f"{record.code}: {record.message or ''}"
        case RunSettled():
            return f"{record.state} {record.reason.code if record.reason else ''}".strip()
        case _:
            fields = record.model_dump(
                mode="json", exclude=_ENVELOPE, exclude_none=True, exclude_defaults=True
            )
            return ", ".join(f"{name} {_json(value)}" for name, value in fields.items())


def _said(record: ModelCompleted) -> str:
    if record.said is None:
        return ""
    calls = [f"{call.name}({brief(call.arguments, 24)})" for call in record.said.calls]
    return " ".join([_text(record.said.parts), *calls])


def _text(parts: tuple[Part, ...]) -> str:
    return " ".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case BlobPart():
            name = "" if part.name is None else f"{part.name}, "
            return f"[{name}{part.blob.media_type}, {part.blob.bytes} bytes]"
        case _:
            return f"[{part.kind}]"


def _json(value: object) -> str:
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="strings").decode()
