"""`timeout`: in milliseconds, held by the daemon, after what was printed was delivered."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.support.following import parallel
from tests.support.live import Daemon, daemon, text, wait_until
from tests.support.programs import IGNORES_TERM


def test_a_timeout_ends_the_command_soon(live: Daemon) -> None:
    events = live.run("sleep 300", timeout=200)
    last = events[-1]
    assert last["outcome"] == {"kind": "timed_out", "signal": "SIGTERM", "reason": "timeout"}
    assert last["error"]["evalue"] == "124"
    assert 200 <= last["execution_time"] < 3000
    status = live.status(events[0]["text"])
    assert (status["exit_code"], status["running"]) == (124, False)


def test_what_was_printed_before_it_is_delivered(live: Daemon) -> None:
    events = live.run("printf partial; printf err >&2; sleep 300", timeout=500)
    assert (text(events), text(events, "stderr")) == ("partial", "err")
    assert [e["type"] for e in events][-1] == "error"


def test_what_is_printed_on_the_way_out_is_delivered(live: Daemon) -> None:
    events = live.run("trap 'echo cleaning up; exit 0' TERM; echo in; sleep 300 & wait", timeout=300)
    assert text(events) == "in\ncleaning up\n"
    assert events[-1]["outcome"]["kind"] == "timed_out"
    assert events[-1]["error"]["evalue"] == "124"


def test_whoever_ignores_term_is_killed_after_the_grace() -> None:
    with daemon("--kill-grace", "300ms") as own:
        last = own.run(IGNORES_TERM, timeout=300)[-1]
        assert last["outcome"] == {"kind": "timed_out", "signal": "SIGKILL", "reason": "timeout"}
        assert last["error"]["evalue"] == "124"
        assert 600 <= last["execution_time"] < 5000


@pytest.mark.parametrize("timeout", [0, None])
def test_zero_and_null_are_no_limit(live: Daemon, timeout: int | None) -> None:
    assert live.run("sleep 0.4", timeout=timeout)[-1]["type"] == "execution_complete"


@pytest.mark.parametrize("timeout", [-1, 1.5, "5", True, 10**18])
def test_what_is_no_number_of_milliseconds_is_refused(live: Daemon, timeout: object) -> None:
    answer = live.client.post("/command", json={"command": "true", "timeout": timeout})
    assert (answer.status_code, answer.json()["details"]["field"]) == (400, "timeout")


def test_a_background_command_times_out_too(live: Daemon) -> None:
    command = live.background("echo started; sleep 300", timeout=300)
    status = live.wait_ended(command)
    assert (status["outcome"]["kind"], status["exit_code"]) == ("timed_out", 124)
    assert live.logs(command) == b"started\n"


def test_a_command_that_ends_at_its_timeout_has_one_outcome_of_the_two(live: Daemon) -> None:
    def run(n: int) -> str:
        last = live.run(argv=["sleep", "0.1"], timeout=98 + n % 8)[-1]
        assert last["outcome"]["kind"] in ("exited", "timed_out")
        assert last["exit_code"] == {"exited": 0, "timed_out": 124}[last["outcome"]["kind"]]
        return str(last["outcome"]["kind"])

    assert set(parallel(run, range(100), 10)) <= {"exited", "timed_out"}
    assert live.usage()["running"] == 0


def test_a_command_that_ended_in_time_did_so_even_if_the_daemon_was_stopped_then() -> None:
    with daemon() as own:
        found: list[dict[str, object]] = []
        runner = threading.Thread(target=lambda: found.extend(own.run("sleep 0.5", timeout=1500)))
        runner.start()
        try:
            wait_until(own.children, 10, "a process")
            os.kill(own.pid, signal.SIGSTOP)
            time.sleep(2)  # the point: both the exit and the timeout pass unseen
        finally:
            os.kill(own.pid, signal.SIGCONT)
        runner.join()
        assert found[-1]["outcome"] == {"kind": "exited", "code": 0}
