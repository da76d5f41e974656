"""Where a file is to be written: symlinks followed to the real file, missing parents made when it is time."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Sequence

from execd.posix.ownership import Ownership
from execd.posix.places import Places, plain

_MAX_LINKS = 40  # as the kernel has it (ELOOP)
_PARENT_MODE = 0o755
_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC


class Directories:
    """Directories that several targets have in common, open until `close`: for files that come together."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[int, tuple[int, int]]] = {}

    def close(self) -> None:
        """Give the descriptors back. It can be used again."""
        for fd, _ in self.open.values():
            os.close(fd)
        self.open.clear()


class Target:
    """A name in an open directory. `found`: what is there, None if nothing; `missing`: directories that are
    still to be made below the open one.

    A symlink as the target is followed, also one that points at nothing yet; where it leads is checked
    against the roots as any path is. The descriptor is closed by `close`.
    """

    def __init__(self, places: Places, path: str, common: Directories | None = None) -> None:
        """Find the place of the absolute `path`. Nothing is made. Its directory is, or will be, in `common`.

        Raises:
            NotAllowed: it is not below a root.
            OSError: a parent is no directory, cannot be searched, or the links have no end.
        """
        self.directory_fd = self._above = -1
        self._names: tuple[str, ...] = ()
        self._made: list[int] = []  # positions in `_names`
        self._common = common
        self._shared = False  # the open directory is `common`'s
        self.missing: tuple[str, ...] = ()
        self._identity: tuple[int, int] | None = None
        path = plain(path)
        for _ in range(_MAX_LINKS):
            directory, self.name = os.path.split(path)
            if self.name in ("", ".", ".."):
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
            self.path = path
            try:
                self._open(places, directory)
                self.found = self.current()
                if self.found is None or not stat.S_ISLNK(self.found.st_mode):
                    return
                link = os.readlink(self.name, dir_fd=self.directory_fd)
                path = os.path.join(os.readlink(f"/proc/self/fd/{self.directory_fd}"), link)
                # As the kernel would, links before `..` included; the result is looked at again.
                path = os.path.join(
                    os.path.realpath(os.path.dirname(path), strict=True), os.path.basename(path)
                )
            except OSError:
                self.close()
                places.check_nearest(os.path.dirname(path))  # what is outside of the roots is not told
                raise
            except BaseException:
                self.close()
                raise
            self.close()
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _open(self, places: Places, directory: str) -> None:
        known = self._common.open.get(directory) if self._common is not None else None
        self._shared = known is not None
        if known is not None:
            (self.directory_fd, self._identity), self.missing = known, ()
            return
        self.directory_fd, self.missing = _nearest(directory)
        self._identity = None
        places.check(self.directory_fd, self.path)
        if self._common is not None and not self.missing:
            self._common.open[directory] = self.directory_fd, self.directory
            self._shared = True

    def current(self) -> os.stat_result | None:
        """What is there now, not followed if it is a symlink; None: nothing."""
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.directory_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    @property
    def directory(self) -> tuple[int, int]:
        """Which directory it is: device and inode."""
        if self._identity is None:
            info = os.fstat(self.directory_fd)
            self._identity = info.st_dev, info.st_ino
        return self._identity

    def assert_writable(self) -> None:
        """Fail as open(2) would if we may not write to the file that is there.

        Raises:
            OSError: EACCES, EROFS, EPERM.
        """
        # Not by opening it: a program that runs (ETXTBSY) may be replaced. That only tells why.
        if not os.access(self.name, os.W_OK, dir_fd=self.directory_fd, effective_ids=True):
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(os.open(self.name, flags, dir_fd=self.directory_fd))

    def among(self, locks: Sequence[threading.Lock]) -> threading.Lock:
        """The lock of this name in its directory: the same for every Target of it."""
        return locks[hash((self.directory, self.name)) % len(locks)]

    def detach(self) -> None:
        """Use nothing of `common` any more: it may be closed."""
        if self._shared:
            self.directory_fd, self._shared = os.dup(self.directory_fd), False

    def make_parents(self, owner: Ownership) -> None:
        """Make the missing directories, 0755 whatever the umask, with the owner and group given.

        One that somebody else made meanwhile is used as it is. `take_back` removes those made.
        """
        if not self.missing:
            return
        directory = Ownership(_PARENT_MODE, owner.uid, owner.gid)
        self._above, self._names, self.missing = self.directory_fd, self.missing, ()
        self.directory_fd, self._identity = os.dup(self._above), None
        for depth, name in enumerate(self._names):
            below, new = _make_directory(self.directory_fd, name, directory)
            self._made += [depth] if new else []
            os.close(self.directory_fd)
            self.directory_fd = below

    def take_back(self) -> None:
        """Remove the directories made by `make_parents`, as far as they are empty. Follows no link."""
        made, self._made = self._made, []
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for depth in reversed(made):
                fd = self._above
                for name in self._names[:depth]:
                    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | _DIRECTORY, dir_fd=fd)
                    stack.callback(os.close, fd)
                os.rmdir(self._names[depth], dir_fd=fd)
                stack.close()

    def sync_directory(self) -> None:
        """Let the directory's entries reach the disk; impossible, and left, if it may not be read."""
        with contextlib.suppress(PermissionError):
            fd = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=self.directory_fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def close(self) -> None:
        """Give the descriptors back."""
        if self._shared:
            self.directory_fd = -1
        for fd in (self.directory_fd, self._above):
            if fd >= 0:
                os.close(fd)
        self.directory_fd = self._above = -1


def _nearest(directory: str) -> tuple[int, tuple[str, ...]]:
    """The deepest directory of the path that exists, opened, and the names that are missing below it."""
    missing: list[str] = []
    while True:
        try:
            return os.open(directory, os.O_PATH | _DIRECTORY), tuple(reversed(missing))
        except FileNotFoundError:
            directory, name = os.path.split(directory)
            if not name:
                raise
            missing.append(name)


def _make_directory(parent: int, name: str, owner: Ownership) -> tuple[int, bool]:
    """A directory in `parent`, opened, and whether it had to be made."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | _DIRECTORY, dir_fd=parent), False
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | _DIRECTORY, dir_fd=parent)
        try:
            owner.apply(fd)
        except BaseException:
            os.close(fd)
            raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        raise
    return fd, True
