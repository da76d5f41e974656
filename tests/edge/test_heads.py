"""Request lines and headers: their limits, their odd forms, and what is no HTTP."""

from __future__ import annotations

import pytest

from tests.edge.raw import connection, exchange, request
from tests.support.live import Daemon

LIMIT = 64 * 1024


def padded(size: int, header: int) -> bytes:
    """A request for /ping whose head has about `size` bytes, in headers of `header` bytes."""
    count = (size - 50) // header
    return request("GET", "/ping", *[f"X-{n:06}: {'a' * (header - 12)}" for n in range(count)])


@pytest.mark.parametrize("header", [100, 1_000, 60_000])
@pytest.mark.parametrize("piece", [1_000, 20_000, LIMIT])
def test_a_head_within_the_limit_is_taken_however_it_arrives(live: Daemon, header: int, piece: int) -> None:
    data = padded(60_100, header)
    with connection(live.port) as conn:
        for _ in range(3):  # the count starts anew for each request
            for at in range(0, len(data), piece):
                conn.send(data[at : at + piece])
            assert conn.answer().status == 200


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(request("GET", "/ping", "X: " + "a" * 200_000), id="one-header"),
        pytest.param(padded(200_000, 100), id="many-headers"),
        pytest.param(padded(70_000, 20), id="many-tiny-headers"),
        pytest.param(request("GET", "/" + "a" * 200_000), id="path"),
        pytest.param(request("GET", "/ping?" + "a" * 200_000), id="query"),
        pytest.param(b"GET /ping HTTP/1.1\r\nX: " + b"a" * 400_000, id="header-without-an-end"),
    ],
)
def test_a_head_beyond_the_limit_is_refused(live: Daemon, data: bytes) -> None:
    with connection(live.port) as conn:
        conn.sock.settimeout(20)
        try:
            conn.send(data)
        except ConnectionError:
            return  # refused while it was being sent, and closed
        try:
            answer = conn.answer()
        except ConnectionResetError:
            return  # the answer was overtaken by the reset that unread bytes cause
        assert answer.status == 431
        assert answer.error()["code"] == "HEADERS_TOO_LARGE"
        assert answer.header("connection") == "close"
        assert conn.closed()


def test_a_head_just_beyond_the_limit_gets_its_answer(live: Daemon) -> None:
    answer = exchange(live.port, padded(LIMIT + 1_500, 1_000))
    assert answer.status == 431
    assert answer.error()["executed"] == "not_executed"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"garbage\r\n\r\n", id="garbage"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls-hello"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="http2-preface"),
        pytest.param(b"BREW /ping HTTP/1.1\r\nHost: x\r\n\r\n", id="unknown-method"),
        pytest.param(b"get /ping HTTP/1.1\r\nHost: x\r\n\r\n", id="lower-case-method"),
        pytest.param(b"GET /p\xc3\xa4th HTTP/1.1\r\nHost: x\r\n\r\n", id="raw-bytes-in-path"),
        pytest.param(b"GET /ping?\xff HTTP/1.1\r\nHost: x\r\n\r\n", id="raw-bytes-in-query"),
        pytest.param(b"GET /ping HTTP/9.9\r\nHost: x\r\n\r\n", id="version"),
        pytest.param(b"GET /ping HTTP/1.1\r\nHo st: x\r\n\r\n", id="space-in-header-name"),
        pytest.param(b"GET /ping HTTP/1.1\r\nX: a\0b\r\n\r\n", id="nul-in-header"),
        pytest.param(b"GET  HTTP/1.1\r\nHost: x\r\n\r\n", id="no-target"),
    ],
)
def test_what_is_no_http_is_answered_with_json_400_and_closed(live: Daemon, data: bytes) -> None:
    with connection(live.port) as conn:
        conn.send(data)
        answer = conn.answer()
        assert answer.status == 400
        error = answer.error()
        assert (error["code"], error["executed"]) == ("BAD_REQUEST", "not_executed")
        assert conn.closed()


def test_header_names_are_read_in_any_case(live: Daemon) -> None:
    body = b'{"argv":["true"]}'
    for change in (str.lower, str.upper, str.title):
        names = [change(name) for name in ("accept", "content-length", "x-request-id", "host")]
        values = ["application/x-ndjson", str(len(body)), "case", "sandbox"]
        fields = "".join(f"{name}:{value}\r\n" for name, value in zip(names, values, strict=True))
        answer = exchange(live.port, b"POST /command HTTP/1.1\r\n" + fields.encode() + b"\r\n" + body)
        assert answer.status == 200
        assert answer.header("content-type") == "application/x-ndjson"
        assert answer.header("x-request-id") == "case"


@pytest.mark.parametrize("target", ["http://127.0.0.1/ping", "http://elsewhere:1/ping", "http://x/ping?a=b"])
def test_an_absolute_target_is_routed_by_its_path(live: Daemon, target: str) -> None:
    assert exchange(live.port, request("GET", target)).status == 200


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/%", "NOT_FOUND"),
        ("/%zz", "NOT_FOUND"),
        ("/ping%", "NOT_FOUND"),
        ("//ping", "NOT_FOUND"),
        ("/ping/", "NOT_FOUND"),
        ("/command/%/logs", "COMMAND_NOT_FOUND"),
        ("/command/%2/logs", "COMMAND_NOT_FOUND"),
        ("/command/%00/logs", "COMMAND_NOT_FOUND"),
        ("/command/%ff%fe/logs", "COMMAND_NOT_FOUND"),
        ("/command/status/%0d%0aX:%20y", "COMMAND_NOT_FOUND"),
    ],
)
def test_odd_escapes_in_a_path_are_an_ordinary_404(live: Daemon, path: str, code: str) -> None:
    answer = exchange(live.port, request("GET", path))
    assert answer.status == 404
    assert answer.error()["code"] == code


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (b"%", 404),
        (b"&&&===", 404),
        (b"a=%zz;b" * 100, 404),
        (b"cursor=", 404),
        (b"cursor=1&cursor=2", 404),
        (b"cursor=%31", 404),
        (b"cursor=%ff", 400),
        (b"cursor=%00", 400),
        (b"cursor=%", 400),
        (b"cursor=-1", 400),
        (b"cursor=%D9%A1", 400),  # a digit, but not an ASCII one
        (b"cursor=9223372036854775808", 400),
    ],
)
def test_odd_bytes_in_a_query_are_tolerated_or_named(live: Daemon, query: bytes, status: int) -> None:
    answer = exchange(live.port, b"GET /command/nobody/logs?" + query + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.status == status
    expected = "COMMAND_NOT_FOUND" if status == 404 else "INVALID_QUERY"
    assert answer.error()["code"] == expected


def test_a_good_request_is_answered_before_the_bad_one_behind_it(live: Daemon) -> None:
    with connection(live.port) as conn:
        conn.send(request("GET", "/ping") + b"garbage\r\n\r\n")
        answer = conn.answer()
        assert answer.status == 200
        assert answer.header("connection") == "close"
        assert conn.closed()
