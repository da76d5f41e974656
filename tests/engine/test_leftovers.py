"""The state directory: what an earlier run left, what others keep there, and when it cannot be used."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.following import command_id, connection, read_until
from tests.support.live import Daemon, daemon, text, wait_until
from tests.support.machines import read_only

KEEPS_OUTPUT = "seq 1 100000; echo END"


def _kept(own: Daemon) -> str:
    command = own.background(KEEPS_OUTPUT)
    own.wait_ended(command)
    wait_until(lambda: list(own.state.glob("*.out")), 10, "kept output")
    return command


def _killed_at_work(state: Path) -> tuple[int, list[str]]:
    """Kill a daemon that runs a command and keeps the output of another: the one's pid, both ids."""
    with daemon(state=state) as own:
        assert list(state.glob("*.out")) == []
        with connection(own, command="echo $$; seq 1 100000; sleep 300") as sock:
            running = command_id(read_until(sock, b"\r\n\r\n"))
            wait_until(lambda: own.logs(running).endswith(b"100000\n"), 10, "all output")
            pid = int(own.logs(running).split(b"\n")[0])
            ended = _kept(own)
            own.process.kill()
            own.process.wait()
            assert b'"outcome"' not in read_until(sock, b"\n0\r\n\r\n")  # cut off: nothing is made up
    return pid, [running, ended]


def test_a_killed_daemons_output_is_gone_after_the_next_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    killed = [_killed_at_work(state) for _ in range(4)]
    for pid, _ in killed:
        os.kill(pid, 9)  # nobody was left to end it
    with daemon(state=state) as own:
        for _, commands in killed:
            for command in commands:
                assert own.client.get(f"/command/{command}/logs").status_code == 404
        assert [file.name for file in state.iterdir()] == ["lock"]
        assert text(own.run("echo hi")) == "hi\n"


def test_a_clean_stop_leaves_no_output(tmp_path: Path) -> None:
    with daemon(state=tmp_path / "state") as own:
        _kept(own)
        own.background("seq 1 100000; sleep 300")
        assert own.stop() == 0
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["lock"]


def test_what_is_not_the_daemons_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("precious")
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "notes.txt").write_text("precious")
    (state / "directory.out").mkdir()
    (state / "link.out").symlink_to(theirs)
    with daemon(state=state) as own:
        _kept(own)
        own.stop()
    assert theirs.read_text() == "precious"
    assert (state / "notes.txt").read_text() == "precious"
    assert (state / "directory.out").is_dir()


def test_a_directory_that_another_daemon_uses_is_left_to_it(tmp_path: Path) -> None:
    with daemon(state=tmp_path / "state") as one:
        command = _kept(one)
        with daemon(state=tmp_path / "state") as other:
            assert text(other.run("echo hi")) == "hi\n"
            assert (
                "in use"
                in other.client.get("/readyz").json()["details"]["checks"]["state_directory"]["detail"]
            )
            other.background(KEEPS_OUTPUT)
        assert one.logs(command).endswith(b"END\n")
        assert one.client.get("/readyz").status_code == 200


@pytest.mark.parametrize("fault", ["is a file", "has a file above it", "read-only"])
def test_without_a_directory_commands_run_and_readiness_says_why(tmp_path: Path, fault: str) -> None:
    wrapper: tuple[str, ...] = ()
    state = tmp_path / "place" / "state"
    if fault == "read-only":
        wrapper = read_only(tmp_path / "place")
    else:
        file = state if fault == "is a file" else state.parent
        file.parent.mkdir(exist_ok=True)
        file.touch()
    with daemon(state=state, wrapper=wrapper) as own:
        events = own.run("seq 1 60000")
        assert text(events).endswith("60000\n")
        assert own.logs(events[0]["text"]) == text(events).encode()
        answer = own.client.get("/readyz")
        assert answer.status_code == 503
        checks = answer.json()["details"]["checks"]
        assert [name for name, check in checks.items() if not check["ok"]] in (
            ["state_directory"],
            ["state_directory", "disk"],
        )
        assert str(state) in checks["state_directory"]["detail"]


def test_a_directory_that_goes_while_commands_run_takes_no_command_with_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with daemon("--output-memory", "128KiB", state=state) as own:
        before = _kept(own)
        for file in state.iterdir():
            file.unlink()
        state.rmdir()
        events = own.run("seq 1 300000")
        assert text(events).endswith("300000\n")
        assert text(events).count("\n") == 300_000
        status = own.status(events[0]["text"])
        assert status["output"]["fault"]
        assert own.logs(events[0]["text"]).endswith(b"300000\n")
        assert own.client.get(f"/command/{before}/logs").status_code == 200
        assert own.client.get("/readyz").status_code == 200  # it is made again
        assert own.status(own.run("seq 1 300000")[0]["text"])["output"]["fault"] is None


def test_the_daemon_runs_where_there_is_nothing_to_write_to(tmp_path: Path) -> None:
    wrapper = read_only(tmp_path / "place")
    log = tmp_path / "place" / "log"
    with daemon("--log-file", str(log), state=tmp_path / "place" / "state", wrapper=wrapper) as own:
        assert text(own.run("echo hi")) == "hi\n"
        assert "log_file_unusable" in own.log_text()


def test_a_stale_lock_file_of_a_dead_daemon_is_no_hindrance(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with daemon(state=state) as own:
        own.process.send_signal(signal.SIGKILL)
        own.process.wait()
    (state / "lock").write_text(str(os.getpid()))
    with daemon(state=state) as own:
        assert own.client.get("/readyz").status_code == 200
