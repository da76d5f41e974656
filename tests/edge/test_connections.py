"""Connections: reuse, pipelining, old clients, refused upgrades, half-closed ones, ids and dates."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime

import pytest

from tests.edge.raw import command, connection, events, exchange, request
from tests.support.live import Daemon, daemon, text, wait_until


def test_pipelined_requests_are_answered_in_their_order(live: Daemon) -> None:
    with connection(live.port) as conn:
        ids = [f"n{n}" for n in range(3_000)]  # more bytes at once than a head may have
        conn.send(b"".join(request("GET", "/ping", f"X-Request-ID: {i}") for i in ids))
        assert [conn.answer().header("x-request-id") for _ in ids] == ids


def test_commands_can_be_pipelined(live: Daemon) -> None:
    with connection(live.port) as conn:
        conn.send(
            command("sleep 0.2; echo 1") + command("echo 2") + request("GET", "/ping") + command("echo 3")
        )
        assert text(events(conn.answer())) == "1\n"
        assert text(events(conn.answer())) == "2\n"
        assert conn.answer().status == 200
        assert text(events(conn.answer())) == "3\n"


def test_a_connection_serves_many_requests_and_closes_when_asked(live: Daemon) -> None:
    with connection(live.port) as conn:
        for _ in range(200):
            conn.send(request("GET", "/ping"))
            answer = conn.answer()
            assert (answer.status, answer.header("connection")) == (200, None)
        conn.send(request("GET", "/ping", "Connection: close"))
        assert conn.answer().header("connection") == "close"
        assert conn.closed()


def test_a_stream_ends_cleanly_on_a_connection_that_closes(live: Daemon) -> None:
    with connection(live.port) as conn:
        conn.send(command("echo hi", "Connection: close"))
        assert [e["type"] for e in events(conn.answer())] == ["init", "stdout", "execution_complete"]
        assert conn.closed()


def test_http_1_0_gets_its_answer_without_chunks(live: Daemon) -> None:
    body = b'{"command":"echo one; sleep 0.1; echo two"}'
    head = b"POST /command HTTP/1.0\r\nAccept: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(body)
    with connection(live.port) as conn:
        conn.send(head + body)
        answer = conn.answer()  # up to the end of the connection
        assert answer.header("transfer-encoding") is None
        assert answer.header("connection") == "close"
        assert text(events(answer)) == "one\ntwo\n"
    for method in ("GET", "HEAD"):
        with connection(live.port) as conn:
            conn.send(f"{method} /ping HTTP/1.0\r\n\r\n".encode())
            answer = conn.answer(method)
            assert (answer.status, answer.header("content-length")) == (200, "0")
            assert conn.closed()
    with connection(live.port) as conn:
        conn.send(b"GET /openapi.yaml HTTP/1.0\r\n\r\n")
        answer = conn.answer()
        assert answer.header("content-length") == str(len(answer.body))
        assert conn.closed()


@pytest.mark.parametrize("protocol", ["websocket", "h2c", "WebSocket, h2c"])
def test_an_upgrade_is_ignored_and_the_request_answered(live: Daemon, protocol: str) -> None:
    upgrade = ("Connection: keep-alive, Upgrade", f"Upgrade: {protocol}", "Sec-WebSocket-Version: 13")
    with connection(live.port) as conn:
        conn.send(request("GET", "/ping", *upgrade) + request("GET", "/nowhere"))
        assert conn.answer().status == 200
        assert conn.answer().status == 404
    for pieces in (1, 2):
        data = command("echo not lost", *upgrade)
        cut = len(data) if pieces == 1 else data.index(b"\r\n\r\n") + 10
        with connection(live.port) as conn:
            conn.send(data[:cut])
            conn.send(data[cut:])
            assert text(events(conn.answer())) == "not lost\n"


def test_the_body_of_an_ignored_upgrade_is_not_taken_for_a_request(live: Daemon) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: h2c")
    body = request("DELETE", "/command?id=smuggled")
    with connection(live.port) as conn:
        conn.send(request("POST", "/command", *upgrade, f"Content-Length: {len(body)}"))
        conn.send(body + request("GET", "/ping"))
        assert conn.answer().error()["code"] == "INVALID_REQUEST_BODY"
        assert conn.closed()


@pytest.mark.parametrize("route", ["/ping", "/readyz", "/capabilities"])
def test_a_client_that_is_done_sending_gets_its_answer(live: Daemon, route: str) -> None:
    with connection(live.port) as conn:
        conn.send(request("GET", route))
        conn.half_close()
        assert conn.answer().status == 200
        assert conn.closed()


def test_keep_alive_is_as_long_as_it_is_set() -> None:
    with daemon("--keep-alive", "1s") as running:
        with connection(running.port) as never_used, connection(running.port) as used:
            began = time.monotonic()
            used.send(request("GET", "/ping"))
            assert used.answer().status == 200
            assert used.closed()
            assert 1 <= time.monotonic() - began < 10
            assert never_used.closed()
        with connection(running.port) as conn:
            conn.send(command("sleep 1.5; echo still here"))  # silence of a stream is not idleness
            assert text(events(conn.answer())) == "still here\n"
            assert conn.closed()


def test_a_refused_body_that_stalls_does_not_hold_the_connection_for_ever() -> None:
    with daemon("--keep-alive", "1s", "--access-token", "t") as running, connection(running.port) as conn:
        conn.send(request("POST", "/command", "Content-Length: 1000000"))
        assert conn.answer().status == 401
        conn.send(b"x" * 1000)
        assert conn.closed()


def test_default_keep_alive_outlives_the_pools_of_clients(live: Daemon) -> None:
    limits = live.client.get("/capabilities").json()["limits"]
    assert limits["keep_alive_seconds"] > 75


def test_clients_that_leave_give_their_connections_back(live: Daemon) -> None:
    live.run("true")
    before = live.descriptors()
    for _ in range(50):
        with connection(live.port) as conn:
            conn.send(request("GET", "/ping"))
    wait_until(lambda: live.descriptors() <= before, what="descriptors as before")


@pytest.mark.parametrize("given", ["a", "x" * 128, "!~visible-ASCII{}", "0b5e7f52-5f3c-4d8c"])
@pytest.mark.parametrize("path", ["/ping", "/nowhere", "/command?id=x"])
def test_a_request_id_is_kept(live: Daemon, given: str, path: str) -> None:
    answer = exchange(live.port, request("DELETE", path, f"X-Request-ID: {given}"))
    assert answer.header("x-request-id") == given


@pytest.mark.parametrize("given", [None, "", "two words", "x" * 129, "umlaut-ä", "tab\tinside"])
def test_a_request_id_that_cannot_be_used_is_replaced(live: Daemon, given: str | None) -> None:
    headers = [] if given is None else [f"X-Request-ID: {given}"]
    ids = {exchange(live.port, request("GET", "/ping", *headers)).header("x-request-id") for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", made or "") for made in ids)


def test_every_answer_says_when_it_was_made(live: Daemon) -> None:
    for path in ("/ping", "/nowhere", "/capabilities"):
        date = exchange(live.port, request("GET", path)).header("date")
        assert date is not None
        assert abs(parsedate_to_datetime(date).timestamp() - time.time()) < 10
