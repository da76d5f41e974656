"""Making and removing directories through descriptors, so that a link put in the way leads nowhere."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from itertools import islice

from execd.posix.ownership import Ownership
from execd.posix.places import Place, Places

DIRECTORY_MODE = 0o755
"""Of directories that are made on the way, whatever the umask."""
_BATCH = 8192  # names held of one directory
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_directories(places: Places, path: str, ownership: Ownership) -> bool:
    """Make the directory `path` and the missing ones above it; True if it was not there yet.

    Existing ones stay as they are. New ones get the owner that is asked for; the last one its mode too
    (0 or None: 0755).

    Raises:
        NotAllowed, OSError: EEXIST if there is something that is no directory.
    """
    fd, missing = _open_existing(places, os.path.normpath(path))
    try:
        for name in reversed(missing):
            child = _make(fd, name, ownership, last=name is missing[0])
            os.close(fd)
            fd = child
    finally:
        os.close(fd)
    return bool(missing)


def _open_existing(places: Places, path: str) -> tuple[int, list[str]]:
    """The deepest directory of `path` that exists, opened, and the names below it, the last one first."""
    missing: list[str] = []
    while True:
        try:
            return places.open(path, os.O_PATH | os.O_DIRECTORY), missing
        except FileNotFoundError:
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "is a symlink to nothing", path) from None
        except NotADirectoryError:
            if not missing or os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "is not a directory", path) from None
        path, name = os.path.split(path)
        missing.append(name)


def _make(parent: int, name: str, ownership: Ownership, *, last: bool) -> int:
    made = True
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        made = False  # somebody was faster: theirs stays as it is
    fd = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    try:
        if made:
            mode = (ownership.mode if last else None) or DIRECTORY_MODE
            Ownership(mode, ownership.uid, ownership.gid).apply(fd)
    except BaseException:
        os.close(fd)
        os.rmdir(name, dir_fd=parent)
        raise
    return fd


@dataclass(frozen=True, slots=True)
class _Level:
    """A directory that is being emptied: where it is called `name`, and which one it was when entered."""

    name: str
    device: int
    inode: int
    rest: list[str]


def remove_tree(place: Place) -> None:
    """Remove a file, a link, or a directory with all that is in it; nothing is fine too.

    Never follows a link and never goes up but to where it came from, however deep the tree and whatever is
    moved meanwhile. Holds two descriptors at most. Entries that appear while it works are removed, too.

    Raises:
        OSError: an entry could not be removed; what had been removed before stays so.
    """
    try:
        info = os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(place.name, dir_fd=place.directory_fd)
            return
        fd = os.open(place.name, _OPEN_DIRECTORY, dir_fd=place.directory_fd)
    except FileNotFoundError:
        return
    try:
        levels = [_level(fd, place.name)]
        while levels:
            rest = levels[-1].rest
            below = _empty(fd, rest)
            if below is None and _refill(fd, rest):
                continue
            if below is not None:
                child = os.open(below, _OPEN_DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = child
                levels.append(_level(fd, below))
                continue
            done = levels.pop()
            if not levels:
                break
            fd = _up(fd, levels[-1])
            _remove_directory(fd, done.name, levels[-1].rest)
    finally:
        os.close(fd)
    try:
        os.rmdir(place.name, dir_fd=place.directory_fd)
    except FileNotFoundError:
        return


def _level(fd: int, name: str) -> _Level:
    info = os.fstat(fd)
    return _Level(name, info.st_dev, info.st_ino, [])


def _refill(fd: int, names: list[str]) -> bool:
    """Look for more entries, `_BATCH` at most; False if the directory is empty."""
    with os.scandir(fd) as entries:
        names += [entry.name for entry in islice(entries, _BATCH)]
    return bool(names)


def _empty(fd: int, names: list[str]) -> str | None:
    """Unlink what can be; the next directory that has to be emptied first, or None."""
    while names:
        name = names.pop()
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue
        except (IsADirectoryError, PermissionError):
            # unlink(2) of a directory: EISDIR on Linux, EPERM elsewhere
            try:
                if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise
            except FileNotFoundError:
                continue
            return name
    return None


def _up(fd: int, level: _Level) -> int:
    parent = os.open("..", _OPEN_DIRECTORY, dir_fd=fd)
    os.close(fd)
    info = os.fstat(parent)
    if (info.st_dev, info.st_ino) != (level.device, level.inode):
        os.close(parent)
        raise OSError(errno.EBUSY, "a directory was moved while it was being removed", level.name)
    return parent


def _remove_directory(fd: int, name: str, names: list[str]) -> None:
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        names.append(name)  # something appeared in it: once more
