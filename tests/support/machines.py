"""Machines with a fault: wrappers for `daemon` that start it with a full disk, few processes, few files."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_EXEC = 'exec "$@"'


def mounted(script: str) -> tuple[str, ...]:
    """With mounts of its own, changed by the shell text `script`. Skips where that is refused."""
    wrapper = ("unshare", "--mount", "sh", "-e", "-c", f"{script}\n{_EXEC}", "sh")
    tried = subprocess.run([*wrapper, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"NOT PROVED HERE, no mounts of our own: {tried.stderr.strip()}")
    return wrapper


def small_disk(directory: Path, size: str) -> tuple[str, ...]:
    """With an empty file system of `size` at `directory`."""
    directory.mkdir(exist_ok=True)
    return mounted(f"mount -t tmpfs -o size={size} none '{directory}'")


def read_only(directory: Path) -> tuple[str, ...]:
    """With `directory` read-only."""
    directory.mkdir(exist_ok=True)
    return mounted(f"mount --bind '{directory}' '{directory}'; mount -o remount,ro,bind '{directory}'")


@contextlib.contextmanager
def control_group(controller: str, **limits: int) -> Iterator[tuple[str, ...]]:
    """In a new control group with these limits (`pids_max=50`).

    Only below a group that is the root of what we see: any other belongs to who put us there.
    """
    parent = _root(controller)
    if parent is None:
        pytest.skip(f"NOT PROVED HERE: we are not in the root of the control groups for {controller}")
    group = parent / f"execd-test-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in limits.items():
            (group / name.replace("_", ".", 1)).write_text(str(value))
    except OSError as error:
        pytest.skip(f"NOT PROVED HERE, no control group of our own: {error}")
    try:
        yield ("sh", "-e", "-c", f"echo $$ > {group}/cgroup.procs\n{_EXEC}", "sh")
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _root(controller: str) -> Path | None:
    top = Path("/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if path == "/" and controller in controllers.split(","):
            return top / controller
        handed_on = top / "cgroup.subtree_control"
        if path == "/" and hierarchy == "0" and handed_on.exists():
            return top if controller in handed_on.read_text().split() else None
    return None
