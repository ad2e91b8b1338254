"""Texts that no store keeps, refused by every adapter alike (LOG-5): no Unicode, or with U+0000.

A surrogate alone has no UTF-8, and PostgreSQL has no NUL. Inside JSON both are escaped and
are kept.
"""

from typing import Final

from psych_runtime.errors import InvalidPayload
from psych_runtime.ports.store import Admit, Unit

__all__ = ["check_storable", "check_unit", "not_unicode"]

_WHAT: Final = "a name or text"
_NUL: Final = "it has the character U+0000, which not every database keeps; take it out"


def check_storable(*texts: str | None) -> None:
    """Raise InvalidPayload for a text with U+0000, or one without UTF-8, as a lone surrogate."""
    for text in texts:
        if text is None:
            continue
        if "\0" in text:
            raise InvalidPayload(what=_WHAT, problem=_NUL)
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise not_unicode(error) from None


def check_unit(unit: Unit) -> None:
    """Raise InvalidPayload for a unit with such a text in its rows."""
    check_storable(unit.tenant)
    for key in unit.keys:
        check_storable(key.run_id, key.key, key.digest, key.receipt)
    for change in unit.changes:
        check_storable(change.run_id)
        for sealed in change.records:
            check_storable(sealed.row.type, sealed.row.body, sealed.row.content, sealed.row.salt)
        if isinstance(change, Admit):
            header = change.header
            check_storable(header.version, header.thread, header.previous, header.parent)
            check_storable(header.root)


def not_unicode(error: UnicodeEncodeError) -> InvalidPayload:
    """Return what to raise for a text that could not be encoded."""
    return InvalidPayload(what=_WHAT, problem=f"it is not Unicode: {error.reason}")
