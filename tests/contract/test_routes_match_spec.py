"""Routes and contract list the same paths and methods."""

from __future__ import annotations

from execd.app import ROUTES
from tests.support.contract import FILE, operations
from tests.support.live import Daemon


def _routes() -> set[tuple[str, str]]:
    return {(method, route.path) for route in ROUTES for method in route.methods or ()}


def test_every_route_is_in_the_contract_and_the_other_way_round() -> None:
    documented = {(method, path) for method, path, _ in operations()}
    assert {(method, path) for method, path in _routes() if method != "HEAD"} == documented


def test_there_is_head_exactly_where_there_is_get() -> None:
    routes = _routes()
    heads = {path for method, path in routes if method == "HEAD"}
    assert heads == {path for method, path in routes if method == "GET"}


def test_the_daemon_serves_the_contract_as_it_is_in_the_source(live: Daemon) -> None:
    assert live.client.get("/openapi.yaml").content == FILE.read_bytes()
