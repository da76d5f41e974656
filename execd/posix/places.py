"""Opening what a client's path names, within the allowed roots. What decides is the opened file, never the
string: `..`, symlinks and a directory that is swapped meanwhile are all seen where they lead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_PATH = 4095
"""Bytes of a path that the kernel takes (PATH_MAX without its NUL)."""


class NotAllowed(Exception):
    """A path leads outside of the roots."""


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open directory; the name itself may exist or not. `path` is how to call it in answers."""

    directory_fd: int
    name: str
    path: str


class Places:
    """Opens files and directories below `roots` (none given: anywhere). May block: not for the event loop."""

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self.roots = tuple(os.path.realpath(root) for root in roots)

    @contextlib.contextmanager
    def place(self, path: str) -> Iterator[Place]:
        """The place that the absolute `path` names: its directory opened, its last name not followed.

        Raises:
            NotAllowed: that directory, or the place itself, is not below a root.
            OSError: the directory cannot be opened. EBUSY if `path` is `/`.
        """
        path = os.path.normpath(path) if not path.endswith("/..") else os.path.realpath(path)
        directory, name = os.path.split(path)
        if not name:
            raise OSError(16, "is the root directory", path)
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self.roots and os.path.join(self._real(fd), name) not in self.roots:
                self.check(fd, path)
            yield Place(fd, name, path)
        finally:
            os.close(fd)

    def open(self, path: str, flags: int, mode: int = 0) -> int:
        """Open the absolute `path`; the caller owns the descriptor. Never blocks on a FIFO.

        Raises:
            NotAllowed: what was opened is not below a root. Nothing is created in that case.
            OSError: from open(2).
        """
        if self.roots and flags & os.O_CREAT:
            raise ValueError("create in a Place, where the directory has been checked")
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode)
        try:
            self.check(fd, path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def check(self, fd: int, path: str) -> None:
        """Raises NotAllowed if the open file or directory `fd` is not a root or below one."""
        if self.roots:
            real = self._real(fd)
            if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots):
                raise NotAllowed(path)

    @staticmethod
    def _real(fd: int) -> str:
        return os.readlink(f"/proc/self/fd/{fd}")
