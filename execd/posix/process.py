"""One started process and everything that it started: signals, exit status, the tree.

What identifies a process is a pidfd, never a bare pid, so a recycled pid is never signalled. The group
is signalled only while its leader is not reaped: until then the kernel cannot reuse the number.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
import termios
from collections.abc import Iterable
from dataclasses import dataclass

from execd.posix import proc

MARK = "EXECD_EXECUTION_ID"
"""Environment variable that every execution's processes carry: how those that left the group are found."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and the children it waited for used: CPU seconds and the largest RSS in bytes.

    `max_rss_exact` False: the true figure is smaller. The kernel counts the memory that a child shares
    with us until it calls exec, so nothing smaller than our own peak can be told.
    """

    user_seconds: float
    system_seconds: float
    max_rss_bytes: int
    max_rss_exact: bool


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: `code`, or the number of the `signal` that killed it (0: none did)."""

    code: int
    signal: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Process:
    """A child that leads its own session and group, and the read ends of its output pipes.

    The owner closes `pidfd` and both pipes and calls `reap` until it gives a status.
    """

    pid: int
    pidfd: int
    stdout: int
    stderr: int

    def ended(self) -> bool:
        """True once it has ended; its exit status stays for `reap`."""
        return os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> ExitStatus | None:
        """Take the exit status of an ended leader; None while it still runs. Its pid is free after it."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if not pid:
            return None
        return ExitStatus(
            os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            Usage(
                usage.ru_utime,
                usage.ru_stime,
                usage.ru_maxrss * 1024,  # getrusage(2): in KiB
                usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            ),
        )

    def abandon(self) -> None:
        """Kill the group and let go of everything; who it is that reaps it does not matter any more."""
        self.signal_group(signal.SIGKILL)
        for fd in (self.pidfd, self.stdout, self.stderr):
            os.close(fd)

    def signal_group(self, number: int) -> None:
        """Signal the leader's group. Only before `reap`. A group we may not signal is left alone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def waiting(pipe: int) -> int:
    """How many bytes can be read from a pipe right now."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def pipe_names(fds: Iterable[int]) -> frozenset[str]:
    """How /proc calls the pipes whose read ends we hold: their write ends have the same names."""
    found = set()
    for fd in fds:
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
    return frozenset(name for name in found if name.startswith("pipe:"))


def _holds(pid: int, pipes: frozenset[str]) -> bool:
    for fd in (1, 2, 0):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{fd}") in pipes:
                return True
    return False


def members(leader: int, execution_id: str, pipes: frozenset[str] = frozenset()) -> list[tuple[int, int]]:
    """The living processes of an execution besides its leader, each as (pid, pidfd); close the pidfds.

    Found by group, by session, by descent, by the mark in their environment, and by the output pipes that
    they hold: so also when group and session were left, the parents are gone, or the environment was
    cleared. Only who has done all of that and closed the pipes, too, is not found. Reads all of /proc: not
    for the event loop.

    Raises:
        OSError: there is no /proc, or no descriptor to look with.
    """
    entry = f"{MARK}={execution_id}".encode()
    daemon = os.getpid()  # adopts who has lost its parents
    first = proc.read_stat(leader)
    born = first.start if first is not None else 0
    # Who was there before the leader cannot be its descendant, and need not be read any further.
    stats = {stat.pid: stat for stat in proc.processes() if stat.start >= born}
    found = {
        stat.pid
        for stat in stats.values()
        if leader in (stat.group, stat.session)
        or proc.has_environment(stat.pid, entry)
        or (pipes and stat.parent == daemon and _holds(stat.pid, pipes))
    }
    descended = True
    while descended:
        new = {stat.pid for stat in stats.values() if stat.parent in found} - found
        found |= new
        descended = bool(new)
    found -= {leader, daemon}
    alive: list[tuple[int, int]] = []
    for pid in found:
        try:
            pidfd = _hold(stats[pid])
        except OSError:
            if alive:
                break  # the caller looks again when it is done with these
            raise
        if pidfd is not None:
            alive.append((pid, pidfd))
    return alive


def _hold(stat: proc.ProcessStat) -> int | None:
    # A pidfd; None if the process has ended, or if its pid already names another one.
    if stat.ended:
        return None
    try:
        pidfd = os.pidfd_open(stat.pid)
    except OSError as error:
        proc.require_sight(error)
        return None
    try:
        now = proc.read_stat(stat.pid)
    except OSError:
        os.close(pidfd)
        raise
    if now is None or now.start != stat.start or now.ended:
        os.close(pidfd)
        return None
    return pidfd


def in_group(pid: int, group: int) -> bool:
    """True if a process that somebody holds by a pidfd is in that process group."""
    try:
        return os.getpgid(pid) == group
    except ProcessLookupError:
        return False


def send(pidfd: int, number: int) -> bool:
    """Send a signal through a pidfd; False if the process is gone or not ours to signal."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
