"""What only somebody who tried to break it thought of."""

from __future__ import annotations

import signal
import time

import pytest

from tests.support.live import Daemon, alive, daemon, text, wait_until

CLEARED = [
    pytest.param("unset EXECD_EXECUTION_ID; (setsid sleep 604 & echo $!) ; sleep 605", id="mark-removed"),
    pytest.param("env -i setsid sh -c 'sleep 600 & echo $!'; sleep 601", id="environment-cleared"),
    pytest.param("(exec -c setsid sh -c 'echo $$; exec sleep 608') & sleep 609", id="cleared-by-exec"),
]


@pytest.mark.parametrize("command", CLEARED)
def test_who_left_session_and_environment_is_found_by_the_pipe_it_holds(live: Daemon, command: str) -> None:
    command_id = live.background(command)
    wait_until(lambda: live.logs(command_id).strip().isdigit(), what="the pid of the one that left")
    escaped = int(live.logs(command_id))
    assert alive(escaped)
    assert live.client.delete("/command", params={"id": command_id}).status_code == 200
    wait_until(lambda: not alive(escaped), what="its end")


@pytest.mark.parametrize("command", ["--version", "-x", "+x", "-- echo hi", "-l"])
def test_shell_text_that_looks_like_an_option_is_shell_text(live: Daemon, command: str) -> None:
    assert live.run(command)[-1]["exit_code"] == 127
    assert live.run(command + " " * 140_000)[-1]["exit_code"] == 127


def test_what_a_shell_warns_of_at_start_does_not_make_the_daemon_unready() -> None:
    with daemon(env={"LC_ALL": "en_XX.UTF-8"}) as own:
        assert own.client.get("/readyz").status_code == 200


def test_in_a_locale_that_is_not_utf_8_text_stays_what_it_is() -> None:
    with daemon(env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}) as own:
        assert text(own.run("printf é | od -An -tx1")).split() == ["c3", "a9"]
        assert text(own.run(argv=["printf", "é"])) == "é"


def test_a_stop_that_has_less_time_than_the_grace_keeps_it_and_ends_its_streams() -> None:
    with daemon("--graceful-shutdown-timeout", "1s", "--kill-grace", "60s") as own:
        with own.client.stream(
            "POST", "/command", json={"command": "trap '' TERM; echo up; while :; do sleep .1; done"}
        ) as answer:
            lines = (line for line in answer.iter_lines() if '"ping"' not in line and line)
            assert '"init"' in next(lines)
            assert '"up\\n"' in next(lines)
            began = time.monotonic()
            own.process.send_signal(signal.SIGTERM)
            last = list(lines)[-1]
        assert '"kind":"interrupted"' in last
        assert '"reason":"shutdown"' in last
        own.process.wait(20)
        assert time.monotonic() - began < 20


def test_an_env_file_that_cannot_be_used_is_told_once_and_no_hindrance() -> None:
    with daemon("--envs", "/tmp") as own:
        for _ in range(3):
            assert text(own.run("echo $EXECD_ENVS")) == "/tmp\n"
        wait_until(lambda: "env_file_unusable" in own.log_text(), what="a warning")
        assert [line["event"] for line in own.log_lines()].count("env_file_unusable") == 1


def test_a_hang_up_is_a_stop() -> None:
    with daemon() as own:
        command_id = own.background("echo $$; exec sleep 520")
        wait_until(lambda: own.logs(command_id).strip().isdigit(), what="its pid")
        pid = int(own.logs(command_id))
        assert own.stop(signal.SIGHUP) == 0
        assert not alive(pid)


def test_an_end_by_force_tells_when_the_process_ended_and_what_with(live: Daemon) -> None:
    command = "setsid sh -c 'trap \"\" TERM; sleep 410; sleep 411' & trap 'exit 0' TERM; echo up; wait"
    events = live.run(command, timeout=300)
    assert events[-1]["execution_time"] < 2500  # not the three seconds of grace that the other one took
    assert events[-1]["outcome"] == {"kind": "timed_out", "reason": "timeout", "code": 0}
    assert events[-1]["error"]["evalue"] == "124"
