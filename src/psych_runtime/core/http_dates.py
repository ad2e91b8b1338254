"""Dates as HTTP writes them (RFC 9110, 5.6.7), out of foreign hands."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ["read_http_date"]

_LONGEST: Final = 64


def read_http_date(text: str) -> datetime | None:
    """Return the instant that a field names, None where nobody can read one; raises nothing."""
    try:
        date = parsedate_to_datetime(text[:_LONGEST])
    except (ValueError, OverflowError):  # no date, or one that no calendar has
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
