"""Limits that count: executions, requests, records."""

from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.edge.raw import command, connection, events
from tests.support.live import Daemon, alive, daemon, text, wait_until


@pytest.mark.parametrize("background", [False, True])
def test_one_execution_more_than_the_limit_is_refused_until_one_ends(background: bool) -> None:
    with daemon("--max-executions", "3") as running:
        ids = [running.background("sleep 60") for _ in range(2)]  # one below the limit
        assert text(running.run("echo third")) == "third\n"
        ids.append(running.background("sleep 60"))
        assert running.usage()["running"] == 3
        for _ in range(3):
            body = {"command": "echo fourth", "background": background}
            answer = running.client.post("/command", json=body)
            assert answer.status_code == 429
            assert int(answer.headers["Retry-After"]) >= 1
            error = answer.json()
            assert (error["code"], error["executed"], error["retryable"]) == (
                "TOO_MANY_EXECUTIONS",
                "not_executed",
                True,
            )
            assert (error["details"]["running"], error["details"]["limit"]) == (3, 3)
        # what is not a new execution goes on
        assert running.client.get("/ping").status_code == 200
        assert running.client.get("/readyz").status_code == 200
        assert running.status(ids[0])["running"] is True
        assert running.client.delete("/command", params={"id": ids[0]}).status_code == 200
        running.wait_ended(ids[0])
        assert text(running.run("echo fourth")) == "fourth\n"


def test_a_burst_never_runs_more_than_the_limit_and_loses_no_place() -> None:
    with daemon("--max-executions", "5") as running:

        def one(_: int) -> int:
            return running.client.post("/command", json={"command": "sleep 0.2"}).status_code

        with ThreadPoolExecutor(25) as pool:
            statuses = list(pool.map(one, range(25)))
        assert set(statuses) <= {200, 429}
        assert statuses.count(200) >= 5
        assert running.usage()["running"] == 0
        ids = [running.background("sleep 60") for _ in range(5)]  # every place is free again
        assert len(set(ids)) == 5


def test_starts_that_fail_take_no_place() -> None:
    with daemon("--max-executions", "1") as running:
        for _ in range(5):
            assert running.client.post("/command", json={"argv": ["/no/such"]}).status_code == 400
            assert running.client.post("/command", json={"command": "x", "cwd": "/no"}).status_code == 400
        assert text(running.run("echo hi")) == "hi\n"


def test_processes_left_behind_are_bounded_too() -> None:
    with daemon("--max-executions", "1") as running:
        left = [int(text(running.run("sleep 60 & echo $!"))) for _ in range(4)]
        try:
            assert all(alive(pid) for pid in left)
            answer = running.client.post("/command", json={"command": "true"})
            assert answer.status_code == 429
            assert answer.json()["details"]["lingering"] == 4
            os.kill(left[0], signal.SIGKILL)
            wait_until(lambda: running.usage()["open"] == 3, what="end of one that was left")
            assert text(running.run("echo hi")) == "hi\n"
        finally:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_one_request_more_than_the_limit_is_refused_and_health_checks_are_not() -> None:
    with daemon("--max-requests", "8") as running, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(connection(running.port)) for _ in range(8)]
        for stream in streams[:7]:
            stream.send(command("sleep 60"))
            assert stream.head()[0] == 200
        assert running.client.get("/capabilities").status_code == 200  # the eighth
        streams[7].send(command("sleep 60"))
        assert streams[7].head()[0] == 200
        answer = running.client.get("/capabilities")
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.json()["code"] == "TOO_MANY_REQUESTS"
        assert answer.json()["executed"] == "not_executed"
        assert running.client.get("/ping").status_code == 200
        assert running.client.get("/readyz").status_code == 200
        streams[0].close()
        wait_until(lambda: running.client.get("/capabilities").status_code == 200, what="a free place")


def test_more_records_than_the_limit_drop_the_one_that_ended_first() -> None:
    with daemon("--max-records", "2") as running:
        still = running.background("sleep 60")  # started first, but it has not ended
        first, second, third = (finished(running, str(n)) for n in range(3))
        gone = running.client.get(f"/command/status/{first}")
        assert gone.status_code == 404
        assert gone.json()["code"] == "COMMAND_NOT_FOUND"
        assert running.client.get(f"/command/{first}/logs").status_code == 404
        assert running.client.delete("/command", params={"id": first}).status_code == 404
        assert running.logs(second) == b"1\n"
        assert running.logs(third) == b"2\n"
        assert running.status(still)["running"] is True
        assert running.usage()["records"] == 3


def finished(running: Daemon, word: str) -> str:
    command_id = running.background(f"echo {word}")
    running.wait_ended(command_id)
    return command_id


def test_one_record_is_enough_to_run_commands() -> None:
    with daemon("--max-records", "1") as running:
        for n in range(20):
            assert text(running.run(f"echo {n}")) == f"{n}\n"
        assert running.usage()["records"] == 1


def test_a_record_goes_when_its_time_is_over_and_takes_its_output_along() -> None:
    with daemon("--retention", "1s", "--output-memory", "128KiB") as running:
        command_id = running.background("head -c 1000000 /dev/zero")
        running.wait_ended(command_id)
        file = running.state / f"{command_id}.out"
        wait_until(file.exists, what="output on disk")
        assert running.usage()["output_disk_bytes"] > 0
        wait_until(
            lambda: running.client.get(f"/command/status/{command_id}").status_code == 404, what="expiry"
        )
        wait_until(lambda: not file.exists(), what="removal of the file")
        assert running.usage()["output_disk_bytes"] == 0
        assert running.usage()["records"] == 0


def test_a_record_without_retention_goes_at_once_but_a_stream_is_whole() -> None:
    with daemon("--retention", "0") as running, connection(running.port) as conn:
        command_id = running.background("true")
        wait_until(
            lambda: running.client.get(f"/command/status/{command_id}").status_code == 404, what="expiry"
        )
        conn.send(command("seq 1 50000"))
        assert text(events(conn.answer())) == "".join(f"{n}\n" for n in range(1, 50_001))
