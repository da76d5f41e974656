"""What clients without an SDK rely on, directly and through the server: frames, headers, empty bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.conformance.conftest import ROUTES, World
from tests.support import sse
from tests.support.sdk import Target

Parse = Callable[[bytes], list[dict[str, Any]]]
AWKWARD = 'é 🌍 \u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\x7f " \\ data: x\n\nid: 3\n'
OPTIONAL = ("argv", "cwd", "background", "timeout", "uid", "gid", "envs")


def standard(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in sse.parse(body)]


def bare(body: bytes) -> list[dict[str, Any]]:
    frames = body.split(b"\n\n")
    assert frames.pop() == b""
    return [json.loads(frame) for frame in frames]


def ndjson(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


FRAMINGS: dict[str, tuple[str | None, str, Parse]] = {
    "standard": ("text/event-stream", "text/event-stream", standard),
    "no-accept": (None, "text/event-stream", bare),
    "any": ("*/*", "text/event-stream", bare),
    "json": ("application/json", "text/event-stream", bare),
    "ndjson": ("application/x-ndjson", "application/x-ndjson", ndjson),
    "several": ("application/json, text/event-stream;q=0.9", "text/event-stream", standard),
}


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


def post(http: httpx.Client, target: Target, accept: str | None, **body: Any) -> httpx.Response:
    request = http.build_request("POST", f"{target.url}/command", json=body)
    del request.headers["Accept"]
    if accept is not None:
        request.headers["Accept"] = accept
    return http.send(request)


@pytest.mark.parametrize(("accept", "content_type", "parse"), FRAMINGS.values(), ids=FRAMINGS)
def test_the_frames_of_a_stream_are_what_accept_asks_for(
    http: httpx.Client, target: Target, accept: str | None, content_type: str, parse: Parse
) -> None:
    answer = post(http, target, accept, command=f"cat <<'EOF'\n{AWKWARD}EOF\necho err >&2; exit 3")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].split(";")[0] == content_type
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in answer.headers
    assert answer.content.isascii()
    events = [event for event in parse(answer.content) if event["type"] != "ping"]
    assert all(isinstance(event["timestamp"], int) for event in events)
    assert [e["type"] for e in events if e["type"] not in ("stdout", "stderr")] == ["init", "error"]
    assert events[0]["text"] == answer.headers["X-Execd-Command-Id"]
    assert events[-1]["error"] == {
        "ename": "CommandExecError",
        "evalue": "3",
        "traceback": ["exit status 3"],
    }
    shown = [event["text"] for event in events if event["type"] == "stdout"]
    if target.line_endings == "keep":
        assert "".join(shown) == AWKWARD
    else:
        assert shown == [line or "\n" for line in AWKWARD.split("\n")[:-1]]


def test_a_silent_command_is_heard_of_all_the_same(http: httpx.Client, world: World) -> None:
    for route in ROUTES:
        target = world.target("strip", route)
        with http.stream("POST", f"{target.url}/command", json={"command": "sleep 60"}) as answer:
            frames = answer.iter_raw()
            seen = b""
            while seen.count(b'"type":"ping"') < 2:
                seen += next(frames)
        assert [e["type"] for e in bare(seen)] == ["init", "ping", "ping"]
        target.daemon.client.delete("/command", params={"id": answer.headers["X-Execd-Command-Id"]})


def test_null_is_as_good_as_absent(http: httpx.Client, target: Target) -> None:
    answer = post(http, target, None, command="echo hi", **dict.fromkeys(OPTIONAL))
    assert bare(answer.content)[-1]["type"] == "execution_complete"


def test_a_body_in_chunks_is_as_good_as_one_piece(http: httpx.Client, target: Target) -> None:
    parts = [b'{"command":', b'"echo ', b"", b'hi"}']
    answer = http.post(f"{target.url}/command", content=iter(parts))
    assert [e["text"].strip() for e in bare(answer.content) if e["type"] == "stdout"] == ["hi"]


@pytest.mark.parametrize("chunked", [False, True])
def test_an_empty_success_has_a_length_of_zero(http: httpx.Client, target: Target, chunked: bool) -> None:
    command_id = target.daemon.background("sleep 60")
    # what has no body comes from the server as a chunked body without chunks
    content = iter(()) if chunked else None
    answer = http.request("DELETE", f"{target.url}/command", params={"id": command_id}, content=content)
    assert (answer.status_code, answer.headers["Content-Length"], answer.content) == (200, "0", b"")
    assert target.daemon.status(command_id)["outcome"]["kind"] == "interrupted"
    ping = http.get(f"{target.url}/ping")
    assert (ping.status_code, ping.headers["Content-Length"], ping.content) == (200, "0", b"")


def test_an_error_has_code_message_and_what_ran(http: httpx.Client, target: Target) -> None:
    for answer, status, code in (
        (http.get(f"{target.url}/command/status/nope"), 404, "COMMAND_NOT_FOUND"),
        (http.get(f"{target.url}/no/such/route"), 404, "NOT_FOUND"),
        (http.put(f"{target.url}/command"), 405, "METHOD_NOT_ALLOWED"),
        (http.delete(f"{target.url}/command"), 400, "MISSING_QUERY"),
        (http.get(f"{target.url}/command/x/logs?cursor=-1"), 400, "INVALID_QUERY"),
        (post(http, target, "text/event-stream", command="x", cwd="/nope"), 400, "INVALID_REQUEST_BODY"),
    ):
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/json"
        body = answer.json()
        assert (body["code"], body["executed"], body["retryable"]) == (code, "not_executed", False)
        assert body["message"]
        assert "error" not in body
        assert "detail" not in body


def test_a_connection_is_kept_after_every_kind_of_answer(http: httpx.Client, target: Target) -> None:
    addresses = set()
    for answer in (
        http.get(f"{target.url}/ping"),
        http.get(f"{target.url}/command/status/nope"),
        post(http, target, None, command="echo hi"),
        post(http, target, None, command="true", background=True),
        post(http, target, None, command=""),
        http.put(f"{target.url}/command"),
        http.get(f"{target.url}/ping"),
    ):
        addresses.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
    assert len(addresses) == 1
