"""HEAD and 405 on every route there is, and answers without a body."""

from __future__ import annotations

import itertools

import pytest
from starlette.routing import Route

from execd.app import ROUTES
from tests.edge.raw import connection, exchange, request
from tests.support.live import Daemon

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
CHANGING = {"x-request-id", "date", "content-length"}
QUERIES = {
    "/directories/list": "?path=/etc",
    "/files/search": "?path=/etc&pattern=pass*",
    "/files/download": "?path=/etc/passwd",
}
"""What a route must be asked so that it answers."""


def allowed(path: str) -> set[str]:
    return {method for route in ROUTES if route.path == path for method in route.methods or ()}


def target(path: str, live: Daemon) -> str:
    """The route's path with an id that exists."""
    if "{id}" in path:
        command_id = live.background("echo some output")
        live.wait_ended(command_id)
        path = path.replace("{id}", command_id)
    return path.replace("{asset}", "swagger-ui.css") + QUERIES.get(path, "")


@pytest.mark.parametrize("route", [r for r in ROUTES if "GET" in (r.methods or ())], ids=lambda r: r.path)
def test_head_has_the_headers_of_get_and_no_body(live: Daemon, route: Route) -> None:
    where = target(route.path, live)
    with connection(live.port) as conn:
        conn.send(request("GET", where))
        got = conn.answer()
        conn.send(request("HEAD", where))
        head = conn.answer("HEAD")
        assert (got.status, head.status) == (200, 200)
        assert {n: v for n, v in head.headers if n not in CHANGING} == {
            n: v for n, v in got.headers if n not in CHANGING
        }
        assert head.header("content-length") is not None
        if route.path not in ("/capabilities", "/readyz"):  # what these two say changes with time
            assert head.header("content-length") == got.header("content-length")
        conn.send(request("GET", "/ping"))  # a body would be taken for this answer
        assert conn.answer().status == 200


def test_head_of_an_error_has_no_body_either(live: Daemon) -> None:
    with connection(live.port) as conn:
        for where, status in (("/nowhere", 404), ("/command", 405), ("/command/nobody/logs?cursor=x", 400)):
            conn.send(request("HEAD", where))
            assert conn.answer("HEAD").status == status
        conn.send(request("GET", "/ping"))
        assert conn.answer().status == 200


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES}))
def test_405_lists_every_method_of_the_path(live: Daemon, path: str) -> None:
    where = path.replace("{id}", "some").replace("{asset}", "some")
    with connection(live.port) as conn:
        for method in METHODS:
            if method in allowed(path):
                continue
            conn.send(request(method, where))
            answer = conn.answer(method)
            assert answer.status == 405, method
            assert answer.header("allow") == ", ".join(sorted(allowed(path)))
            if method != "HEAD":
                assert answer.error()["code"] == "METHOD_NOT_ALLOWED"


def test_an_empty_200_says_that_it_is_empty(live: Daemon) -> None:
    command_id = live.background("sleep 30")
    with connection(live.port) as conn:
        for _, (method, where) in itertools.product(
            range(2), [("GET", "/ping"), ("HEAD", "/ping"), ("DELETE", f"/command?id={command_id}")]
        ):
            conn.send(request(method, where))
            answer = conn.answer(method)
            assert (answer.status, answer.body) == (200, b"")
            assert answer.header("content-length") == "0"
            assert answer.header("transfer-encoding") is None


def test_a_method_for_the_server_as_a_whole_is_an_ordinary_404(live: Daemon) -> None:
    assert exchange(live.port, request("OPTIONS", "*")).error()["code"] == "NOT_FOUND"
