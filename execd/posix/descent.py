"""Going down and up in a directory tree with one descriptor, however deep it is and whatever is moved."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from execd.posix import libc

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNTED = "another file system is mounted there"


@dataclass(frozen=True, slots=True)
class _Level:
    name: str
    device: int
    inode: int


class Descent:
    """A place in a tree. Follows no link, enters no other mount, and goes up only to where it came from."""

    def __init__(self, directory_fd: int, name: str) -> None:
        """Start in the directory `name`. `directory_fd` stays the caller's.

        Raises:
            OSError: ENOTDIR or ELOOP if it is none, EXDEV if something is mounted there.
        """
        self.fd = -1
        self._levels: list[_Level] = []
        self._enter(directory_fd, name)

    @property
    def depth(self) -> int:
        """1 at the start."""
        return len(self._levels)

    @property
    def name(self) -> str:
        """What the directory is called in the one above."""
        return self._levels[-1].name

    def down(self, name: str) -> None:
        """Go to a directory in this one. Raises as the constructor does, and stays."""
        self._enter(self.fd, name)

    def up(self) -> str:
        """Go back to the directory above; the name of the one that is left.

        Raises:
            OSError: EBUSY, this one was moved elsewhere meanwhile.
        """
        parent = os.open("..", OPEN_DIRECTORY, dir_fd=self.fd)
        info, above = os.fstat(parent), self._levels[-2]
        if (info.st_dev, info.st_ino) != (above.device, above.inode):
            os.close(parent)
            raise OSError(errno.EBUSY, "a directory was moved out of the tree meanwhile", self.name)
        self.close()
        self.fd = parent
        return self._levels.pop().name

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _enter(self, directory_fd: int, name: str) -> None:
        fd = _open(directory_fd, name)
        info = os.fstat(fd)
        self.close()
        self.fd = fd
        self._levels.append(_Level(name, info.st_dev, info.st_ino))


def _open(directory_fd: int, name: str) -> int:
    try:
        return libc.open_on_same_mount(directory_fd, name, OPEN_DIRECTORY)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise OSError(errno.EXDEV, _MOUNTED, name) from None
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    fd = os.open(name, OPEN_DIRECTORY, dir_fd=directory_fd)
    try:
        if os.fstat(fd).st_dev != os.fstat(directory_fd).st_dev:  # sees no bind mount of the same file system
            raise OSError(errno.EXDEV, _MOUNTED, name)
    except BaseException:
        os.close(fd)
        raise
    return fd
