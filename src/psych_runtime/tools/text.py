"""Foreign text made short and storable, for messages to models and people (R-30)."""

import json
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["clip", "did_you_mean", "ended", "quote"]

_NAME_BYTES = 80


def clip(text: str, limit_bytes: int) -> str:
    """Return `text` in at most `limit_bytes` bytes of UTF-8; lone surrogates become escapes."""
    data = text[: limit_bytes + 1].encode("utf-8", "backslashreplace")
    if len(data) <= limit_bytes:
        return data.decode()
    return data[: limit_bytes - 3].decode("utf-8", "ignore") + "…"


def quote(text: str, limit_bytes: int = _NAME_BYTES) -> str:
    """Return `text` shortened and in quotes, on one line."""
    return json.dumps(clip(text, limit_bytes), ensure_ascii=False)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing when no known name is near."""
    near = get_close_matches(name[:_NAME_BYTES], sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def ended(text: str) -> str:
    """Return `text` as a sentence that another can follow; one end is enough."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."
