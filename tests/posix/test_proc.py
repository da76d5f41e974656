"""Reading /proc, and finding everything that an execution has started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from execd.posix import proc, process
from execd.posix.process import MARK, Process
from tests.posix.children import request, started
from tests.support.live import alive, wait_until

ID = "0123456789abcdef"


@contextmanager
def tree(script: str, count: int = 1, mark: str = ID) -> Iterator[tuple[Process, set[int]]]:
    """A shell that starts `count` things, each of which prints its pid; all are killed at the end."""
    environment: dict[str, Any] = {MARK: mark}
    with started(request(f"{script}\nexec sleep 60", **environment)) as leader:
        os.set_blocking(leader.stdout, True)
        printed = b""
        while printed.count(b"\n") < count:
            data = os.read(leader.stdout, 1000)
            assert data, printed
            printed += data
        pids = {int(word) for word in printed.split()}
        try:
            yield leader, pids
        finally:
            for pid in pids:
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)


def found(leader: int, mark: str = ID) -> set[int]:
    members = process.members(leader, mark)
    for _, pidfd in members:
        os.close(pidfd)
    return {pid for pid, _ in members}


def test_we_are_what_proc_says() -> None:
    me = proc.read_stat(os.getpid())
    assert me is not None
    assert (me.parent, me.group, me.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert not me.ended
    assert me in proc.processes()
    assert proc.read_stat(2**22 + 1) is None


def test_a_name_with_brackets_and_spaces_confuses_nobody(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with started(request(None, str(program), "60")) as child:
        wait_until(lambda: b"Z 1" in Path(f"/proc/{child.pid}/stat").read_bytes(), what="exec")
        stat = proc.read_stat(child.pid)
        assert stat is not None
        assert (stat.parent, stat.group, stat.session) == (os.getpid(), child.pid, child.pid)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(child.ended)
        stat = proc.read_stat(child.pid)
        assert stat is not None
        assert stat.ended


def test_an_environment_entry_has_to_match_as_a_whole() -> None:
    with started(request(None, "sleep", "60", A="1", LAST="2")) as child:
        wait_until(lambda: b"sleep" in Path(f"/proc/{child.pid}/cmdline").read_bytes(), what="exec")
        assert proc.has_environment(child.pid, b"A=1")
        assert not proc.has_environment(child.pid, b"A=")
        assert not proc.has_environment(child.pid, b"=1")
    assert not proc.has_environment(child.pid, b"A=1")


def test_the_mark_is_found_behind_the_largest_environment_there_can_be() -> None:
    large: dict[str, Any] = {f"LARGE{number}": "x" * 120_000 for number in range(10)} | {"LAST": "1"}
    with started(request(None, "sleep", "60", **large)) as child:
        wait_until(lambda: b"sleep" in Path(f"/proc/{child.pid}/cmdline").read_bytes(), what="exec")
        assert proc.has_environment(child.pid, b"LAST=1")


@pytest.mark.parametrize(
    ("script", "count"),
    [
        pytest.param("sleep 60 & echo $!", 1, id="same-group"),
        pytest.param("set -m; sleep 60 & echo $!", 1, id="own-group"),
        pytest.param("setsid sh -c 'echo $$; exec sleep 60' &", 1, id="own-session"),
        pytest.param("(setsid sh -c 'echo $$; sleep 60 & echo $!; wait' &)", 2, id="orphans-in-a-session"),
        pytest.param(
            f"env -u {MARK} setsid sh -c 'echo $$; sleep 60 & echo $!; wait' &", 2, id="without-the-mark"
        ),
        pytest.param("for i in 1 2 3 4 5 6 7 8; do sleep 60 & echo $!; done", 8, id="many"),
    ],
)
def test_everything_that_was_started_is_found(script: str, count: int) -> None:
    with tree(script, count) as (leader, pids):
        assert len(pids) == count
        members = found(leader.pid)
        assert pids <= members
        assert leader.pid not in members


def test_nothing_else_is_found() -> None:
    with tree("setsid sh -c 'echo $$; exec sleep 60' &", mark="other") as (_, others):
        with tree("sleep 60 & echo $!") as (leader, pids):
            members = found(leader.pid)
            assert pids <= members
            assert not members & (others | {os.getpid(), os.getppid(), 1})


def test_what_has_ended_is_not_found() -> None:
    with tree("sleep 60 & echo $!") as (leader, pids):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not found(leader.pid) & pids)


def test_a_signal_goes_through_the_pidfd_and_only_to_a_living_process() -> None:
    with tree("sleep 60 & echo $!") as (leader, pids):
        (pid, pidfd), *_ = [member for member in process.members(leader.pid, ID) if member[0] in pids]
        assert process.in_group(pid, leader.pid)
        assert process.send(pidfd, signal.SIGKILL)
        wait_until(lambda: not alive(pid))
        os.close(pidfd)
    with started(request("true")) as ended:
        wait_until(ended.ended)
        ended.reap()
        assert not process.send(ended.pidfd, signal.SIGKILL)
        assert not process.in_group(ended.pid, ended.pid)


def test_bytes_that_wait_in_a_pipe_are_counted() -> None:
    read, write = os.pipe()
    assert process.waiting(read) == 0
    os.write(write, b"x" * 5000)
    assert process.waiting(read) == 5000
    os.close(write)
    os.read(read, 4990)
    assert process.waiting(read) == 10
    os.close(read)
