"""Keeps what requests and answers carry out of the HTTP client's own log lines (SEC-2)."""

import logging

import httpx2

__all__ = ["keep_logs_quiet"]

_CLIENT_LOGGER = "httpx2"
_WIRE_LOGGERS = ("httpcore2.http11", "httpcore2.http2")
_ANSWERED = "receive_response_headers.complete"


def keep_logs_quiet() -> None:
    """Put the filters on the loggers; a second call changes nothing."""
    _add(_CLIENT_LOGGER, _without_queries)
    for name in _WIRE_LOGGERS:
        _add(name, _without_headers)


def _add(name: str, rule: "logging._FilterType") -> None:
    logger = logging.getLogger(name)
    if rule not in logger.filters:
        logger.addFilter(rule)


def _without_queries(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(_short(value) for value in record.args)
    return True


def _without_headers(record: logging.LogRecord) -> bool:
    """Cut the headers that a server sent: it may send back what it was given."""
    if isinstance(record.msg, str) and record.msg.startswith(_ANSWERED):
        record.msg = _ANSWERED
    return True


def _short(value: object) -> object:
    """Return a URL without its query and user, anything else as it is."""
    if isinstance(value, httpx2.URL):
        return value.copy_with(query=None, fragment=None, username="", password="")
    return value
