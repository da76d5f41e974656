"""A file's new content, whole or not at all: written beside the target, synced, then put in its place."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable
from typing import Final

from execd.posix import libc
from execd.posix.ownership import Ownership
from execd.posix.places import Places
from execd.posix.targets import Directories, Target

NEW_FILE_MODE: Final = 0o644
"""Of a new file if none is asked for, whatever the umask."""
Check = Callable[[os.stat_result | None], None]
"""Called with what is at the target (None: nothing), while no other writer of ours can change that. What it
raises leaves the target as it is."""
Bytes = bytes | memoryview

_WRITEBACK: Final = 8 * 1024 * 1024  # bytes after which the kernel is told to begin, so that fsync is short
_COPIED: Final = 1024 * 1024  # bytes at a time
_ATTEMPTS: Final = 100  # at a name that others make and remove meanwhile
_NO_LINK: Final = (errno.ENOENT, errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR)
_locks: Final = tuple(threading.Lock() for _ in range(64))


class AtomicFile:
    """Content that becomes one regular file by `commit` or `append`, or vanishes without a trace by `close`.

    Until then it has no name (O_TMPFILE), or a hidden one where the file system wants that, in the target's
    directory or the nearest above it that exists. Mode and owner are those of the file that is replaced, as
    far as `ownership` names no others; its other hard links keep the old content. Parents that are missing
    are made at the end. Not for several threads at once.
    """

    def __init__(
        self,
        places: Places,
        path: str,
        ownership: Ownership | None = None,
        common: Directories | None = None,
    ) -> None:
        """Begin. `path` is absolute; a symlink there is followed. `common`: as Target has it.

        Raises:
            NotAllowed: it leads out of the roots.
            OSError: EISDIR or EINVAL for what is no regular file, EACCES if the file may not be written or
                its directory takes no new one.
        """
        self._ownership = ownership or Ownership()
        self._written = self._started = 0
        self._like: tuple[int, int, int] | None = None
        """Mode, owner and group of the file that its own were taken from."""
        self.created = False
        self.target = Target(places, path, common)
        try:
            if _regular(self.target, self.target.found):
                self.target.assert_writable()
            self._fd, self._hidden = _scratch(self.target.directory_fd)
            self._home = os.dup(self.target.directory_fd) if self._hidden else -1
        except BaseException:
            self.target.close()
            raise

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._written

    def free_bytes(self) -> int:
        """What the target's file system still takes."""
        found = os.fstatvfs(self._fd)
        return found.f_frsize * (found.f_bfree if os.geteuid() == 0 else found.f_bavail)

    def write(self, data: Bytes) -> None:
        """Add all of `data` to the content.

        Raises:
            OSError: ENOSPC, EDQUOT, EFBIG, ...
        """
        _write_all(self._fd, data)
        self._written += len(data)
        if self._written - self._started >= _WRITEBACK:
            self._start_writeback()

    def commit(self, check: Check | None = None) -> os.stat_result:
        """Make it durable and put it in the target's place; what the file is then."""
        self.seal()
        self.sync()
        self.publish(check)
        self.target.sync_directory()
        return os.fstat(self._fd)

    def seal(self) -> None:
        """The first step of `commit`, after the last write: mode and owner, and the disk may begin."""
        self._take_ownership(self.target.found)
        self._start_writeback()

    def sync(self) -> None:
        """The second: wait until all of it is on the disk."""
        os.fsync(self._fd)

    def publish(self, check: Check | None = None) -> None:
        """The third: it is the file now. What is left is to sync the target's directory."""
        self._settle(check)

    def append(self, check: Check | None = None) -> os.stat_result:
        """Put the content at the end of the target instead, all of it or nothing; make the file if need be.

        It stays the same file, and those who have it open see it grow.
        """
        info = self._settle(check, adding=True)
        if info is None:
            self.target.sync_directory()
            info = os.fstat(self._fd)
        return info

    def close(self) -> None:
        """Give back what it holds. Unless it was put in place, nothing remains of it. May be called again."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        self._drop_hidden()
        if self._home >= 0:
            os.close(self._home)
        os.close(fd)
        self.target.close()

    def _drop_hidden(self) -> None:
        hidden, self._hidden = self._hidden, ""
        if hidden:
            with contextlib.suppress(OSError):
                os.unlink(hidden, dir_fd=self._home)

    def _start_writeback(self) -> None:
        libc.start_writeback(self._fd, self._started, self._written - self._started)
        self._started = self._written

    def _take_ownership(self, current: os.stat_result | None) -> None:
        asked, self._like = self._ownership, _attributes(current)
        mode, uid, gid = asked.mode, asked.uid, asked.gid
        if current is not None:
            have = os.fstat(self._fd)
            mode = stat.S_IMODE(current.st_mode) if mode is None else mode
            uid = current.st_uid if uid is None and current.st_uid != have.st_uid else uid
            gid = current.st_gid if gid is None and current.st_gid != have.st_gid else gid
        try:
            if uid is not None or gid is not None:  # first: chown(2) takes setuid and setgid away
                os.fchown(self._fd, -1 if uid is None else uid, -1 if gid is None else gid)
            os.fchmod(self._fd, NEW_FILE_MODE if mode is None else mode)
        except PermissionError as error:
            if (uid, gid) == (asked.uid, asked.gid):
                raise
            raise PermissionError(
                error.errno, "its owner and group cannot be kept; name those it may have", self.target.path
            ) from error

    def _settle(self, check: Check | None = None, *, adding: bool = False) -> os.stat_result | None:
        """Put the content where it belongs; what the file is then if it was added to one that is there."""
        try:
            self.target.make_parents(self._ownership)
            with self.target.among(_locks):
                return self._settle_alone(check, adding=adding)
        except BaseException:
            self._drop_hidden()
            self.target.take_back()
            raise

    def _settle_alone(self, check: Check | None, *, adding: bool) -> os.stat_result | None:
        # A new file is tried at once: if there is one by now, link(2) says so.
        hopeful = self.target.found is None and check is None and not adding
        for _ in range(_ATTEMPTS):
            current = None if hopeful else _regular(self.target, self.target.current())
            hopeful = False
            if check:
                check(current)
            if adding and current is not None:
                return self._add()
            if adding or self._like != _attributes(current):
                self._take_ownership(current)
                self.sync()
            with contextlib.suppress(FileExistsError):  # somebody else made one: look again
                self._place(new=current is None)
                self.created = current is None
                return None
        raise OSError(errno.EBUSY, "is made and removed by others all the time", self.target.path)

    def _place(self, *, new: bool) -> None:
        directory, name = self.target.directory_fd, self.target.name
        if not self._hidden:
            try:
                if new:
                    os.link(f"/proc/self/fd/{self._fd}", name, dst_dir_fd=directory)
                    return
                # link(2) replaces nothing: it takes a name for a moment.
                hidden = _hidden_name()
                os.link(f"/proc/self/fd/{self._fd}", hidden, dst_dir_fd=directory)
                self._home, self._hidden = os.dup(directory), hidden
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                self._copy_under_a_name()
        if new:
            libc.rename_new(self._home, self._hidden, directory, name)
        else:
            os.rename(self._hidden, name, src_dir_fd=self._home, dst_dir_fd=directory)
        self._hidden = ""

    def _copy_under_a_name(self) -> None:
        # Some file systems make files without a name, and then will not give them one.
        named, self._hidden = _named_scratch(self.target.directory_fd)
        nameless, self._fd = self._fd, named
        self._home = os.dup(self.target.directory_fd)
        try:
            _copy(nameless, named)
        finally:
            os.close(nameless)
        self.seal()
        self.sync()

    def _add(self) -> os.stat_result:
        fd = os.open(
            self.target.name,
            os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            dir_fd=self.target.directory_fd,
        )
        try:
            self._ownership.apply(fd)
            before = os.fstat(fd).st_size
            try:
                _copy(self._fd, fd)
                os.fsync(fd)
            except OSError:
                if before < os.fstat(fd).st_size <= before + self._written:  # else others have added to it
                    os.ftruncate(fd, before)
                raise
            return os.fstat(fd)
        finally:
            os.close(fd)


def _attributes(info: os.stat_result | None) -> tuple[int, int, int] | None:
    return info and (info.st_mode, info.st_uid, info.st_gid)


def _regular(target: Target, info: os.stat_result | None) -> os.stat_result | None:
    """What was found at the target; None: nothing.

    Raises:
        OSError: it is no regular file.
    """
    if info is None or stat.S_ISREG(info.st_mode):
        return info
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory", target.path)
    raise OSError(errno.EINVAL, "is no regular file", target.path)


def _scratch(directory_fd: int) -> tuple[int, str]:
    """A new file that only we know of, and its name in the directory (empty: it has none)."""
    try:
        return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=directory_fd), ""
    except OSError:
        return _named_scratch(directory_fd)  # the file system does not know it, or this fails alike


def _named_scratch(directory_fd: int) -> tuple[int, str]:
    name = _hidden_name()
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
    return os.open(name, flags, 0o600, dir_fd=directory_fd), name


def _hidden_name() -> str:
    return f".execd-{os.urandom(8).hex()}.tmp"


def _write_all(fd: int, data: Bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def _copy(source: int, sink: int) -> None:
    at = 0
    while data := os.pread(source, _COPIED, at):
        _write_all(sink, data)
        at += len(data)
