"""Request bodies: large ones, chunked ones, unread ones, and those that never end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.raw import command, connection, events, exchange, request
from tests.support.live import Daemon, daemon, text

TOKEN = "token-of-the-edge"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Daemon]:
    """A daemon with a token and a small limit on bodies."""
    with daemon("--access-token", TOKEN, "--max-body", "64KiB") as running:
        yield running


def in_chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1_000, 65_000, 66_000, 200_000, 1_000_000])
def test_a_body_of_any_size_is_no_large_head(live: Daemon, size: int) -> None:
    with connection(live.port) as conn:
        for _ in range(5):
            conn.send(command("echo arrived #" + "x" * size))
            assert text(events(conn.answer())) == "arrived\n"


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_chunked_body_is_put_together(live: Daemon, size: int) -> None:
    body = json.dumps({"command": "echo chunked #" + "x" * 500}).encode()
    head = request("POST", "/command", "Accept: application/x-ndjson", CHUNKED)
    assert text(events(exchange(live.port, head + in_chunks(body, size)))) == "chunked\n"


def test_chunk_extensions_and_trailers_are_passed_over(live: Daemon) -> None:
    body = b'{"command":"echo hi"}'
    head = request("POST", "/command", "Accept: application/x-ndjson", CHUNKED)
    chunks = b"%x;name=value\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(body), body)
    with connection(live.port) as conn:
        conn.send(head + chunks + request("GET", "/ping"))
        assert text(events(conn.answer())) == "hi\n"
        assert conn.answer().status == 200


def test_an_empty_chunked_body_is_no_body(live: Daemon) -> None:
    with connection(live.port) as conn:
        conn.send(request("DELETE", "/command?id=nobody", CHUNKED) + b"0\r\n\r\n")
        assert conn.answer().error()["code"] == "COMMAND_NOT_FOUND"
        conn.send(request("POST", "/command", CHUNKED) + b"0\r\n\r\n")
        assert conn.answer().error()["code"] == "INVALID_REQUEST_BODY"
        conn.send(request("GET", "/ping", CHUNKED) + b"0\r\n\r\n")
        assert conn.answer().status == 200


def test_expect_100_continue_is_answered_before_the_body_comes(live: Daemon) -> None:
    whole = command("echo hi", "Expect: 100-continue")
    head, _, body = whole.partition(b"\r\n\r\n")
    with connection(live.port) as conn:
        conn.send(head + b"\r\n\r\n")
        assert conn.answer().status == 100
        conn.send(body)
        assert text(events(conn.answer())) == "hi\n"


@pytest.mark.parametrize(
    ("token", "status", "code"),
    [
        pytest.param("wrong", 401, "UNAUTHORIZED", id="wrong-token"),
        pytest.param(TOKEN, 413, "BODY_TOO_LARGE", id="too-large"),
    ],
)
@pytest.mark.parametrize("expect", [(), ("Expect: 100-continue",)], ids=["sends-at-once", "expects-continue"])
def test_a_gibibyte_that_is_announced_is_refused_at_once(
    guarded: Daemon, token: str, status: int, code: str, expect: tuple[str, ...]
) -> None:
    headers = (f"X-EXECD-ACCESS-TOKEN: {token}", f"Content-Length: {1 << 30}", *expect)
    with connection(guarded.port) as conn:
        conn.send(request("POST", "/command", *headers))
        answer = conn.answer()  # not one byte of the body was sent, and no 100 came first
        assert answer.status == status
        assert answer.error()["code"] == code


@pytest.mark.parametrize("token", ["wrong", TOKEN])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_was_refused_is_not_taken_for_the_next_request(
    guarded: Daemon, token: str, chunked: bool
) -> None:
    header = f"X-EXECD-ACCESS-TOKEN: {token}"
    body = request("POST", "/smuggled", body=b"x") * 10_000
    with connection(guarded.port) as conn:
        if chunked:
            conn.send(request("POST", "/command", header, CHUNKED) + in_chunks(body, 5_000))
        else:
            conn.send(request("POST", "/command", header, body=body))
        assert conn.answer().status == (413 if token == TOKEN else 401)
        conn.send(request("GET", "/ping"))
        answer = conn.answer()
        assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("size", [64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_on_a_body_is_exact(guarded: Daemon, size: int, chunked: bool) -> None:
    headers = ("Accept: application/x-ndjson", f"X-EXECD-ACCESS-TOKEN: {TOKEN}")
    start = b'{"command":"echo hi #'
    body = start + b"x" * (size - len(start) - 2) + b'"}'
    if chunked:
        answer = exchange(
            guarded.port, request("POST", "/command", *headers, CHUNKED) + in_chunks(body, 9_999)
        )
    else:
        answer = exchange(guarded.port, request("POST", "/command", *headers, body=body))
    if size <= 64 * 1024:
        assert text(events(answer)) == "hi\n"
    else:
        assert answer.error()["details"] == {"limit_bytes": 64 * 1024}


@pytest.mark.parametrize("rest", ["length", "chunks"])
def test_a_request_that_was_cut_short_does_not_run(live: Daemon, tmp_path: Path, rest: str) -> None:
    body = json.dumps({"command": f"touch {tmp_path}/ran"}).encode()
    framing = CHUNKED if rest == "chunks" else f"Content-Length: {len(body) + 1}"
    head = request("POST", "/command", framing, f"X-Request-ID: cut-{rest}")
    with connection(live.port) as conn:
        # valid JSON, but by its framing there is more to come
        conn.send(head + (b"%x\r\n%b\r\n" % (len(body), body) if rest == "chunks" else body))
        conn.half_close()
        assert conn.closed()
    live.run("true")  # started after it, so it would have run by now
    assert not list(tmp_path.iterdir())


def test_a_body_with_a_broken_chunk_is_answered_as_malformed(live: Daemon) -> None:
    with connection(live.port) as conn:
        conn.send(request("POST", "/command", CHUNKED) + b"5\r\n{    \r\nxyz\r\n")
        assert conn.answer().error()["code"] == "BAD_REQUEST"
        assert conn.closed()


@pytest.mark.parametrize(
    "framing",
    [
        pytest.param(("Content-Length: 5", CHUNKED), id="both-framings"),
        pytest.param(("Content-Length: 5", "Content-Length: 6"), id="two-lengths"),
        pytest.param(("Content-Length: -1",), id="negative"),
        pytest.param(("Content-Length: 99999999999999999999999",), id="beyond-64-bits"),
        pytest.param(("Content-Length: five",), id="no-number"),
    ],
)
def test_a_body_whose_length_is_unclear_is_refused(live: Daemon, framing: tuple[str, ...]) -> None:
    with connection(live.port) as conn:
        conn.send(request("POST", "/command", *framing) + b"0\r\n\r\n")
        assert conn.answer().error()["code"] == "BAD_REQUEST"
        assert conn.closed()
