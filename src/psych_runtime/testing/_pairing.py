"""Refuses a history that real providers refuse: each call has exactly one answer, in order (D5)."""

from collections.abc import Sequence

from psych_schema.model import AssistantMessage, Message, ToolMessage

__all__ = ["unpaired"]


def unpaired(messages: Sequence[Message]) -> str | None:
    """Return what is wrong with the pairing of calls and answers, None when nothing is."""
    waiting: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if not waiting:
                return f"message {place} answers {message.call_id}, which nothing asked for"
            if waiting[0] != message.call_id:
                return f"message {place} answers {message.call_id}, {waiting[0]} comes first"
            del waiting[0]
            continue
        if waiting:
            return f"message {place} comes before the answer to {waiting[0]}"
        if isinstance(message, AssistantMessage):
            waiting = [call.call_id for call in message.calls]
            if len(seen) + len(waiting) != len(seen.union(waiting)):
                return f"message {place} asks twice under one call id"
            seen.update(waiting)
    return f"nothing answers {waiting[0]}" if waiting else None
