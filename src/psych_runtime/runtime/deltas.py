"""Pieces of a stream for readers (R-10): the first at once, then ever more rarely."""

import asyncio
from collections.abc import Callable
from typing import Final

from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.streaming import Channel, Incoming, clean_text
from psych_schema.record import ModelDelta

__all__ = ["Deltas"]

_SHORTEST_SECONDS: Final = 0.1
_SHARE_OF_CALL: Final = 0.05
_MAX_DELTA_CHARACTERS: Final = 50_000


class Deltas:
    """Notes model.delta records while a call streams; nothing when the Run has none."""

    def __init__(self, attempt: Attempt, call: str, incoming: Incoming) -> None:
        self._attempt = attempt
        self._call = call
        self._incoming = incoming
        self._wanted = attempt.admitted.deltas
        self._waiting: dict[Channel, list[str]] = {}
        self._last: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, channel: Channel, text: str) -> None:
        """Take a piece."""
        if not self._wanted or not text:
            return
        self._waiting.setdefault(channel, []).append(text)
        if self._timer is not None:
            return
        rest = self._rest_seconds()
        if rest <= 0:
            self._flush()
        else:
            self._timer = self._call_later(rest, self._flush)

    def close(self) -> None:
        """Stop; the record that ends the call carries the whole."""
        self._wanted = False
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _call_later(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, act)

    def _rest_seconds(self) -> float:
        if self._last is None:
            return 0.0
        pause = max(_SHORTEST_SECONDS, _SHARE_OF_CALL * self._incoming.seconds)
        return self._last + pause - self._attempt.host.system.monotonic()

    def _flush(self) -> None:
        self._timer = None
        if not self._wanted or self._attempt.journal.lost is not None:
            return
        self._last = self._attempt.host.system.monotonic()
        waiting, self._waiting = self._waiting, {}
        for (channel, index), texts in waiting.items():
            text = clean_text("".join(texts))
            for start in range(0, len(text), _MAX_DELTA_CHARACTERS):
                self._attempt.journal.note(
                    ModelDelta(
                        run_id=self._attempt.run_id,
                        id=self._attempt.new_id("rec"),
                        at=self._attempt.now(),
                        call=self._call,
                        channel=channel,
                        index=index,
                        text=text[start : start + _MAX_DELTA_CHARACTERS],
                    )
                )
