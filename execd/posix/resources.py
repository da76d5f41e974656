"""What the machine has left: disk, inodes, pids, descriptors; and whether the OOM killer was here."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a resource is free, out of how much (None: no limit is known)."""

    free: int
    total: int | None


def disk(path: str | int) -> tuple[Amount, Amount]:
    """Free bytes and inodes for us on the file system of `path`. Inode total 0: it does not count them."""
    stat = os.statvfs(path)
    return (
        Amount(stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize),
        Amount(stat.f_favail, stat.f_files),
    )


def descriptors() -> Amount:
    """Descriptors that this process may still open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return Amount(limit - len(os.listdir("/proc/self/fd")), limit)


def pids() -> Amount | None:
    """Processes and threads that our cgroup may still start; None if it has no such limit."""
    for directory in _cgroup_directories("pids"):
        with contextlib.suppress(OSError, ValueError):
            current = int(_read(f"{directory}/pids.current"))
            maximum = int(_read(f"{directory}/pids.max"))  # "max": ValueError, no limit
            return Amount(maximum - current, maximum)
    return None


class OomCounter:
    """How often the kernel's OOM killer has struck in our cgroup; stays 0 where that cannot be told."""

    def __init__(self) -> None:
        self._fd = -1
        for directory in _cgroup_directories("memory"):
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    self._fd = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
                    return

    def read(self) -> int:
        """The count; one pread."""
        if self._fd < 0:
            return 0
        with contextlib.suppress(OSError, ValueError):
            for line in os.pread(self._fd, 4096, 0).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line[9:])
        return 0

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read(256)


def _cgroup_directories(controller: str) -> list[str]:
    # cgroups(7): lines of hierarchy:controllers:path; version 2 has hierarchy 0 and no controllers.
    # Inside a cgroup namespace the path may lie outside the mount: then the mount's root is ours.
    try:
        lines = _read("/proc/self/cgroup").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            root = "/sys/fs/cgroup"
        elif controller in controllers.split(","):
            root = f"/sys/fs/cgroup/{controller}"
        else:
            continue
        found += [root + path.rstrip("/"), root]
    return [directory for directory in found if os.path.isdir(directory)]
