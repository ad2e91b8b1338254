"""Texts that never change once they are there: Versions, read by every attempt (ST-2)."""

import threading
from collections import OrderedDict
from typing import Final

__all__ = ["Kept"]

_TEXTS: Final = 256
_CHARACTERS: Final = 4_000_000


class Kept:
    """What was found last, by tenant and hash; safe to use from any thread."""

    def __init__(self, texts: int = _TEXTS, characters: int = _CHARACTERS) -> None:
        self._texts = texts
        self._characters = characters
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._total = 0

    def get(self, tenant: str, hash: str) -> str | None:
        """Return a text that was kept."""
        with self._lock:
            text = self._kept.get((tenant, hash))
            if text is not None:
                self._kept.move_to_end((tenant, hash))
            return text

    def put(self, tenant: str, hash: str, text: str) -> None:
        """Keep a text; what was asked for longest ago makes room."""
        with self._lock:
            if (tenant, hash) in self._kept:
                return
            self._kept[tenant, hash] = text
            self._total += len(text)
            while len(self._kept) > self._texts or self._total > self._characters:
                _, gone = self._kept.popitem(last=False)
                self._total -= len(gone)
