"""Opening what a client's path names, within the allowed roots. What decides is the opened file, never the
string: `..`, symlinks and a directory that is swapped meanwhile are all seen where they lead.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_PATH = 4095
"""Bytes of a path that the kernel takes (PATH_MAX without its NUL)."""
_UNTIDY = re.compile(r"^[^/]|//|/\.|/\Z")  # perhaps
_BY_PATH = os.O_PATH | os.O_CLOEXEC


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
        """The place that the absolute `path` names: its directory opened, its last name not followed. What is
        there may be changed: a root itself may not.

        Raises:
            NotAllowed: its directory is no root and not below one.
            OSError: the directory cannot be opened. EBUSY if `path` is `/`.
        """
        directory, name = os.path.split(plain(path))
        if not name:
            raise OSError(errno.EBUSY, "is the root directory", path)
        fd = self._found(directory, _BY_PATH | os.O_DIRECTORY)
        try:
            self.check(fd, path)
            yield Place(fd, name, path)
        finally:
            os.close(fd)

    def lstat(self, path: str) -> os.stat_result:
        """What is at the absolute `path`, a symlink there not followed. A root itself may be looked at.

        Raises:
            NotAllowed, OSError.
        """
        path = plain(path)
        if path != "/":
            with contextlib.suppress(NotAllowed), self.place(path) as place:
                return os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
        fd = self.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def open(self, path: str, flags: int, mode: int = 0) -> int:
        """Open the absolute `path`; the caller owns the descriptor. Never blocks on a FIFO.

        Raises:
            NotAllowed: what was opened is not below a root. It was opened by its path only (O_PATH), which
                wakes no device and no writer of a FIFO, and nothing was created.
            OSError: from open(2).
        """
        flags |= os.O_CLOEXEC | os.O_NONBLOCK
        if not self.roots:
            return os.open(path, flags, mode)
        if flags & os.O_CREAT:
            raise ValueError("create in a Place, where the directory has been checked")
        fd = self._found(path, _BY_PATH | (flags & (os.O_DIRECTORY | os.O_NOFOLLOW)))
        try:
            self.check(fd, path)
            if flags & os.O_PATH:
                kept, fd = fd, -1
                return kept
            return os.open(f"/proc/self/fd/{fd}", flags & ~os.O_NOFOLLOW)
        finally:
            if fd >= 0:
                os.close(fd)

    def _found(self, path: str, flags: int) -> int:
        try:
            return os.open(path, flags)
        except OSError:
            if self.roots:  # what is there, or is not, outside of the roots is not told
                self.check_nearest(os.path.dirname(path) if flags & os.O_NOFOLLOW else path)
            raise

    def check_nearest(self, path: str) -> None:
        """Raises NotAllowed if `path`, which cannot be opened, would not be below a root either."""
        nearest, fd = os.path.realpath(path), -1
        while fd < 0:
            try:
                fd = os.open(nearest, _BY_PATH | os.O_DIRECTORY)
            except OSError:
                if nearest == "/":
                    raise
                nearest = os.path.dirname(nearest)
        try:
            self.check(fd, path)
        finally:
            os.close(fd)

    def check(self, fd: int, path: str) -> None:
        """Raises NotAllowed if the open file or directory `fd` is not a root or below one."""
        if not self.roots:
            return
        real = os.readlink(f"/proc/self/fd/{fd}")
        if any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots):
            # A file of another mount namespace shows the path that it has there.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.lstat(real), os.fstat(fd)):
                    return
        raise NotAllowed(path)


def plain(path: str) -> str:
    """The absolute path without `.`, `..` and slashes to spare. A `..` after a symlink goes where the kernel
    goes, to the parent of what the link points at. Another name for the same, no statement about it.
    """
    if not _UNTIDY.search(path):
        return path
    directory, name = os.path.split(path.rstrip("/"))
    if name in (".", ".."):
        path = os.path.realpath(path)
    elif "/../" in directory + "/":
        path = os.path.join(os.path.realpath(directory), name)
    return "/" + os.path.normpath(path).lstrip("/")
