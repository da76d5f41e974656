"""Every answer of every route has only statuses, headers and fields that the contract has."""

from __future__ import annotations

import pytest

from tests.support.contract import CONTRACT, assert_documented, operations
from tests.support.live import Daemon, daemon, wait_until

GETS = [path for method, path, _ in operations() if method == "GET"]
ACCEPTS = ["text/event-stream", "application/x-ndjson", "*/*"]
ENDINGS = [
    pytest.param({"command": "echo out; echo err >&2"}, id="success"),
    pytest.param({"command": "exit 3"}, id="failure"),
    pytest.param({"command": "kill -9 $$"}, id="killed"),
    pytest.param({"command": "kill -36 $$"}, id="killed-by-a-real-time-signal"),
    pytest.param({"command": "sleep 60", "timeout": 30}, id="timed-out"),
    pytest.param({"command": "trap 'exit 5' TERM; sleep 60 & wait", "timeout": 300}, id="timed-out-orderly"),
    pytest.param({"argv": ["printf", "\\xff\\xe2\\x80\\xa8"]}, id="bytes-that-are-no-text"),
    pytest.param({"command": "sleep 60", "background": True}, id="background"),
]


QUERIES = {
    "/directories/list": "?path=/etc",
    "/files/search": "?path=/etc&pattern=pass*",
    "/files/download": "?path=/etc/passwd",
}


def _url(path: str, command_id: str) -> str:
    return path.replace("{id}", command_id).replace("{asset}", "swagger-ui.css") + QUERIES.get(path, "")


@pytest.mark.parametrize("path", GETS)
def test_get_and_head_say_the_same_and_what_is_documented(live: Daemon, path: str) -> None:
    ended = live.run("echo hello")[0]["text"]
    get = live.client.get(_url(path, ended))
    assert get.status_code == 200
    assert_documented("GET", path, get)
    head = live.client.head(_url(path, ended))
    assert_documented("HEAD", path, head)
    changing = {"x-request-id", "date", *(["content-length"] if path == "/capabilities" else [])}
    assert [item for item in head.headers.multi_items() if item[0] not in changing] == [
        item for item in get.headers.multi_items() if item[0] not in changing
    ]


@pytest.mark.parametrize("path", ["/command/status/{id}", "/command/{id}/logs"])
def test_head_of_what_is_not_there_has_status_and_headers_only(live: Daemon, path: str) -> None:
    answer = live.client.head(_url(path, "x"))
    assert answer.status_code == 404
    assert_documented("HEAD", path, answer)


@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("body", ENDINGS)
def test_however_a_command_ends_its_stream_and_its_record_are_documented(
    live: Daemon, body: dict[str, object], accept: str
) -> None:
    answer = live.client.post("/command", json=body, headers={"Accept": accept})
    assert_documented("POST", "/command", answer)
    command_id = answer.headers["x-execd-command-id"]
    for path in ("/command/status/{id}", "/command/{id}/logs"):
        assert_documented("GET", path, live.client.get(_url(path, command_id)))
    ending = live.client.delete("/command", params={"id": command_id})
    assert_documented("DELETE", "/command", ending)
    record = live.client.get(f"/command/status/{command_id}")
    assert not record.json()["running"]
    assert_documented("GET", "/command/status/{id}", record)


def test_a_strip_stream_is_documented(strip: Daemon) -> None:
    for accept in ACCEPTS:
        body = {"command": "printf 'a\\n\\r\\nb\\rc'; exit 1"}
        assert_documented(
            "POST", "/command", strip.client.post("/command", json=body, headers={"Accept": accept})
        )


def test_a_ping_is_documented() -> None:
    with daemon("--ping-interval", "50ms") as running:
        body = {"command": "sleep 0.3"}
        for accept in ACCEPTS:
            answer = running.client.post("/command", json=body, headers={"Accept": accept})
            assert '"ping"' in answer.text
            assert_documented("POST", "/command", answer)


def test_an_interrupted_command_that_chose_its_own_code_is_documented(live: Daemon) -> None:
    for code in (0, 7):
        command_id = live.background(f"trap 'exit {code}' TERM; echo up; sleep 60 & wait")
        wait_until(lambda i=command_id: live.logs(i) == b"up\n", what="the command's first word")  # type: ignore[misc]
        assert_documented("DELETE", "/command", live.client.delete("/command", params={"id": command_id}))
        answer = live.client.get(f"/command/status/{command_id}")
        assert answer.json()["outcome"] == {"kind": "interrupted", "reason": "request", "code": code}
        assert_documented("GET", "/command/status/{id}", answer)


def test_a_page_that_is_full_and_one_whose_beginning_is_gone_are_documented() -> None:
    with daemon("--output-memory", "128KiB", "--output-disk", "2MiB") as running:
        command_id = running.run("yes | head -c 4000000 >&2", background=True)[0]["text"]
        running.wait_ended(command_id)
        answer = running.client.get(f"/command/{command_id}/logs")
        assert answer.headers["x-execd-truncated-reason"] == "bytes"
        assert int(answer.headers["x-execd-dropped-bytes"]) > 0
        assert_documented("GET", "/command/{id}/logs", answer)
        assert_documented("GET", "/command/status/{id}", running.client.get(f"/command/status/{command_id}"))


def test_a_route_without_commands_has_no_command_headers() -> None:
    for _, path, operation in operations():
        names = set(operation["responses"]["200"]["headers"])
        assert ("X-Execd-Command-Id" in names) == (path == "/command" and "requestBody" in operation)
    assert CONTRACT["security"] == [{"accessToken": []}, {}]
