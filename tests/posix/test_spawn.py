"""Spawning: shell text or arguments, of any length, and every way it can fail."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from execd.posix import spawn
from execd.posix.spawn import SpawnError
from tests.posix.children import finished, read_all, request, started
from tests.support.apart import apart


def test_shell_text_runs_in_a_shell_and_arguments_run_without_one() -> None:
    assert finished(request("echo $0; echo e >&2; exit 3"))[:2] == (b"bash\n", b"e\n")
    assert finished(request(None, "printf", "%s|", "a b", "$HOME", ""))[0] == b"a b|$HOME||"


def test_stdin_is_empty() -> None:
    assert finished(request("cat; read x; echo $?"))[0] == b"1\n"
    assert finished(request(None, "cat"))[0] == b""


@pytest.mark.parametrize("size", [spawn.MAX_ARGUMENT, spawn.MAX_ARGUMENT + 1, 3_000_000])
def test_a_command_of_any_length_runs(size: int) -> None:
    start, end = "x=$(printf 'a\\n\\n'); cat; read y; echo $?; echo $x; #", "\nexit 7"
    command = start + "." * (size - len(start) - len(end)) + end
    assert len(command) == size
    out, err, status = finished(request(command))
    assert (out, err, status.code) == (b"1\na\n", b"", 7)


@pytest.mark.parametrize("path", ["/nonexistent", "", "relative"])
def test_neither_the_shell_nor_a_long_command_depends_on_the_path(path: str) -> None:
    assert finished(request("exit 3", PATH=path))[2].code == 3
    assert finished(request("exit 3 #" + "." * 200_000, PATH=path))[2].code == 3


def test_the_shell_is_bash_if_there_is_one_else_sh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_FALLBACK_PATH", str(tmp_path))
    spawn._shells.clear()
    try:
        with pytest.raises(SpawnError, match="neither bash nor sh") as refused:
            spawn.find_shell(str(tmp_path))
        assert (refused.value.stage, refused.value.errno) == ("lookup", errno.ENOENT)
        (tmp_path / "sh").symlink_to("/bin/sh")
        assert spawn.find_shell("") == str(tmp_path / "sh")
        (tmp_path / "sh").unlink()
        (tmp_path / "bash").symlink_to("/bin/sh")
        assert spawn.find_shell("") == str(tmp_path / "bash")
    finally:
        spawn._shells.clear()


def test_a_program_is_found_as_execvp_finds_it(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho $0\n")
    (tmp_path / "tool").chmod(0o755)
    tool = str(tmp_path / "tool")
    assert finished(request(None, "tool", PATH=str(tmp_path)))[0] == f"{tool}\n".encode()
    assert finished(request(None, "./tool", cwd=str(tmp_path)))[0] == f"{tmp_path}/./tool\n".encode()
    assert finished(request(None, tool))[0] == f"{tool}\n".encode()


@pytest.mark.parametrize(
    ("name", "number", "stage"),
    [
        pytest.param("no-such-program", errno.ENOENT, "lookup", id="not-in-path"),
        pytest.param("/no/such/program", errno.ENOENT, "lookup", id="no-such-file"),
        pytest.param("/etc", errno.EACCES, "lookup", id="a-directory"),
        pytest.param("/etc/passwd", errno.EACCES, "lookup", id="not-executable"),
        pytest.param("./garbage", errno.ENOEXEC, "exec", id="no-program-format"),
        pytest.param("./lost", errno.ENOENT, "exec", id="its-interpreter-is-missing"),
    ],
)
def test_a_program_that_cannot_run_says_why(tmp_path: Path, name: str, number: int, stage: str) -> None:
    for file, content in (("garbage", b"\0\1\2"), ("lost", b"#!/no/interpreter\n")):
        (tmp_path / file).write_bytes(content)
        (tmp_path / file).chmod(0o755)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SpawnError) as refused:
        spawn.spawn(request(None, name, cwd=str(tmp_path)))
    assert (refused.value.errno, refused.value.stage) == (number, stage)
    assert name.strip("./") in str(refused.value)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_directory_that_is_gone_and_arguments_too_long_say_so(tmp_path: Path) -> None:
    with pytest.raises(SpawnError) as refused:
        spawn.spawn(request("true", cwd=str(tmp_path / "gone")))
    assert (refused.value.errno, refused.value.stage) == (errno.ENOENT, "chdir")
    with pytest.raises(SpawnError) as refused:
        spawn.spawn(request(None, "true", "x" * 200_000))
    assert (refused.value.errno, refused.value.stage) == (errno.E2BIG, "exec")


def test_the_pipes_are_read_without_blocking_and_belong_to_nobody_else() -> None:
    with started(request("sleep 60")) as process:
        for fd in (process.stdout, process.stderr):
            assert stat.S_ISFIFO(os.fstat(fd).st_mode)
            assert not os.get_inheritable(fd)
            with pytest.raises(BlockingIOError):
                os.read(fd, 1)
        assert not process.ended()
        assert process.reap() is None


def test_the_exit_status_is_the_true_one_with_its_usage() -> None:
    for command, code, number in (("exit 0", 0, 0), ("exit 255", 255, 0), ("kill -KILL $$", 0, 9)):
        status = finished(request(command))[2]
        assert (status.code, status.signal) == (code, number)
    status = finished(request("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"))[2]
    assert status.usage.user_seconds > 0
    assert status.usage.max_rss_bytes > 100_000


def limits_and_badness() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spawn.raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    with open("/proc/self/oom_score_adj") as file:
        ours = int(file.read())
    with tempfile.TemporaryDirectory() as directory:
        gate = os.path.join(directory, "gate")
        os.mkfifo(gate)
        command = f"read x < {gate}; ulimit -Sn; cat /proc/self/oom_score_adj"
        with started(request(command)) as process:  # both are set a moment after its start
            with open(gate, "w") as file:
                file.write("\n")
            found = [int(word) for word in read_all(process.stdout).split()]
    assert found == [soft, min(1000, ours + 200)]


def test_a_child_gets_the_descriptor_limit_we_had_and_is_preferred_by_the_oom_killer() -> None:
    apart(limits_and_badness, "prlimit", "--nofile=200:4000")


def no_descriptors_left() -> None:
    finished(request("true"))
    held: list[int] = []
    succeeded: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    for freed in range(8):
        before = len(os.listdir("/proc/self/fd")) if freed else 0
        with contextlib.suppress(SpawnError):
            finished(request("true"))
            succeeded.append(freed)
        if freed:
            assert len(os.listdir("/proc/self/fd")) == before
        os.close(held.pop())
    assert succeeded == list(range(succeeded[0], 8))
    finished(request("true"))
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise AssertionError("a child is left")


def test_without_descriptors_it_fails_and_leaves_nothing() -> None:
    apart(no_descriptors_left, "prlimit", "--nofile=64:64")


def test_the_group_is_signalled_as_a_whole() -> None:
    with started(request("sleep 60 & sleep 60 & echo ready; wait")) as process:
        os.set_blocking(process.stdout, True)
        assert os.read(process.stdout, 6) == b"ready\n"
        process.signal_group(signal.SIGTERM)
        assert os.read(process.stdout, 1) == b""  # all three have closed it
        os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED | os.WNOWAIT)
        assert process.ended()
        status = process.reap()
        assert status is not None
        assert status.signal == signal.SIGTERM
