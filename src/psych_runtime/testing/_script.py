"""Which scripted step a request gets: told by its conversation, not by a count of requests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from psych_runtime.errors import ModelError
from psych_schema.model import AssistantMessage, FinishReason, ModelEvent, ModelRequest

__all__ = ["Script", "Step", "split_text"]

_PIECES = 64


@dataclass(frozen=True, slots=True)
class Step:
    """One scripted model call: events, then a finish or a failure."""

    events: tuple[ModelEvent, ...] = ()
    delay_seconds: float = 0.0
    silent: bool = False
    silence_seconds: float | None = None
    finish: FinishReason = "stop"
    failure: Callable[[], ModelError] | None = None


@dataclass(slots=True)
class Script:
    """Steps in order; failing steps belong to the turn that they delay."""

    turns: int = 0
    _groups: list[list[Step]] = field(default_factory=lambda: [[]])
    _tries: dict[str, int] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Append `step`; one without a failure ends its group."""
        self._groups[-1].append(step)
        if step.failure is None:
            self.turns += 1
            self._groups.append([])

    def step(self, request: ModelRequest) -> Step | None:
        """Return the step for `request`, None when the script is over.

        The group is the number of assistant messages. In a group each failing step is given
        once per conversation; the turn after them is given as often as it is asked for.
        """
        position = _position(request)
        if position >= len(self._groups):
            return None
        group = self._groups[position]
        if len(group) == 1 and group[0].failure is None:
            return group[0]
        key = _conversation(request)
        tries = self._tries.get(key, 0)
        if tries < len(group):
            self._tries[key] = tries + 1
            return group[tries]
        last = group[-1] if group else None
        return last if last is not None and last.failure is None else None


def split_text(text: str) -> list[str]:
    """Split `text` behind its spaces into at most 64 pieces, the way a model streams."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    size = -(-len(words) // _PIECES)
    pieces = ["".join(words[start : start + size]) for start in range(0, len(words), size)]
    return [piece for piece in pieces if piece]


def _position(request: ModelRequest) -> int:
    return sum(isinstance(message, AssistantMessage) for message in request.messages)


def _conversation(request: ModelRequest) -> str:
    """Name the conversation by its first message and all up to the last assistant message.

    A message that came after a failed call must not make it another conversation.
    """
    said = [n for n, m in enumerate(request.messages) if isinstance(m, AssistantMessage)]
    known = request.messages[: said[-1] + 1 if said else 1]
    digest = sha256(request.model.encode())
    for message in known:
        digest.update(message.model_dump_json().encode())
        digest.update(b"\n")
    return digest.hexdigest()
