"""Starting processes the way the daemon does, and reading what they print."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from execd.posix import spawn
from execd.posix.identity import Identity
from execd.posix.process import ExitStatus, Process
from tests.support.live import wait_until


def request(
    command: str | None = None,
    *argv: str,
    cwd: str | None = None,
    identity: Identity | None = None,
    **environment: str,
) -> spawn.Request:
    """`environment` is laid over ours."""
    return spawn.Request(command, argv, {**os.environ, **environment}, cwd, identity)


@contextmanager
def started(asked: spawn.Request) -> Iterator[Process]:
    """A process that is killed, if need be, and let go of at the end of the block."""
    process = spawn.spawn(asked)
    try:
        yield process
    finally:
        if os.path.exists(f"/proc/self/fd/{process.pidfd}"):
            try:
                signal.pidfd_send_signal(process.pidfd, signal.SIGKILL)
                os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED)
            except (ProcessLookupError, ChildProcessError):
                pass  # it was reaped
        for fd in (process.pidfd, process.stdout, process.stderr):
            os.close(fd)


def read_all(fd: int) -> bytes:
    """What comes from a pipe until everybody has closed it."""
    os.set_blocking(fd, True)
    found = b""
    while data := os.read(fd, 1 << 16):
        found += data
    return found


def finished(asked: spawn.Request) -> tuple[bytes, bytes, ExitStatus]:
    """Run it to its end: stdout, stderr (each has to fit a pipe) and the exit status."""
    with started(asked) as process:
        out, err = read_all(process.stdout), read_all(process.stderr)
        wait_until(process.ended)
        status = process.reap()
        assert status is not None
        return out, err, status
