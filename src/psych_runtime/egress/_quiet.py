"""Keeps what requests and answers carry out of the HTTP client's own log lines (SEC-2)."""

import logging
from collections.abc import Callable

import httpx2

__all__ = ["keep_logs_quiet"]

_CLIENT_LOGGER = "httpx2"
_WIRE_LOGGERS = ("httpcore2.connection", "httpcore2.http11", "httpcore2.http2")
_FOREIGN = ("connect_tcp.", "receive_", "start_tls.")
_REASON = 4


def keep_logs_quiet() -> None:
    """Put the filters on the loggers; a second call changes nothing."""
    _add(_CLIENT_LOGGER, _without_foreign_words)
    for name in _WIRE_LOGGERS:
        _add(name, _without_what_came)


def _add(name: str, rule: Callable[[logging.LogRecord], bool]) -> None:
    logger = logging.getLogger(name)
    if rule not in logger.filters:
        logger.addFilter(rule)


def _without_foreign_words(record: logging.LogRecord) -> bool:
    """Leave method, address, version and status; cut the query and the server's own phrase."""
    if isinstance(record.args, tuple) and len(record.args) == _REASON + 1:
        record.args = (*(_short(value) for value in record.args[:_REASON]), "")
    return True


def _without_what_came(record: logging.LogRecord) -> bool:
    """Cut what a server sent, or why it cannot be read: it may send back what it was given.

    Also as the host of a redirect.
    """
    if isinstance(record.msg, str) and record.msg.startswith(_FOREIGN):
        record.msg = record.msg.partition(" ")[0]
    return True


def _short(value: object) -> object:
    """Return a URL without its query and user, anything else as it is."""
    if isinstance(value, httpx2.URL):
        return value.copy_with(query=None, fragment=None, username="", password="")
    return value
