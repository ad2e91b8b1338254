"""What of a call's result goes into the log, what into the blob store, what the model is shown.

The Spec says how much the model is shown, the Runtime how much the log keeps; neither depends on
the other (TOOL-6). Bytes are stored before the record that names them (R-23).
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic_core import to_json

from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.core.models import altered
from psych_runtime.core.preview import compact_text_of, is_text, preview, text_of
from psych_runtime.errors import BlobError, BlobStoreFull, BlobUnavailable
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import FIRST_DELAY_SECONDS, longer
from psych_runtime.tools.executed import RAN, Executed, failed
from psych_runtime.tools.text import ended
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import Elided

__all__ = ["Kept", "keep", "shown_of"]

_log: Final = logging.getLogger("psych_runtime")

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
    files = [one.blob for one in parts if isinstance(one, BlobPart)]
    if any(is_text(one.media_type) and one.bytes > shown for one in files):
        return shown
    return shown if len(text_of(parts).encode()) > shown else None


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
    bound = attempt.host.runtime.offload_bytes
    fits = attempt.host.runtime.blob is None or _is_short(parts, bound // 2)
    if fits or len(executed.result.model_dump_json().encode()) <= bound:
        return Kept(executed, None, shown_of(attempt, parts), refs)
    shown = shown_of(attempt, parts)
    text, is_cut = await asyncio.to_thread(_whole, parts, shown)
    is_json = all(isinstance(one, JsonPart) for one in parts)
    media_type = "application/json" if is_json and len(parts) == 1 else "text/plain"
    ref = await _put(attempt, text.encode(), media_type)
    elided: Elided | None = None
    stands: Part = BlobPart(blob=ref)
    if is_cut and shown is not None:
        elided = Elided(handle=call_id, blob=ref)
        stands = TextPart(text=_fitted(text, shown, call_id))
    result = altered(executed.result, {"parts": (stands, *files)})
    return Kept(executed._replace(result=result), elided, shown, refs)


def _whole(parts: Sequence[Part], shown_bytes: int | None) -> tuple[str, bool]:
    """Return the text that a blob store keeps, and whether the model is shown a part of it."""
    if shown_bytes is not None:
        text = text_of(parts)
        if len(text.encode()) > shown_bytes:
            return text, True
    return compact_text_of(parts), False


def _fitted(text: str, shown_bytes: int, call_id: str) -> str:
    """Return a preview that fits into the log, also where its characters are long in JSON."""
    while True:
        made = preview(text, shown_bytes, result=call_id)
        if len(to_json(made)) <= MAX_CONTENT_BYTES // 2:
            return made
        shown_bytes //= 2


async def _put(attempt: Attempt, data: bytes, media_type: str) -> BlobRef:
    """Store bytes, however often it takes: what a tool did once is not to be lost. Raises Lost."""
    store = attempt.host.runtime.blob
    if store is None:
        problem = "it has an image or file, and this Runtime has no blob store: pass blob="
        raise _Unkept("no_blob_store", problem)
    delay = FIRST_DELAY_SECONDS
    while True:
        try:
            return await store.put(attempt.tenant, attempt.run_id, data, media_type=media_type)
        except BlobError as error:
            is_over = not isinstance(error, BlobUnavailable) or isinstance(error, BlobStoreFull)
            if is_over or attempt.stop() is not None:
                raise _Unkept(error.code, str(error)) from error
            _log.warning("run %s: %s", attempt.run_id, error)
        await asyncio.sleep(delay)
        delay = longer(delay)
