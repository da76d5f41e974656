"""Background commands: the same executions, with nobody listening."""

from __future__ import annotations

import os
import threading

import httpx

from tests.support.following import command_id, connection, parallel, read_until
from tests.support.live import Daemon, alive, daemon, wait_until


def test_a_background_command_is_known_as_soon_as_its_id_is(live: Daemon) -> None:
    def run(_: int) -> None:
        status = live.status(live.background("true"))
        assert status["background"] is True
        assert live.wait_ended(status["id"])["exit_code"] == 0

    parallel(run, range(200), 8)


def test_a_background_start_that_fails_is_one_json_error_and_no_record(live: Daemon) -> None:
    before = live.usage()["records"]
    for body in ({"argv": ["/no/such"]}, {"command": "true", "cwd": "/nope"}):
        answer = live.client.post("/command", json={**body, "background": True})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        assert answer.json()["executed"] == "not_executed"
    assert live.usage()["records"] == before


def test_its_life_needs_no_request(live: Daemon) -> None:
    with httpx.Client(base_url=live.url, trust_env=False) as client:
        answer = client.post(
            "/command",
            json={"command": "for i in $(seq 300); do echo $i; sleep 0.02; done", "background": True},
            headers={"Accept": "application/x-ndjson"},
        )
        command = answer.headers["x-execd-command-id"]
    wait_until(lambda: live.logs(command).count(b"\n") >= 20, 10, "output without a client")
    assert live.status(command)["running"] is True
    assert live.client.delete("/command", params={"id": command}).status_code == 200
    assert live.status(command)["running"] is False
    kept = live.logs(command)
    assert kept == b"".join(b"%d\n" % n for n in range(1, kept.count(b"\n") + 1))


def test_a_flood_is_bounded_and_the_daemon_stays_well() -> None:
    with daemon("--output-disk", "8MiB") as own:
        command = own.background("yes")
        wait_until(lambda: own.status(command)["output"]["stdout_dropped"] > 100_000_000, 30, "a flood")
        assert own.run("echo hi")[1]["text"] == "hi\n"
        status = own.status(command)
        assert status["running"] is True
        kept = status["output"]["stdout_bytes"] - status["output"]["stdout_dropped"]
        assert kept <= 8 * 1024 * 1024 + 2 * 1024 * 1024
        assert (own.state / f"{command}.out").stat().st_size <= 8 * 1024 * 1024
        own.client.delete("/command", params={"id": command})


def test_a_leader_that_has_exited_is_told_from_the_children_that_run_on(live: Daemon) -> None:
    command = live.background("sleep 300 & echo $!; exit 0")
    status = live.wait_ended(command)
    child = int(live.logs(command))
    try:
        assert (status["exit_code"], status["running"]) == (0, False)
        assert alive(child)
        assert live.client.delete("/command", params={"id": command}).status_code == 200
        assert alive(child)
    finally:
        os.kill(child, 9)


def test_cutting_every_connection_is_not_taken_for_an_exit(live: Daemon) -> None:
    with connection(live, command="sleep 0.7; exit 6") as sock:
        command = command_id(read_until(sock, b"\r\n\r\n"))
    assert live.status(command)["running"] is True
    assert live.wait_ended(command)["exit_code"] == 6


def test_stdout_and_stderr_share_one_log_in_order(live: Daemon) -> None:
    command = live.background("for i in 1 2 3; do echo o$i; sleep 0.1; echo e$i >&2; sleep 0.1; done")
    live.wait_ended(command)
    assert live.logs(command) == b"o1\ne1\no2\ne2\no3\ne3\n"
    assert live.status(command)["output"]["stderr_bytes"] == 9


def test_pings_are_answered_while_commands_use_the_whole_machine(live: Daemon) -> None:
    command = live.background("for i in $(seq 16); do yes >/dev/null & done; wait")
    try:
        slow = threading.Event()
        for _ in range(30):
            if live.client.get("/ping").elapsed.total_seconds() > 1:
                slow.set()
        assert not slow.is_set()
    finally:
        live.client.delete("/command", params={"id": command})
