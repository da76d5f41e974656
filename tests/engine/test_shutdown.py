"""Told to stop: streams get their end, commands are ended, nothing new begins, nobody waits for ever."""

from __future__ import annotations

import os
import signal
import time

import httpx
import pytest

from tests.support.following import command_id, connection, first, following, printed_pids, read_until
from tests.support.live import Daemon, alive, daemon, wait_until
from tests.support.programs import ESCAPES_AND_IGNORES_TERM, IGNORES_TERM


def _stopping(own: Daemon) -> None:
    wait_until(lambda: '"stopping"' in own.log_text(), 10, "the daemon to have heard")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_gets_its_output_and_its_terminal_event(number: signal.Signals) -> None:
    command = "trap 'echo cleaning up; exit 5' TERM; echo $$; sleep 300 & wait"
    with daemon() as own:
        with following(own, command) as events:
            (pid,) = printed_pids(events, 1)
            own.process.send_signal(number)
            assert first(events, "stdout")["text"] == "cleaning up\n"
            last = first(events, "error")
            assert last["outcome"] == {"kind": "interrupted", "code": 5, "reason": "shutdown"}
            assert next(events, None) is None
        assert own.process.wait(10) == 0
        assert not alive(pid)


def test_background_commands_are_ended_too() -> None:
    with daemon() as own:
        command = own.background("echo $$; sleep 300")
        wait_until(lambda: own.logs(command), 10, "its pid")
        pid = int(own.logs(command))
        assert own.stop() == 0
        assert not alive(pid)


def test_nothing_new_begins_while_the_daemon_stops() -> None:
    with daemon("--kill-grace", "1500ms") as own, httpx.Client(base_url=own.url, trust_env=False) as client:
        assert client.get("/ping").status_code == 200
        command = own.background(IGNORES_TERM)
        wait_until(lambda: own.logs(command), 10, "its pid")
        own.process.send_signal(signal.SIGTERM)
        _stopping(own)
        answer = client.post("/command", json={"command": "echo no"})
        assert (answer.status_code, answer.json()["code"]) == (503, "SHUTTING_DOWN")
        assert answer.json()["executed"] == "not_executed"
        assert client.get("/readyz").status_code == 503
        assert own.process.wait(15) == 0


@pytest.mark.parametrize("program", [IGNORES_TERM, ESCAPES_AND_IGNORES_TERM])
def test_a_second_signal_stops_at_once_and_takes_everything_with_it(program: str) -> None:
    with daemon("--kill-grace", "60s", "--graceful-shutdown-timeout", "60s") as own:
        with following(own, program) as events:
            pids = printed_pids(events, 1 if program == IGNORES_TERM else 2)
            own.process.send_signal(signal.SIGTERM)
            _stopping(own)
            started = time.monotonic()
            own.process.send_signal(signal.SIGTERM)
            assert own.process.wait(20) == 0
            assert time.monotonic() - started < 10
        wait_until(lambda: not any(map(alive, pids)), 2, "the end of what was killed")


def test_a_stop_is_over_when_its_time_is_up() -> None:
    with daemon("--kill-grace", "60s", "--graceful-shutdown-timeout", "500ms") as own:
        command = own.background(IGNORES_TERM)
        wait_until(lambda: own.logs(command), 10, "its pid")
        pid = int(own.logs(command))
        started = time.monotonic()
        assert own.stop(seconds=30) == 0
        assert time.monotonic() - started < 15
        wait_until(lambda: not alive(pid), 2, "the end of what was killed")


def test_a_client_that_does_not_read_does_not_hold_up_a_stop() -> None:
    with daemon() as own, connection(own, command="echo $$; yes") as sock:
        command = command_id(read_until(sock, b"\r\n\r\n"))
        wait_until(
            lambda: own.status(command)["output"]["stdout_bytes"] > 10_000_000, 20, "a full connection"
        )
        started = time.monotonic()
        assert own.stop(seconds=30) == 0
        assert time.monotonic() - started < 12


def test_what_ended_commands_left_behind_lives_on() -> None:
    with daemon() as own:
        command = own.run("sleep 300 >/dev/null 2>&1 & echo $!")
        pid = int(command[1]["text"])
        try:
            assert own.stop() == 0
            assert alive(pid)
        finally:
            os.kill(pid, 9)


def test_a_stop_with_nothing_to_do_is_quick() -> None:
    with daemon() as own:
        own.run("true")
        started = time.monotonic()
        assert own.stop() == 0
        assert time.monotonic() - started < 3
        assert '"stopped"' in own.log_text()
