"""Whatever goes wrong, the answer is one JSON shape, with its code's own status and promises."""

from __future__ import annotations

import httpx
import pytest

import tests.contract.ways_of_downloads  # registers its ways
import tests.contract.ways_of_files
import tests.contract.ways_of_limits
import tests.contract.ways_of_listings
import tests.contract.ways_of_uploads  # noqa: F401  # registers its ways
from execd.errors import CODES
from tests.contract.ways import WAYS, Way, sent
from tests.edge import raw
from tests.support.contract import CONTRACT, METHODS, assert_canonical_error, assert_documented
from tests.support.live import Daemon, daemon

BASE_OF_OTHERS = {"SERVICE_UNAVAILABLE"}
"""What several codes are kinds of; never sent itself."""
PATHS = {path: path.replace("{id}", "x").replace("{asset}", "x") for path in CONTRACT["paths"]}


@pytest.mark.parametrize("way", [pytest.param(way, id=way.provoke.__name__) for way in WAYS])
def test_an_error_leaves_in_the_one_shape(live: Daemon, way: Way) -> None:
    answer = way.provoke(live)
    assert_canonical_error(answer, way.code)
    if way.path:
        assert_documented(way.method, way.path, answer)


def test_every_code_is_provoked() -> None:
    assert {way.code for way in WAYS} == set(CODES) - BASE_OF_OTHERS


@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_method_is_told_which_ones_there_are(live: Daemon, path: str) -> None:
    allowed = {method.upper() for method in METHODS if method in CONTRACT["paths"][path]}
    if "GET" in allowed:
        allowed.add("HEAD")
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"} - allowed:
        answer = sent(live, raw.request(method, PATHS[path]), method)
        assert answer.headers["allow"] == ", ".join(sorted(allowed))
        if method == "HEAD":
            assert (answer.status_code, answer.content) == (405, b"")
        else:
            assert_canonical_error(answer, "METHOD_NOT_ALLOWED")
            assert_documented(method, path, answer)


def test_without_the_token_every_route_but_two_is_refused_whatever_it_is_asked() -> None:
    with daemon("--access-token", "right") as running:
        for path, url in {**PATHS, "": "/nowhere"}.items():
            for method in ("GET", "POST", "DELETE", "PUT"):
                answer = running.client.request(method, url)
                if path in ("/ping", "/readyz"):
                    assert answer.status_code == (200 if method == "GET" else 405)
                else:
                    assert_canonical_error(answer, "UNAUTHORIZED")


def test_an_error_carries_the_request_id_that_was_sent(live: Daemon) -> None:
    for path in ("/nowhere", "/command/status/x", "/command/x/logs?cursor=x"):
        answer = live.client.get(path, headers={"X-Request-ID": "build-42"})
        assert answer.headers["x-request-id"] == "build-42"


def test_a_request_id_that_is_not_visible_ascii_is_replaced(live: Daemon) -> None:
    for given in (b"two words", b"\xc3\xa9", b"x" * 129, b""):
        made = live.client.get("/nowhere", headers=[(b"X-Request-ID", given)]).headers["x-request-id"]
        assert made.encode() != given
        assert len(made) == 32


def test_two_errors_without_a_request_id_have_different_ones(live: Daemon) -> None:
    answers: list[httpx.Response] = [sent(live, b"nonsense\r\n\r\n") for _ in range(2)]
    answers += [live.client.get("/nowhere") for _ in range(2)]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 4
