"""What the model said last, as text; and which calls it was denied."""

from psych_runtime.core.fold import RunState
from psych_schema.model import Part, TextPart
from psych_schema.record import (
    ApprovalRequested,
    ModelCompleted,
    ModelDelta,
    ModelFailed,
    ModelStarted,
    Record,
    ToolRefused,
)

__all__ = ["LastWords", "text_of"]


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text among `parts`, in one piece."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


class LastWords:
    """Reads a log for the text of the last model call that said something."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.denied: list[str] = []  # names of calls that the policy denied, erased ones by id
        self._asked: set[str] = set()  # calls about which people were asked
        self._names: dict[str, str] = {}
        self._pieces: list[str] = []
        self._speaks = False  # the call under way answers the user

    def read(self, record: Record, _: RunState) -> None:
        """Take one record; compactions do not speak to the user."""
        match record:
            case ModelStarted():
                self._pieces = []
                self._speaks = record.turn is not None
            case ModelDelta() if self._speaks and record.channel == "text":
                self._pieces.append(record.text or "")
            case ModelCompleted() if record.turn is not None:
                said = record.said
                self.text = text_of(said.parts) or None if said else None
                self._names |= {one.call_id: one.name for one in (said.calls if said else ())}
                self._pieces = []
            case ModelFailed() if record.turn is not None:
                partial = text_of(record.said.parts) if record.said else ""
                self.text = partial or "".join(self._pieces) or self.text
                self._pieces = []
            case ApprovalRequested():
                self._asked.add(record.call_id)
            case ToolRefused() if record.code == "denied" and record.call_id not in self._asked:
                self.denied.append(self._names.get(record.call_id, record.call_id))
            case _:
                return

    def last(self) -> str | None:
        """Return the text so far, that of a call under way included."""
        return "".join(self._pieces) or self.text
