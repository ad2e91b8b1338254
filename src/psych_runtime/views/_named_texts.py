"""Texts beside the logs that records name by their hash: Specs and documents (SPEC-2, R-11)."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from psych_runtime.core.codec import sha256
from psych_schema.record import Record, RunAdmitted, ToolsOffered
from psych_schema.view import VerificationProblem

__all__ = ["NamedText", "named_texts", "text_problem"]


class NamedText(NamedTuple):
    """A text that a record names."""

    kind: Literal["version", "document"]
    hash: str


def named_texts(record: Record) -> Iterator[NamedText]:
    """Yield what a record names."""
    if isinstance(record, RunAdmitted):
        yield NamedText("version", record.version)
    elif isinstance(record, ToolsOffered):
        yield NamedText("document", record.system_ref)
        for tool in record.tools:
            yield NamedText("document", tool.definition)


def text_problem(named: NamedText, seq: int, text: str | None) -> VerificationProblem | None:
    """Return what is wrong with the text that the store has under a hash; None: nothing."""
    which = f"the {named.kind} {named.hash} that it names"
    if text is None:
        code, message = f"{named.kind}_missing", f"{which} is not in the store"
    elif sha256(text) != named.hash:
        code, message = f"{named.kind}_differs", f"{which} is another text in the store"
    else:
        return None
    return VerificationProblem(code=code, message=message, seq=seq)
