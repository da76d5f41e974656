"""Making and removing directories through descriptors, so that a link put in the way leads nowhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from itertools import islice

from execd.posix.descent import Descent
from execd.posix.ownership import Ownership
from execd.posix.places import Place, Places, plain

DIRECTORY_MODE = 0o755
"""Of directories that are made on the way, whatever the umask."""
_BATCH = 8192  # names held of one directory
_ATTEMPTS = 100  # at a directory in which others make entries, or which they swap, all the time
_BY_PATH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_directories(places: Places, path: str, ownership: Ownership) -> bool:
    """Make the directory `path` and the missing ones above it; True if it was not there yet.

    Existing ones stay as they are. New ones get the owner that is asked for; the last one its mode too
    (None: 0755). If it fails, those made before stay.

    Raises:
        NotAllowed, OSError: EEXIST if there is something that is no directory.
    """
    fd, missing = _open_existing(places, plain(path))
    made = bool(missing)
    try:
        while missing:
            name = missing.pop()
            child = _make(fd, name, ownership, last=not missing)
            os.close(fd)
            fd = child
        return made
    finally:
        os.close(fd)


def check_directories(places: Places, path: str) -> None:
    """Whether `make_directories` could begin. Raises what it would."""
    fd, missing = _open_existing(places, plain(path))
    try:
        if missing and not os.access(f"/proc/self/fd/{fd}", os.W_OK | os.X_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    finally:
        os.close(fd)


_TRIES = 10
"""How often a name is looked at that is there, and yet is not, before it counts as a symlink to nothing."""


def _open_existing(places: Places, path: str) -> tuple[int, list[str]]:
    """The deepest directory of `path` that exists, opened, and the names below it, the last one first."""
    missing: list[str] = []
    again = _TRIES
    while True:
        try:
            return places.open(path, os.O_PATH | os.O_DIRECTORY), missing
        except FileNotFoundError:
            if _is_there(places, path):
                again -= 1
                if again:
                    continue  # somebody has just made it
                raise FileExistsError(errno.EEXIST, "is a symlink to nothing", path) from None
        except NotADirectoryError:
            raise FileExistsError(errno.EEXIST, "is there, and is no directory", path) from None
        path, name = os.path.split(path)
        missing.append(name)


def _is_there(places: Places, path: str) -> bool:
    try:
        places.lstat(path)
        return True
    except FileNotFoundError:
        return False


def _make(parent: int, name: str, ownership: Ownership, *, last: bool) -> int:
    made = True
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        made = False  # somebody was faster: theirs stays as it is
    try:
        fd = os.open(name, _BY_PATH, dir_fd=parent)
    except NotADirectoryError:
        raise FileExistsError(errno.EEXIST, "is there, and is no directory", name) from None
    if not made:
        return fd
    try:
        mode = ownership.mode if last else None
        if mode is None:
            mode = DIRECTORY_MODE | os.fstat(fd).st_mode & stat.S_ISGID  # that comes from the directory above
        Ownership(mode, ownership.uid, ownership.gid).apply(fd)
    except BaseException:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        raise
    return fd


def remove(place: Place) -> None:
    """Remove a file, a link, or a directory with all that is in it; nothing is fine too.

    Raises:
        OSError: as `remove_directory`.
    """
    try:
        os.unlink(place.name, dir_fd=place.directory_fd)
    except FileNotFoundError:
        return
    except IsADirectoryError:  # unlink(2) on Linux; POSIX would have EPERM
        remove_directory(place)


def remove_directory(place: Place) -> None:
    """Remove a directory with all that is in it; nothing is fine too.

    Never follows a link, never enters another file system, and never goes up but to where it came from,
    however deep the tree and whatever is moved meanwhile. Holds two descriptors at most. Entries that appear
    while it works are removed, too.

    Raises:
        OSError: ENOTDIR if it is something else, a link included. EXDEV if something is mounted there or
            below. EACCES, ... if an entry could not be removed. What had been removed before stays so.
    """
    for attempt in range(_ATTEMPTS):
        try:
            _empty(place)
            os.rmdir(place.name, dir_fd=place.directory_fd)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno == errno.ELOOP:  # what openat2(2) says of a link
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place.path) from None
            if error.errno != errno.ENOTEMPTY or attempt == _ATTEMPTS - 1:
                raise


def _empty(place: Place) -> None:
    """Remove all that is in a directory.

    Raises:
        FileNotFoundError: it is not there.
        OSError: as `remove_directory`.
    """
    descent = Descent(place.directory_fd, place.name)
    try:
        pending: list[list[str]] = [[]]
        tries = _ATTEMPTS
        while True:
            names = pending[-1]
            below = _unlink_all(descent.fd, names)
            if below is not None:
                if _down(descent, below):
                    pending.append([])
                    continue
            elif _refill(descent.fd, names):
                continue
            elif len(pending) == 1:
                return
            else:
                pending.pop()
                below = descent.up()
                if _remove_empty(descent.fd, below):
                    continue
            # It was swapped, or something appeared in it.
            tries -= 1
            if not tries:
                raise OSError(errno.EBUSY, "entries are made and swapped all the time", below)
            pending[-1].append(below)
    finally:
        descent.close()


def _refill(fd: int, names: list[str]) -> bool:
    """Look for more entries, `_BATCH` at most; False if the directory is empty."""
    with os.scandir(fd) as entries:
        names += [entry.name for entry in islice(entries, _BATCH)]
    return bool(names)


def _unlink_all(fd: int, names: list[str]) -> str | None:
    """Unlink what can be; the next directory that has to be emptied first, or None."""
    while names:
        name = names.pop()
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue
        except IsADirectoryError:
            return name
    return None


def _down(descent: Descent, name: str) -> bool:
    """Go into a directory; False if it is none any more."""
    try:
        descent.down(name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise
    return True


def _remove_empty(fd: int, name: str) -> bool:
    """Remove a directory that should be empty; False if it has to be looked at again."""
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True
