"""What of a call's result goes into the log, what into the blob store, what the model is shown.

The Spec says how much the model is shown, the Runtime how much the log keeps; neither depends on
the other (TOOL-6). Bytes are stored before the record that names them (R-23).
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic_core import to_json

from psych_runtime.core.models import altered
from psych_runtime.core.preview import (
    MAX_TEXT_BYTES,
    compact_text_of,
    is_long_text,
    preview,
    text_of,
)
from psych_runtime.errors import (
    BlobCorrupt,
    BlobError,
    BlobNotFound,
    BlobStoreFull,
    BlobUnavailable,
)
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import FIRST_DELAY_SECONDS, longer
from psych_runtime.tools.executed import RAN, Executed, failed
from psych_runtime.tools.results import json_size
from psych_runtime.tools.text import ended
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import Elided

__all__ = ["Kept", "keep", "said_of", "shown_of"]

_log: Final = logging.getLogger("psych_runtime")

_LOOK_SECONDS: Final = 0.25  # how soon it is noticed that a Run must stop
_GIVE_UP_SECONDS: Final = 2.0  # for a blob that is being stored then
_JSON_BYTES_A_CHARACTER: Final = 6  # at most, and in UTF-8 four


class Kept(NamedTuple):
    """A call's outcome as its record has it."""

    executed: Executed
    elided: Elided | None = None
    shown_bytes: int | None = None
    attachments: tuple[BlobRef, ...] = ()


async def keep(attempt: Attempt, tool: str, call_id: str, executed: Executed) -> Kept:
    """Store what the log has no room for; return what the call's record says. Raises Lost.

    A result that nothing keeps makes the call an error, which says that it was executed.
    """
    if not executed.result.parts:
        return Kept(executed)
    try:
        for one in executed.attachments:
            await _put(attempt, one.data, one.media_type)
        return await _kept(attempt, call_id, executed)
    except _Unkept as error:
        problem = f"what {tool} returned could not be kept: {ended(str(error))}"
        return Kept(failed(error.code, f"{problem} {RAN}"))


def shown_of(attempt: Attempt, parts: Sequence[Part]) -> int | None:
    """Return how many bytes of each text in a result are shown, None where that is all."""
    shown = attempt.spec.results.shown_bytes
    if shown is None or _is_short(parts, shown):
        return None
    is_cut = any(is_long_text(one, shown) for one in parts) or len(text_of(parts).encode()) > shown
    return shown if is_cut else None


def said_of(error: Exception) -> str:
    """Return what a model is told of a blob store that failed: not where it is, nor how to mend it.

    Nor to repeat anything: whether it may is known to whoever called the store.
    """
    match error:
        case BlobStoreFull():
            return "the blob store has no room left"
        case BlobUnavailable():
            return "the blob store did not answer"
        case BlobNotFound():
            return "it is not in the blob store any more"
        case BlobCorrupt():
            return "the blob store has other bytes than were put there"
        case _:
            return "the blob store cannot be used"


class _Unkept(Exception):
    """A result that no store keeps; `code` is what the call fails with."""

    def __init__(self, code: str, problem: str) -> None:
        self.code = code
        super().__init__(problem)


def _is_short(parts: Sequence[Part], bound: int) -> bool:
    """Tell, at no cost, that a result is one text below a bound in bytes: most are."""
    match parts:
        case [TextPart() as one]:
            return len(one.text) * _JSON_BYTES_A_CHARACTER < bound
        case _:
            return False


async def _kept(attempt: Attempt, call_id: str, executed: Executed) -> Kept:
    parts = executed.result.parts
    files = tuple(one for one in parts if isinstance(one, BlobPart))
    refs = tuple(one.blob for one in files)
    if _fits(attempt, parts, files):
        return Kept(executed, None, shown_of(attempt, parts), refs)
    limit = attempt.spec.results.shown_bytes
    data, shown = await asyncio.to_thread(_whole, parts, limit, call_id)
    is_json = all(isinstance(one, JsonPart) for one in parts)
    media_type = "application/json" if is_json and len(parts) == 1 else "text/plain"
    ref = await _put(attempt, data, media_type)
    elided = None if shown is None else Elided(handle=call_id, blob=ref)
    if elided is None and (limit is None or not any(is_long_text(one, limit) for one in files)):
        limit = None
    stands: Part = BlobPart(blob=ref) if shown is None else TextPart(text=shown)
    result = altered(executed.result, {"parts": (stands, *files)})
    return Kept(executed._replace(result=result), elided, limit, refs)


def _fits(attempt: Attempt, parts: Sequence[Part], files: Sequence[Part]) -> bool:
    """Tell whether the log keeps a result: of one that is files alone it has only names."""
    runtime = attempt.host.runtime
    if runtime.blob is None or len(files) == len(parts):
        return True
    bound = runtime.offload_bytes
    return _is_short(parts, bound // 2) or json_size(parts) <= bound


def _whole(
    parts: Sequence[Part], shown_bytes: int | None, call_id: str
) -> tuple[bytes, str | None]:
    """Return the text that a blob store keeps, and what is shown of it, None where that is all."""
    if shown_bytes is not None:
        text = text_of(parts)
        data = text.encode()
        if len(data) > shown_bytes:
            return data, _fitted(text, shown_bytes, call_id)
    return compact_text_of(parts).encode(), None


def _fitted(text: str, shown_bytes: int, call_id: str) -> str:
    """Return a preview that fits into the log, also where its characters are long in JSON."""
    while True:
        made = preview(text, shown_bytes, result=call_id)
        size = len(to_json(made))
        if size <= MAX_TEXT_BYTES:
            return made
        shown_bytes = shown_bytes * MAX_TEXT_BYTES // size


async def _put(attempt: Attempt, data: bytes, media_type: str) -> BlobRef:
    """Store bytes, however often it takes: what a tool did once is not to be lost. Raises Lost."""
    store = attempt.host.runtime.blob
    if store is None:
        problem = "it has an image or file, and this Runtime has no blob store: pass blob="
        raise _Unkept("no_blob_store", problem)
    delay = FIRST_DELAY_SECONDS
    while True:
        put = store.put(attempt.tenant, attempt.run_id, data, media_type=media_type)
        try:
            return await _unless_cut(attempt, asyncio.create_task(put))
        except BlobError as error:
            is_over = not isinstance(error, BlobUnavailable) or isinstance(error, BlobStoreFull)
            if is_over or attempt.cuts_model():
                _log.error("run %s: a result is lost: %s", attempt.run_id, error)
                raise _Unkept(error.code, said_of(error)) from error
            _log.warning("run %s: %s", attempt.run_id, error)
        await asyncio.sleep(delay)
        delay = longer(delay)


async def _unless_cut(attempt: Attempt, put: asyncio.Task[BlobRef]) -> BlobRef:
    """Wait for a store, which may hang: a moment longer than one would for a model's stream."""
    try:
        while not put.done() and not attempt.cuts_model():
            await asyncio.wait((put,), timeout=_LOOK_SECONDS)
        if not put.done():
            await asyncio.wait((put,), timeout=_GIVE_UP_SECONDS)
    finally:
        if not put.done():
            attempt.host.keep(put)
            put.cancel()
    if put.done():
        error = put.exception()
        if isinstance(error, Exception) and not isinstance(error, BlobError):
            _log.error("run %s: a result is lost", attempt.run_id, exc_info=error)
            raise _Unkept("blob_store_unusable", said_of(error)) from error
        return put.result()
    problem = "the blob store did not answer before the Run had to stop"
    raise _Unkept(BlobUnavailable.code, problem)
