"""Reads the rest of a result that the model was shown in part (TOOL-6).

Only what this Run's conversation names is found, so nobody reads another Run's or tenant's.
"""

import asyncio
import logging
from codecs import getincrementaldecoder
from functools import partial
from typing import Final, Protocol

from pydantic_core import to_json

from psych_runtime.core.preview import MAX_TEXT_BYTES, Whole, text_of
from psych_runtime.core.streaks import NOT_READ
from psych_runtime.core.text_search import TextSearch
from psych_runtime.errors import BlobCorrupt, BlobError, BlobStoreUnusable, InvalidPayload
from psych_runtime.ports.blob import BlobStore
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.results import said_of
from psych_runtime.tools.builtin import NO_SUCH_THING, Loaded
from psych_runtime.tools.reading import Range, Search
from psych_runtime.tools.text import ended, quote

__all__ = ["read_result"]

_log: Final = logging.getLogger("psych_runtime")

_SHOWN_BYTES: Final = 32 * 1024  # where the Spec shows every result whole
_CHUNK_BYTES: Final = 256 * 1024
_MOST_SEARCHED_BYTES: Final = 8 * 1024 * 1024
_NAMES_SHOWN: Final = 10
_WIDEST_BYTES: Final = 4  # of a character


class _Text(Protocol):
    """A text to read from."""

    size: int

    async def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""


class _Kept:
    """A text that the log keeps."""

    def __init__(self, whole: Whole) -> None:
        self._data = text_of(whole.parts).encode()
        self.size = len(self._data)

    async def read(self, start: int, stop: int) -> bytes:
        return self._data[start:stop]


class _Offloaded:
    """A text in the blob store."""

    def __init__(self, store: BlobStore, tenant: str, run_id: str, hash: str, size: int) -> None:
        self._read = partial(store.read, tenant, run_id, hash)
        self._damaged = partial(BlobCorrupt, run_id=run_id, hash=hash)
        self.size = size

    async def read(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.size)
        try:
            data = await self._read(start=start, stop=stop)
        except BlobError:
            raise
        except Exception as error:  # a bug of an adapter: no fault of the Run
            _log.exception("the blob store raised what is no error of its port")
            remedy = "mend it: psych_runtime.blob.contract tells how it must behave"
            raise BlobStoreUnusable(problem=f"it raised {error!r:.200}", remedy=remedy) from error
        if len(data) != stop - start:
            raise self._damaged()
        return data


async def read_result(attempt: Attempt, asked: Range | Search) -> Loaded:
    """Return what was asked for, or why there is none."""
    whole = attempt.conversation.wholes.get(asked.result)
    if whole is None:
        names = list(attempt.conversation.wholes)[-_NAMES_SHOWN:]
        known = f"The last of them: {', '.join(names)}."
        return Loaded(f"There is no result {quote(asked.result)}. {known}", NO_SUCH_THING)
    text = _text(attempt, whole)
    if text is None:
        return Loaded("This Runtime has no blob store, where the result is.", NOT_READ)
    if not 0 <= asked.start < max(1, text.size):
        said = f"It has {text.size} bytes, so start is 0 to {max(0, text.size - 1)}."
        return Loaded(said, NOT_READ)
    bound = attempt.spec.results.shown_bytes or _SHOWN_BYTES
    try:
        if isinstance(asked, Range):
            return await _part(text, asked, bound)
        return await _found(text, asked, bound)
    except InvalidPayload as error:
        return Loaded(f"{ended(str(error))} Nothing was looked for.", NOT_READ)
    except BlobError as error:
        _log.error("run %s: %s cannot be read: %s", attempt.run_id, asked.result, error)
        return Loaded(f"The result cannot be read now: {said_of(error)}.", NOT_READ)


def _text(attempt: Attempt, whole: Whole) -> _Text | None:
    if whole.blob is None:
        return _Kept(whole)
    store = attempt.host.runtime.blob
    if store is None:
        return None
    return _Offloaded(store, attempt.tenant, whole.run_id, whole.blob.hash, whole.blob.bytes)


async def _part(text: _Text, asked: Range, bound: int) -> Loaded:
    if asked.size < 1:
        return Loaded(f"Read at least one byte, and at most {bound}.", NOT_READ)
    size = min(asked.size, bound)
    data = await text.read(asked.start, asked.start + max(size, _WIDEST_BYTES))
    is_rest = asked.start + len(data) >= text.size
    cut = _cut_off(data)
    shown, count = _readable(data[cut:size], is_rest=is_rest and len(data) <= size)
    if not count:  # the one character there has more bytes
        shown, count = _readable(data[cut:], is_rest=is_rest)
    start, stop = asked.start + cut, asked.start + cut + count
    rest = "" if stop == text.size else f"; it goes on at {stop}"
    return Loaded(f"[Bytes {start} to {stop} of {text.size}{rest}]\n{shown}")


def _cut_off(data: bytes) -> int:
    """Return how many bytes `data` begins with of a character that began before it."""
    begins = (place for place, one in enumerate(data[:_WIDEST_BYTES]) if one & 0xC0 != 0x80)
    return next(begins, 0)  # bytes that are no text have none


def _readable(data: bytes, *, is_rest: bool) -> tuple[str, int]:
    """Return the whole characters that a record has room for, and how many bytes they are."""
    while True:
        decoder = getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final=is_rest)
        size = len(to_json(text))
        if size <= MAX_TEXT_BYTES:
            return text, len(data) - len(decoder.getstate()[0])
        data, is_rest = data[: len(data) * MAX_TEXT_BYTES // size], False


async def _found(text: _Text, asked: Search, bound: int) -> Loaded:
    search = TextSearch(asked.pattern, start=asked.start, max_bytes=bound)
    most = min(text.size, asked.start + _MOST_SEARCHED_BYTES)
    while not search.is_over and search.stop < most:
        stop = min(search.stop + _CHUNK_BYTES, text.size)
        data = await text.read(search.stop, stop)
        await asyncio.to_thread(search.look, data, is_last=stop == text.size)
    lines = [f"{one.start}: {one.text}" for one in search.hits]
    what = f"{len(lines)} lines match" if len(lines) != 1 else "1 line matches"
    end = "that is the end"
    if search.stop < text.size:
        end = f"to go on, start at {search.stop}"
        if search.stop == asked.start:
            end = "this pattern takes too long: write one that is simpler"
    said = f"[{what} in bytes {asked.start} to {search.stop} of {text.size}; {end}]"
    return Loaded("\n".join([said, *lines]))
