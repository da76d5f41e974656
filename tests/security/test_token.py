"""The access token: on every route, before anything else of the request is looked at."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from execd.app import ROUTES
from tests.edge.raw import connection, exchange, request
from tests.support.live import Daemon, daemon, wait_until

TOKEN = "s3cret-token/with+signs="
OPEN = {"/ping", "/readyz"}
ROUTED = sorted((method, route.path) for route in ROUTES for method in route.methods or ())
UNROUTED = [("GET", "/"), ("GET", "/nowhere"), ("PATCH", "/command"), ("OPTIONS", "*"), ("GET", "//ping")]


@pytest.fixture(scope="module", params=["flag", "variable"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    if request.param == "flag":
        with daemon("--access-token", TOKEN) as running:
            yield running
    else:
        with daemon(env={"EXECD_ACCESS_TOKEN": TOKEN}) as running:
            yield running


def concrete(path: str) -> str:
    return path.replace("{id}", "some").replace("{asset}", "swagger-ui.css")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("wrong", id="wrong"),
        pytest.param(TOKEN[:-1], id="beginning"),
        pytest.param(TOKEN + "x", id="longer"),
        pytest.param(TOKEN.upper(), id="other-case"),
        pytest.param(f"Bearer {TOKEN}", id="bearer"),
        pytest.param("ünïcode", id="not-ascii"),
    ],
)
def test_without_the_token_no_route_answers_but_the_health_checks(guarded: Daemon, given: str | None) -> None:
    headers = [] if given is None else [f"X-EXECD-ACCESS-TOKEN: {given}"]
    with connection(guarded.port) as conn:
        for method, path in [*ROUTED, *UNROUTED]:
            conn.send(request(method, concrete(path), *headers))
            answer = conn.answer(method)
            if path in OPEN:
                assert answer.status == 200, path
                continue
            assert answer.status == 401, (method, path)
            if method != "HEAD":
                error = answer.error()
                assert (error["code"], error["executed"]) == ("UNAUTHORIZED", "not_executed")
                assert "X-EXECD-ACCESS-TOKEN" in error["message"]
            assert TOKEN.encode() not in answer.body


def test_with_the_token_every_route_answers(guarded: Daemon) -> None:
    with connection(guarded.port) as conn:
        for method, path in ROUTED:
            conn.send(request(method, concrete(path), f"x-execd-access-token: {TOKEN}"))
            assert conn.answer(method).status != 401, (method, path)


@pytest.mark.parametrize("path", ["/ping", "/readyz"])
def test_a_health_check_does_not_mind_a_wrong_token(guarded: Daemon, path: str) -> None:
    assert exchange(guarded.port, request("GET", path, "X-EXECD-ACCESS-TOKEN: wrong")).status == 200


@pytest.mark.parametrize("path", ["/ping/", "/ping%2F", "/readyz%00", "/ping/../command/status/x", "/PING"])
def test_a_path_that_looks_like_a_health_check_is_none(guarded: Daemon, path: str) -> None:
    assert exchange(guarded.port, request("GET", path)).status == 401


def test_the_first_of_two_tokens_counts(guarded: Daemon) -> None:
    names = [f"X-EXECD-ACCESS-TOKEN: {token}" for token in ("wrong", TOKEN)]
    assert exchange(guarded.port, request("GET", "/capabilities", *names)).status == 401


def test_a_websocket_handshake_needs_the_token_as_well(guarded: Daemon) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "Sec-WebSocket-Version: 13",
    )
    assert exchange(guarded.port, request("GET", "/capabilities", *upgrade)).status == 401


def test_a_refused_upload_is_not_read_into_memory(guarded: Daemon) -> None:
    block = b"x" * (1 << 20)
    with connection(guarded.port) as conn:
        conn.send(request("POST", "/command", f"Content-Length: {64 << 20}"))
        assert conn.answer().status == 401
        before = guarded.rss_bytes()
        for _ in range(64):
            conn.send(block)
        conn.send(request("GET", "/ping"))
        assert conn.answer().status == 200
        assert guarded.rss_bytes() - before < 16 << 20


def test_an_unset_token_is_said_once_and_leaves_the_daemon_open() -> None:
    with daemon() as running:
        assert running.client.get("/capabilities").json()["features"]["access_token"] is False
        wait_until(lambda: "access_token_unset" in running.log_text(), what="the warning")
        warnings = [line for line in running.log_lines() if line["event"] == "access_token_unset"]
        assert [line["level"] for line in warnings] == ["warning"]


def test_a_token_of_the_caller_is_of_no_interest_where_none_is_set(live: Daemon) -> None:
    assert exchange(live.port, request("GET", "/capabilities", "X-EXECD-ACCESS-TOKEN: any")).status == 200


def test_the_socket_waits_for_nothing_but_the_head_to_refuse(guarded: Daemon) -> None:
    with connection(guarded.port) as conn:
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.send(b"POST /command HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert conn.answer().status == 401
