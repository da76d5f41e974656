"""Renaming without overwriting, also from one file system to another."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from contextlib import suppress

from execd.posix import libc, trees
from execd.posix.descent import Descent
from execd.posix.places import Place

_CHUNK = 1024 * 1024
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | _NO_LINK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK


class SourceRemains(Exception):
    """The target is complete, but not all of the source could be removed: `cause` says why."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def move(source: Place, target: Place) -> None:
    """Rename `source` to `target`, which must not exist. Atomic at the target, from whatever file system.

    From another file system mode, owner, times and extended attributes are kept as far as the daemon may set
    them, holes stay holes; hard links become files of their own.

    Raises:
        OSError: EEXIST if something is there, ENOENT if the source is not, EINVAL for a directory into
            itself, EXDEV if something is mounted below it. Nothing has changed then.
        SourceRemains: see there.
    """
    try:
        libc.rename_new(source.directory_fd, source.name, target.directory_fd, target.name)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _across(source, target)


def _across(source: Place, target: Place) -> None:
    # A copy under a hidden name beside the target, renamed when it is whole; then the source goes.
    _assert_removable(source)
    _assert_outside(source, target.directory_fd)
    hidden = f".execd-{os.urandom(8).hex()}.tmp"
    try:
        _copy(source, target.directory_fd, hidden)
        libc.rename_new(target.directory_fd, hidden, target.directory_fd, target.name)
    except BaseException:
        with suppress(OSError):
            trees.remove(Place(target.directory_fd, hidden, hidden))
        raise
    try:
        trees.remove(source)
    except OSError as error:
        raise SourceRemains(error) from error


def _assert_removable(source: Place) -> None:
    if not os.access(f"/proc/self/fd/{source.directory_fd}", os.W_OK | os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source.path)


def _assert_outside(source: Place, directory_fd: int) -> None:
    """A directory does not move to below itself: rename(2) says so, but not across mounts."""
    wanted = os.stat(source.name, dir_fd=source.directory_fd, follow_symlinks=False)
    fd = os.dup(directory_fd)
    try:
        while True:
            info = os.fstat(fd)
            if os.path.samestat(info, wanted):
                raise OSError(errno.EINVAL, "a directory does not move to below itself", source.path)
            parent = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = parent
            if os.path.samestat(os.fstat(fd), info):
                return
    finally:
        os.close(fd)


def _copy(source: Place, target_fd: int, target: str) -> None:
    """Copy what `source` names, a whole tree if it is a directory, to `target`, which does not exist."""
    info = _copy_one(source.directory_fd, source.name, target_fd, target, sync=True)
    if info is None:
        return
    with contextlib.ExitStack() as stack:
        reader = Descent(source.directory_fd, source.name)
        stack.callback(reader.close)
        writer = Descent(target_fd, target)
        stack.callback(writer.close)
        pending = [(info, os.listdir(reader.fd))]
        while pending:
            info, names = pending[-1]
            if names:
                name = names.pop()
                below = _copy_one(reader.fd, name, writer.fd, name)
                if below is not None:
                    reader.down(name)
                    writer.down(name)
                    pending.append((below, os.listdir(reader.fd)))
                continue
            pending.pop()
            _copy_attributes(reader.fd, writer.fd)
            _finish(writer.fd, info)
            if pending:
                reader.up()
                writer.up()
        libc.sync_file_system(writer.fd)


def _copy_one(
    source_fd: int, source: str, target_fd: int, target: str, *, sync: bool = False
) -> os.stat_result | None:
    """Copy one entry; of a directory only itself, which is then writable: what stat says of the source."""
    info = os.stat(source, dir_fd=source_fd, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode):
        os.mkdir(target, 0o700, dir_fd=target_fd)
        return info
    if stat.S_ISREG(info.st_mode):
        _copy_file(source_fd, source, target_fd, target, sync=sync)
        return None
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(source, dir_fd=source_fd), target, dir_fd=target_fd)
    else:
        os.mknod(target, stat.S_IFMT(info.st_mode) | 0o600, info.st_rdev, dir_fd=target_fd)
    fd = os.open(target, os.O_PATH | _NO_LINK, dir_fd=target_fd)
    try:
        _finish(fd, info)
    finally:
        os.close(fd)
    return None


def _copy_file(source_fd: int, source: str, target_fd: int, target: str, *, sync: bool) -> None:
    reader = os.open(source, _READ, dir_fd=source_fd)
    try:
        writer = os.open(target, _WRITE, 0o600, dir_fd=target_fd)
        try:
            info = os.fstat(reader)
            _copy_content(reader, writer)
            _copy_attributes(reader, writer)
            _finish(writer, info)
            if sync:
                os.fsync(writer)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _copy_content(reader: int, writer: int) -> None:
    at = 0
    while (start := _data_after(reader, at)) is not None:
        at, end = start, os.lseek(reader, start, os.SEEK_HOLE)
        while at < end and (data := os.pread(reader, min(_CHUNK, end - at), at)):
            at += os.pwrite(writer, data, at)
    os.ftruncate(writer, os.fstat(reader).st_size)


def _data_after(fd: int, offset: int) -> int | None:
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _copy_attributes(reader: int, writer: int) -> None:
    with suppress(OSError):  # ENOTSUP, or EPERM for those of the system
        for name in os.listxattr(reader):
            with suppress(OSError):
                os.setxattr(writer, name, os.getxattr(reader, name))


def _finish(fd: int, info: os.stat_result) -> None:
    """Owner, mode and times of a copy, of which only its path may be open."""
    path, mode = f"/proc/self/fd/{fd}", stat.S_IMODE(info.st_mode)
    try:
        os.chown(path, info.st_uid, info.st_gid)
    except PermissionError:  # not root: the copy is ours, as with mv(1), and nothing runs as us
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if not stat.S_ISLNK(info.st_mode):
        os.chmod(path, mode)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
