"""Renaming without overwriting, also from one file system to another."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress

from execd.posix import libc, trees
from execd.posix.places import Place

MAX_DEPTH = 500
"""Levels of a directory tree that moves to another file system: each holds two descriptors meanwhile."""
_CHUNK = 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def move(source: Place, target: Place) -> None:
    """Rename `source` to `target`, which must not exist. Atomic at the target, from whatever file system.

    Raises:
        OSError: EEXIST if something is there, ENOENT if the source is not, EINVAL for a directory into
            itself. Nothing has changed then.
    """
    try:
        libc.rename_new(source.directory_fd, source.name, target.directory_fd, target.name)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _across(source, target)


def _across(source: Place, target: Place) -> None:
    # A copy under a hidden name beside the target, renamed when it is whole; then the source goes.
    hidden = f".{target.name[:80]}.execd-{os.urandom(6).hex()}"
    try:
        _copy(source.directory_fd, source.name, target.directory_fd, hidden)
        libc.rename_new(target.directory_fd, hidden, target.directory_fd, target.name)
    except BaseException:
        with suppress(OSError):
            trees.remove_tree(Place(target.directory_fd, hidden, hidden))
        raise
    trees.remove_tree(source)


def _copy(source_fd: int, source: str, target_fd: int, target: str) -> None:
    """Copy what `source` names, a whole tree if it is a directory, to `target`, which does not exist."""
    levels: list[_Level] = []
    try:
        _copy_one(source_fd, source, target_fd, target, levels)
        while levels:
            level = levels[-1]
            name = next(level.names, None)
            if name is not None:
                _copy_one(level.source, name, level.target, name, levels)
                continue
            levels.pop()
            _finish(level.target, level.info)
            level.close()
    finally:
        for level in levels:
            level.close()


class _Level:
    """A directory that is being copied: both sides open."""

    def __init__(self, source: int, target: int, info: os.stat_result) -> None:
        self.source = source
        self.target = target
        self.info = info
        self.names: Iterator[str] = iter(os.listdir(source))

    def close(self) -> None:
        os.close(self.source)
        os.close(self.target)


def _copy_one(source_fd: int, source: str, target_fd: int, target: str, levels: list[_Level]) -> None:
    info = os.stat(source, dir_fd=source_fd, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode):
        if len(levels) >= MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, f"more than {MAX_DEPTH} levels deep", source)
        os.mkdir(target, 0o700, dir_fd=target_fd)
        reader = os.open(source, _DIRECTORY, dir_fd=source_fd)
        try:
            writer = os.open(target, _DIRECTORY, dir_fd=target_fd)
        except BaseException:
            os.close(reader)
            raise
        levels.append(_Level(reader, writer, info))
    elif stat.S_ISREG(info.st_mode):
        _copy_file(source_fd, source, target_fd, target)
    elif stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(source, dir_fd=source_fd), target, dir_fd=target_fd)
        with suppress(PermissionError):
            os.chown(target, info.st_uid, info.st_gid, dir_fd=target_fd, follow_symlinks=False)
    else:
        raise OSError(errno.EINVAL, "a FIFO, socket or device does not move to another file system", source)


def _copy_file(source_fd: int, source: str, target_fd: int, target: str) -> None:
    with open(os.open(source, _READ, dir_fd=source_fd), "rb", buffering=0) as reader:
        with open(os.open(target, _WRITE, 0o600, dir_fd=target_fd), "wb", buffering=0) as writer:
            shutil.copyfileobj(reader, writer, _CHUNK)
            _finish(writer.fileno(), os.fstat(reader.fileno()))
            os.fsync(writer.fileno())


def _finish(fd: int, info: os.stat_result) -> None:
    with suppress(PermissionError):  # not root: the copy is ours, as with cp
        os.chown(fd, info.st_uid, info.st_gid)
    os.chmod(fd, stat.S_IMODE(info.st_mode))
    os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))
