"""Clients that begin a request and do not finish it. The waits are made short for the test."""

from __future__ import annotations

import sys
import time

from tests.edge.raw import connection, drip, request
from tests.support.live import daemon

IMPATIENT = (
    "import sys; sys.argv = ['execd', *sys.argv[4:]]\n"
    "import execd.protocol, execd.api.body\n"
    "from execd.cli import main\n"
    "execd.protocol._HEAD_SECONDS = execd.api.body.BODY_SECONDS = 0.6\n"
    "main()"
)
WRAPPER = (sys.executable, "-c", IMPATIENT)


def test_a_head_that_does_not_arrive_in_time_ends_the_connection() -> None:
    with daemon(wrapper=WRAPPER) as running:
        with connection(running.port) as conn:
            conn.send(b"GET /ping HTTP/1.1\r\nHost: ")
            assert conn.closed()
        with connection(running.port) as conn:  # after a good one as well
            conn.send(request("GET", "/ping") + b"GET /ping HTTP/1.1\r\n")
            assert conn.answer().status == 200
            conn.send(b"Host: ")
            assert conn.closed()


def test_a_head_that_drips_in_does_not_get_more_time_for_each_byte() -> None:
    with daemon(wrapper=WRAPPER) as running, connection(running.port) as conn:
        conn.send(b"GET /ping HTTP/1.1\r\n")
        began = time.monotonic()
        assert not drip(conn, b"X-Slow: " + b"a" * 200, 0.05)
        assert time.monotonic() - began < 8


def test_a_body_that_stops_half_way_is_answered_with_408() -> None:
    with daemon(wrapper=WRAPPER) as running, connection(running.port) as conn:
        conn.send(request("POST", "/command", "Content-Length: 100") + b'{"command":')
        answer = conn.answer()
        assert answer.status == 408
        error = answer.error()
        assert (error["code"], error["executed"]) == ("REQUEST_TIMEOUT", "not_executed")
        assert error["retryable"] is True


def test_the_times_that_are_given_outside_of_tests_are_these() -> None:
    from execd import protocol
    from execd.api import body

    assert protocol._HEAD_SECONDS == 30
    assert body.BODY_SECONDS == 60
