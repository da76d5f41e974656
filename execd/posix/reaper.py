"""Reaping orphans that were re-parented to us, without ever taking an exit status that has an owner."""

from __future__ import annotations

import os


class Reaper:
    """Knows which children have an owner; everything else that ends is an orphan and is reaped.

    A spawn is announced with `begin_spawn` before the child exists and claimed (or not) by `end_spawn`,
    so a child that ends before its pid is known is not taken for an orphan. All calls are made on the
    event loop.
    """

    def __init__(self) -> None:
        self._owned: set[int] = set()
        self._spawning: set[int] = set()
        self._next_ticket = 0
        self._obstructed = False
        self._suspects: dict[int, set[int]] = {}
        self.reaped = 0
        """Orphans reaped since the start."""

    def begin_spawn(self) -> int:
        """Announce a spawn; returns the ticket for `end_spawn`."""
        self._next_ticket += 1
        self._spawning.add(self._next_ticket)
        return self._next_ticket

    def end_spawn(self, ticket: int, pid: int | None) -> None:
        """The spawn has given `pid`, or none because it failed."""
        self._spawning.discard(ticket)
        suspicious = bool(self._suspects)
        if pid is not None:
            self._owned.add(pid)
            self._suspects.pop(pid, None)  # or it would be judged by this entry when its number comes again
        if suspicious:
            self.sweep()

    def release(self, pid: int) -> None:
        """The owner has reaped `pid`."""
        self._owned.discard(pid)
        if self._obstructed:
            self.sweep()

    def sweep(self) -> None:
        """Reap every ended child that nobody owns. Called on SIGCHLD; one system call if there is none."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            self._obstructed = info is not None and info.si_pid in self._owned
            if info is None or self._obstructed:
                return  # an owned one may hide orphans behind it: `release` looks again
            pid = info.si_pid
            # It can belong to a spawn that was under way when it was first seen.
            candidates = self._suspects.setdefault(pid, set(self._spawning))
            if candidates & self._spawning:
                return
            del self._suspects[pid]
            os.waitpid(pid, 0)
            self.reaped += 1
