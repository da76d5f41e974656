"""The log: what never gets into it, how little it grows, and where it goes when its file cannot be had."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from execd import logs
from tests.edge.raw import command, connection, request
from tests.support.live import Daemon, daemon, text, wait_until


@pytest.fixture(scope="module")
def talkative() -> Iterator[Daemon]:
    """A daemon that logs all it ever logs."""
    with daemon("--log-level", "7") as running:
        yield running


def settled(running: Daemon) -> str:
    """The log, once all that was logged before this call is in it."""
    marker = os.urandom(8).hex()
    running.client.get(f"/{marker}")
    wait_until(lambda: marker in running.log_text(), what="the log line of the marker")
    return running.log_text()


def test_nothing_of_a_command_is_logged_at_any_level(talkative: Daemon) -> None:
    envs = {"SECRET_NAME": "secret-of-envs"}
    talkative.run("echo secret-of-command secret-'of'-output; exit 3", envs=envs)
    talkative.run(argv=["printf", "secret-of-argv"], envs=envs)
    talkative.wait_ended(talkative.background("echo secret-of-background"))
    talkative.client.post("/command", json={"command": "true", "cwd": "/secret-of-cwd"})
    talkative.client.post("/command", json={"argv": ["secret-of-program"]})
    talkative.client.post("/command", content=b'{"command": "secret-of-bad-json')
    talkative.client.post("/command", json={"command": 1, "secret-of-field": "secret-of-value"})
    talkative.client.get("/command/x/logs", params={"cursor": "secret-of-query"})
    log = settled(talkative)
    assert "secret" not in log.lower()


def test_headers_of_callers_are_not_logged(talkative: Daemon) -> None:
    names = ("Authorization", "Cookie", "OPEN-SANDBOX-API-KEY", "X-EXECD-ACCESS-TOKEN", "User-Agent", "X-Any")
    headers = {name: f"secret-in-{name}" for name in names}
    for path in ("/ping", "/capabilities", "/nowhere"):
        talkative.client.get(path, headers=headers)
    talkative.client.post("/command", json={"command": "true"}, headers=headers)
    assert "secret" not in settled(talkative).lower()


def test_a_request_costs_one_line_at_most(talkative: Daemon) -> None:
    before = len(settled(talkative).splitlines())
    for n in range(20):
        talkative.run("echo a; echo b >&2; exit 1")
        talkative.client.get(f"/nowhere/{n}")
        talkative.client.post("/command", content=b"no json")
        talkative.client.get("/ping")
    lines = settled(talkative).splitlines()[before:]
    assert len(lines) == 20 * 4 + 1
    assert all(json.loads(line)["event"] == "request" for line in lines)


def test_a_line_says_what_was_asked_and_how_it_went(talkative: Daemon) -> None:
    talkative.client.delete("/command?id=x", headers={"X-Request-ID": "the-request"})
    settled(talkative)
    line = next(line for line in talkative.log_lines() if line.get("request_id") == "the-request")
    assert (line["method"], line["path"], line["status"]) == ("DELETE", "/command", 404)
    assert line["level"] == "info"
    assert line["ms"] >= 0


def test_health_checks_are_logged_for_debugging_only() -> None:
    with daemon() as running:
        for path in ("/ping", "/readyz", "/ping"):
            running.client.get(path)
        log = settled(running)
    assert "/ping" not in log
    assert "/readyz" not in log


def test_a_million_lines_of_output_add_next_to_nothing(talkative: Daemon) -> None:
    before = len(settled(talkative))
    assert len(text(talkative.run("seq 1 1000000"))) == 6_888_896
    assert len(settled(talkative)) - before < 5_000


def test_clients_that_leave_cost_one_line_each_at_most(talkative: Daemon) -> None:
    before = len(settled(talkative).splitlines())
    for _ in range(20):
        with connection(talkative.port) as conn:
            conn.send(command("sleep 0.3; echo late"))
            conn.head()
    wait_until(lambda: talkative.usage()["open"] == 0, what="end of the commands")
    lines = settled(talkative).splitlines()[before:]
    posts = [line for line in map(json.loads, lines) if line.get("method") == "POST"]
    assert len(posts) == 20
    assert not [line for line in map(json.loads, lines) if line["level"] in ("warning", "error")]


def test_what_is_no_http_cannot_write_into_the_log(talkative: Daemon) -> None:
    with connection(talkative.port) as conn:
        conn.send(b"secret garbage\r\n\r\n")
        conn.answer()
    with connection(talkative.port) as conn:
        conn.send(request("GET", "/a%0A%7B%22level%22:%22forged%22%7D" + "x" * 5_000))
        assert conn.answer().status == 404
    log = settled(talkative)
    assert "secret" not in log
    for line in log.splitlines():
        record = json.loads(line)
        assert record["level"] != "forged"
        assert len(line) < 2_000


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_the_log_goes_to_the_file_that_was_named(tmp_path: Path, how: str) -> None:
    file = tmp_path / "execd.log"
    flags = ("--log-file", str(file)) if how == "flag" else ()
    with daemon(*flags, env={"EXECD_LOG_FILE": None if flags else str(file)}) as running:
        running.client.get("/nowhere")
        wait_until(lambda: "/nowhere" in file.read_text(), what="the log line")
        assert running.log_text() == ""  # nothing on stderr
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_log_file_that_cannot_be_written_is_a_warning_on_stderr() -> None:
    with daemon("--log-file", "/nowhere/execd.log") as running:
        assert text(running.run("echo still here")) == "still here\n"
        settled(running)
        warning = next(line for line in running.log_lines() if line["level"] == "warning")
        assert (warning["event"], warning["path"]) == ("log_file_unusable", "/nowhere/execd.log")


def test_a_log_that_nobody_reads_does_not_stop_the_daemon() -> None:
    with daemon("--log-file", "/dev/full") as running:
        for _ in range(50):
            assert running.client.get("/capabilities").status_code == 200


def test_two_files_are_all_that_a_log_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES", 10_000)
    file = tmp_path / "log"
    log = logs.Log()
    log.open(str(file), logs.DEBUG)
    for n in range(1_000):
        log.write(logs.INFO, "line", n=n)
        if n % 100 == 99:
            wait_until(partial(logged, tmp_path, f'"n": {n}}}'), what="the line")
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert json.loads(file.read_text().splitlines()[-1])["n"] == 999


def logged(directory: Path, words: str) -> bool:
    """True if they are in a file there; the newest one may be missing just now."""
    with contextlib.suppress(FileNotFoundError):
        return words in (directory / "log").read_text()
    return False


def test_one_value_cannot_make_a_line_endless(tmp_path: Path) -> None:
    sink = logs.Log()
    sink.open(str(tmp_path / "log"), logs.DEBUG)
    try:
        raise ValueError("x" * 100_000)
    except ValueError as error:
        sink.exception("failed", error)
    sink.close()
    assert len((tmp_path / "log").read_text()) < 5 * logs.TEXT_LIMIT
