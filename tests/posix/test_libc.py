"""posix_spawn: a child that inherits nothing it should not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from execd.posix import libc
from tests.support.apart import apart

SH = b"/bin/sh"


def output_of(argv: list[bytes], env: list[bytes] | None = None, cwd: bytes | None = None) -> bytes:
    """Run a program; what it writes to stdout. Its stderr is ours."""
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = libc.posix_spawn(argv[0], argv, env or [], cwd, (null, write, 2))
    finally:
        os.close(write)
        os.close(null)
    with open(read, "rb") as file:
        found = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return found


def test_arguments_and_environment_arrive_byte_for_byte() -> None:
    arguments = [b"", b"a b", b"\xff\xfe", b"*", "é\n".encode()]
    printed = output_of([b"/usr/bin/env", b"printf", b"%s|", *arguments], [b"PATH=/usr/bin:/bin"])
    assert printed == b"".join(argument + b"|" for argument in arguments)
    assert output_of([b"/usr/bin/env", b"-0"], [b"A=\xff", b"B=", b"A B=c\n"]) == b"A=\xff\0B=\0A B=c\n\0"


def test_it_leads_its_own_session_and_starts_in_its_directory(tmp_path: Path) -> None:
    script = b"echo $$; cut -d' ' -f5,6 /proc/$$/stat; pwd -P"
    pid, ids, directory = output_of([SH, b"-c", script], cwd=os.fsencode(tmp_path)).splitlines()
    assert ids == pid + b" " + pid
    assert directory == os.fsencode(tmp_path.resolve())


def descriptors_and_children() -> list[list[str]]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [os.listdir("/proc/self/fd"), children]


def three_descriptors() -> None:
    with open("/dev/zero", "rb"):
        assert output_of([b"/bin/ls", b"/proc/self/fd"]).split() == [b"0", b"1", b"2", b"3"]  # 3: ls's own


def test_nothing_but_three_descriptors_is_open_in_it() -> None:
    apart(three_descriptors)


def signals_at_default() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    status = output_of([b"/bin/grep", b"-E", b"Sig(Ign|Blk)", b"/proc/self/status"])
    of_glibc = 1 << 31 | 1 << 32  # signals 32 and 33, which it keeps for itself
    assert [int(line.split()[1], 16) & ~of_glibc for line in status.splitlines()] == [0, 0], status


def test_no_signal_is_ignored_or_blocked_in_it() -> None:
    apart(signals_at_default)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(lambda path: ([str(path / "missing")], None), FileNotFoundError, id="no-program"),
        pytest.param(lambda path: ([str(path)], None), PermissionError, id="a-directory"),
        pytest.param(lambda path: (["/bin/true"], path / "missing"), FileNotFoundError, id="no-directory"),
        pytest.param(lambda path: (["/bin/true"], "/etc/passwd"), NotADirectoryError, id="cwd-is-a-file"),
        pytest.param(lambda _: (["/bin/true", "x" * 200_000], None), OSError, id="argument-too-long"),
    ],
)
def test_the_step_that_failed_is_told_and_nothing_is_left(
    tmp_path: Path, make: Callable[[Path], tuple[list[str], Path | str | None]], error: type[OSError]
) -> None:
    argv, cwd = make(tmp_path)
    before = descriptors_and_children()
    with pytest.raises(error):
        libc.posix_spawn(
            argv[0].encode(), [a.encode() for a in argv], [], os.fsencode(cwd) if cwd else None, (0, 1, 2)
        )
    assert descriptors_and_children() == before


def test_memory_is_overwritten_wherever_the_needle_is() -> None:
    import ctypes

    memory = ctypes.create_string_buffer(b"a secret, two secrets, secre")
    libc.overwrite_memory(ctypes.addressof(memory), len(memory), b"secret", b"*")
    assert memory.value == b"a ******, two ******s, secre"
