"""A store's URL as it may be shown: without passwords, however it is misspelt (SEC-2)."""

import re
from typing import Final
from urllib.parse import urlsplit

__all__ = ["shown_url"]

_BEFORE: Final = re.compile(r":.*@", re.DOTALL)
_INNER: Final = re.compile(r"(://[^:/@?&]*):[^@?&]*@")
_QUERY: Final = re.compile(r"([?&][a-z_]*(?:password|secret|token)[a-z_]*=)[^&]*", re.IGNORECASE)


def shown_url(url: str) -> str:
    """Return `url` with stars in place of passwords.

    Of a URL that cannot be read, rather too much is hidden than too little.
    """
    hidden = _BEFORE.sub(":***@", url) if _is_misspelt(url) else _INNER.sub(r"\1:***@", url)
    return _QUERY.sub(r"\1***", hidden)


def _is_misspelt(url: str) -> bool:
    """Tell whether an @ stands elsewhere than behind user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    return "://" not in url or "@" in f"{parts.path}{parts.query}{parts.fragment}"
