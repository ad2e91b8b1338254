"""Texts that no database keeps: what is no Unicode is refused by every adapter alike (LOG-5)."""

from psych_runtime.errors import InvalidPayload

__all__ = ["check_unicode", "not_unicode"]


def check_unicode(*texts: str | None) -> None:
    """Raise InvalidPayload for a text that has no UTF-8, such as one with a lone surrogate."""
    for text in texts:
        if text is not None and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise not_unicode(error) from None


def not_unicode(error: UnicodeEncodeError) -> InvalidPayload:
    """Return what to raise for a text that could not be encoded."""
    return InvalidPayload(what="a name or text", problem=f"it is not Unicode: {error.reason}")
