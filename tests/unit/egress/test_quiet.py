"""The HTTP client's own log lines tell no query, user or anything that came (SEC-2)."""

import logging

import httpx2
import pytest

from psych_runtime.egress._quiet import keep_logs_quiet


def test_sec_2_the_client_s_line_has_no_query(caplog: pytest.LogCaptureFixture) -> None:
    """It is written at INFO, for each request."""
    keep_logs_quiet()
    caplog.set_level(logging.DEBUG)
    url = httpx2.URL("https://user:canary@api.test/v1?key=canary#canary")
    line = 'HTTP Request: %s %s "%s %d %s"'
    logging.getLogger("httpx2").info(line, "POST", url, "HTTP/1.1", 401, "canary")
    assert caplog.messages == ['HTTP Request: POST https://api.test/v1 "HTTP/1.1 401 "']


def test_sec_2_the_wire_s_lines_tell_nothing_that_came(caplog: pytest.LogCaptureFixture) -> None:
    """A server may send back what it was given."""
    keep_logs_quiet()
    caplog.set_level(logging.DEBUG)
    wire = logging.getLogger("httpcore2.http11")
    wire.debug("receive_response_headers.complete return_value=(b'HTTP/1.1', 200, [b'canary'])")
    wire.debug("receive_response_headers.failed exception=RemoteProtocolError('canary')")
    wire.debug("send_request_headers.started request=<Request [b'POST']>")
    assert caplog.messages == [
        "receive_response_headers.complete",
        "receive_response_headers.failed",
        "send_request_headers.started request=<Request [b'POST']>",
    ]


def test_sec_2_filters_are_put_once() -> None:
    """Each client puts them."""
    keep_logs_quiet()
    before = list(logging.getLogger("httpx2").filters)
    keep_logs_quiet()
    assert logging.getLogger("httpx2").filters == before
