"""Texts that no database keeps: what is no Unicode is refused by every adapter alike (LOG-5)."""

from psych_runtime.errors import InvalidPayload
from psych_runtime.ports.store import Admit, Unit

__all__ = ["check_unicode", "check_unit", "not_unicode"]


def check_unicode(*texts: str | None) -> None:
    """Raise InvalidPayload for a text that has no UTF-8, such as one with a lone surrogate."""
    for text in texts:
        if text is not None and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise not_unicode(error) from None


def check_unit(unit: Unit) -> None:
    """Raise InvalidPayload for a unit with such a text in its rows."""
    check_unicode(unit.tenant)
    for key in unit.keys:
        check_unicode(key.run_id, key.key, key.digest, key.receipt)
    for change in unit.changes:
        check_unicode(change.run_id)
        for sealed in change.records:
            check_unicode(sealed.row.type, sealed.row.body, sealed.row.content, sealed.row.salt)
        if isinstance(change, Admit):
            header = change.header
            check_unicode(header.version, header.thread, header.previous, header.parent)


def not_unicode(error: UnicodeEncodeError) -> InvalidPayload:
    """Return what to raise for a text that could not be encoded."""
    return InvalidPayload(what="a name or text", problem=f"it is not Unicode: {error.reason}")
