"""Ending by force ends the whole tree, however it is built; it ends nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.following import (
    command_id,
    connection,
    first,
    following,
    parallel,
    printed_pids,
    read_until,
)
from tests.support.live import Daemon, alive, daemon, wait_until

TREES = pytest.mark.parametrize("name", programs.TREES)


@pytest.fixture(scope="module")
def quick() -> Iterator[Daemon]:
    """A daemon that loses patience soon."""
    with daemon("--kill-grace", "400ms") as own:
        yield own


def _marked(command: str) -> list[int]:
    """Living processes that carry the command's mark."""
    mark = f"EXECD_EXECUTION_ID={command}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0") and alive(int(directory.name)):
            found.append(int(directory.name))
    return found


@TREES
def test_a_tree_is_gone_when_its_interrupt_is_answered(quick: Daemon, name: str) -> None:
    with following(quick, programs.TREES[name]) as events:
        command = first(events, "init")["text"]
        pids = printed_pids(events, programs.PIDS.get(name, 2))
        assert quick.client.delete("/command", params={"id": command}).status_code == 200
        assert [pid for pid in pids if alive(pid)] == []
        assert _marked(command) == []
        last = first(events, "error")
    assert (last["outcome"]["kind"], last["outcome"]["reason"]) == ("interrupted", "request")
    assert quick.status(command)["outcome"] == last["outcome"]


def test_trees_are_gone_when_they_have_timed_out(quick: Daemon) -> None:
    def run(name: str) -> None:
        with following(quick, programs.TREES[name], timeout=1500) as events:
            command = first(events, "init")["text"]
            pids = printed_pids(events, programs.PIDS.get(name, 2))
            assert first(events, "error")["outcome"]["kind"] == "timed_out"
        assert [pid for pid in pids if alive(pid)] == []
        assert _marked(command) == []

    parallel(run, programs.TREES, len(programs.TREES))


def test_trees_are_gone_and_their_streams_say_so_when_the_daemon_was_told_to_stop() -> None:
    with daemon("--kill-grace", "300ms") as own, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(following(own, program)) for program in programs.TREES.values()]
        commands = [first(events, "init")["text"] for events in streams]
        counts = [programs.PIDS.get(name, 2) for name in programs.TREES]
        pids = [pid for events, n in zip(streams, counts, strict=True) for pid in printed_pids(events, n)]
        own.process.send_signal(signal.SIGTERM)
        for events in streams:
            last = first(events, "error")
            assert (last["outcome"]["kind"], last["outcome"]["reason"]) == ("interrupted", "shutdown")
        assert own.process.wait(10) == 0
        assert [pid for pid in pids if alive(pid)] == []
        assert [_marked(command) for command in commands] == [[]] * len(commands)


def test_whoever_left_the_group_is_asked_to_end_before_it_is_killed(live: Daemon) -> None:
    escapee = "setsid bash -c \"trap 'echo cleaned up; exit' TERM; echo ready; sleep 300 & wait\" & wait"
    with following(live, escapee) as events:
        command = first(events, "init")["text"]
        first(events, "stdout")
        live.client.delete("/command", params={"id": command})
        assert first(events, "stdout")["text"] == "cleaned up\n"


def test_the_jobs_of_other_commands_live_on(live: Daemon) -> None:
    job = live.background("echo $$; sleep 300")
    wait_until(lambda: live.logs(job), 10, "its pid")
    pid = int(live.logs(job))
    stranger = live.run(
        "setsid sleep 300 >/dev/null 2>&1 & echo $!"
    )  # left behind by a command that has ended
    escaped = int(stranger[1]["text"])
    try:
        live.run("sleep 300 & setsid sleep 300 & wait", timeout=200)
        other = live.background("sleep 300")
        live.client.delete("/command", params={"id": other})
        assert alive(pid)
        assert alive(escaped)
        assert live.status(job)["running"] is True
    finally:
        os.kill(escaped, 9)
        live.client.delete("/command", params={"id": job})


def test_a_server_that_a_timed_out_command_started_holds_no_port(live: Daemon) -> None:
    program = (
        "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
        "print(s.getsockname()[1], flush=True); time.sleep(300)"
    )
    with following(live, f'python3 -c "{program}" & wait', timeout=1500) as events:
        port = int(first(events, "stdout")["text"])
        first(events, "error")
    listening = Path("/proc/net/tcp").read_text()
    assert f":{port:04X} 00000000:0000 0A" not in listening


def test_a_client_that_leaves_does_not_end_its_command(live: Daemon) -> None:
    with connection(live, command="echo $$; sleep 300 & wait") as sock:
        command = command_id(read_until(sock, b"\r\n\r\n"))
        wait_until(lambda: live.logs(command), 10, "its pid")
    pid = int(live.logs(command))
    assert live.status(command)["running"] is True
    assert alive(pid)
    assert live.client.delete("/command", params={"id": command}).status_code == 200
    assert live.status(command)["outcome"]["reason"] == "request"
    assert not alive(pid)


def test_a_command_that_is_stopped_ends_in_time(quick: Daemon) -> None:
    with following(quick, "echo $$; sleep 300 & wait", timeout=1000) as events:
        (pid,) = printed_pids(events, 1)
        os.kill(pid, signal.SIGSTOP)
        last = first(events, "error")
    assert (last["outcome"]["kind"], last["error"]["evalue"]) == ("timed_out", "124")
    assert not alive(pid)
