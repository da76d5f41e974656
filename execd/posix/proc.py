"""Reading /proc. Bounded, tolerant of processes that vanish while being read."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

BLIND = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors that mean that we have no descriptor to look with."""
ENVIRON_LIMIT = 8 * 1024 * 1024
"""Bytes of a process's environment that are searched for our mark: more than execve(2) takes."""


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What proc(5) says of one process: `state` is its letter, `start` in clock ticks since boot."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int

    @property
    def ended(self) -> bool:
        """True for a zombie: it runs no more, its exit status only waits to be read."""
        return self.state in "ZXx"


def read_stat(pid: int) -> ProcessStat | None:
    """The process with that pid, or None if there is none.

    Raises:
        OSError: we have no descriptor to look with.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError as error:
        require_sight(error)
        return None
    fields = raw[raw.rindex(b")") + 2 :].split()  # the name before it may hold spaces and brackets
    return ProcessStat(
        pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])
    )


def require_sight(error: OSError) -> None:
    """Raise `error` again if it says that we have no descriptor left, not that the process is gone."""
    if error.errno in BLIND:
        raise error


def processes() -> list[ProcessStat]:
    """Every process that we can see."""
    stats = (read_stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [stat for stat in stats if stat is not None]


def has_environment(pid: int, entry: bytes) -> bool:
    """True if the process was started with the environment entry `NAME=value` (False if unreadable)."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read(ENVIRON_LIMIT)
    except OSError as error:
        require_sight(error)
        return False
    return environ.startswith(entry + b"\0") or (b"\0" + entry + b"\0") in environ
