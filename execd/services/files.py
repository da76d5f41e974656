"""Files: what they are, and changing their names and metadata."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from execd.errors import ExecdError, InvalidBody
from execd.posix import entries, moves, trees
from execd.posix.ownership import Ownership, UnknownName
from execd.posix.places import Place, Places, plain
from execd.services.filesystem import Filesystem, explained
from execd.services.items import each

if TYPE_CHECKING:
    from execd.models.files import Move, Permission

_AT_TARGET = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What rename(2) and copying say of the target, not of the source."""
_TAKEN = "is there already"


class Files:
    """All methods may raise what `Filesystem.resolve` and `explained` do, and end as `items.each` says."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._places = filesystem.places

    async def info(self, asked: Sequence[str]) -> dict[str, dict[str, object]]:
        """What lstat says of each, by the names that were asked for; one that is no text percent-encoded.

        Raises:
            FileMissing: one of them is not there.
        """

        def look() -> dict[str, dict[str, object]]:
            return {
                name if entries.is_text(name) else entries.encoded(name): self._info(name) for name in asked
            }

        return await self._filesystem.run(look)

    async def set_permissions(self, wanted: Mapping[str, Permission]) -> None:
        """Set mode, owner and group. A symlink's target is what is meant.

        Raises:
            FileMissing: one of them is not there; nothing was changed.
            InvalidBody: there is no such user or group; nothing was changed.
        """
        await self._filesystem.run(lambda: self._set_permissions(wanted))

    async def move(self, wanted: Sequence[Move]) -> None:
        """Rename, also across file systems; a missing directory above the destination is made.

        Raises:
            FileMissing: a source is not there.
            AlreadyExists: something is at a destination. Nothing is overwritten.
        """
        await self._filesystem.run(lambda: self._move(wanted))

    async def delete(self, asked: Sequence[str]) -> None:
        """Remove files and links (never what they point at); what is not there is no error.

        Raises:
            InvalidFile: one is a directory; nothing was removed.
        """
        await self._filesystem.run(lambda: self._delete(asked))

    def _info(self, asked: str) -> dict[str, object]:
        path = self._filesystem.resolve(asked)
        with explained(asked):
            return entries.describe(path, self._places.lstat(path))

    def _set_permissions(self, wanted: Mapping[str, Permission]) -> None:
        def check(asked: str) -> tuple[str, Ownership]:
            ownership = named_ownership(asked, wanted[asked])
            path = self._filesystem.resolve(asked)
            with explained(asked):
                os.close(self._places.open(path, os.O_PATH))
            return path, ownership

        def change(asked: str, found: tuple[str, Ownership]) -> None:
            path, ownership = found
            with explained(asked):
                fd = self._places.open(path, os.O_PATH)
                try:
                    ownership.apply(fd)
                finally:
                    os.close(fd)

        each(list(wanted), check, change)

    def _move(self, wanted: Sequence[Move]) -> None:
        earlier = _Earlier()

        def check(item: Move) -> tuple[str, str]:
            source = self._filesystem.resolve(item.src, "src")
            target = self._filesystem.resolve(item.dest, "dest")
            with explained(item.src, "src"):
                earlier.check_source(self._places, source)
            with explained(item.dest, "dest"):
                earlier.check_target(self._places, target)
            earlier.add(source, target)
            return source, target

        def change(item: Move, found: tuple[str, str]) -> None:
            source, target = found
            with explained(item.dest, "dest"):
                trees.make_directories(self._places, os.path.dirname(plain(target)), Ownership())
            with explained(item.src, "src"), self._places.place(source) as from_place:
                with explained(item.dest, "dest"), self._places.place(target) as to_place:
                    _move_one(item, from_place, to_place)

        each(wanted, check, change, name=lambda item: item.src)

    def _delete(self, asked: Sequence[str]) -> None:
        def check(name: str) -> str:
            path = self._filesystem.resolve(name)
            with explained(name):
                unless_missing(lambda: self._check_delete(path))
            return path

        def change(name: str, path: str) -> None:
            with explained(name):
                unless_missing(lambda: self._unlink(path))

        each(asked, check, change)

    def _check_delete(self, path: str) -> None:
        with self._places.place(path) as place:
            if stat.S_ISDIR(assert_changeable(place).st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
            if path.endswith(("/", "/.")):
                raise NotADirectoryError(errno.ENOTDIR, "is not a directory", path)

    def _unlink(self, path: str) -> None:
        with self._places.place(path) as place:
            os.unlink(place.name, dir_fd=place.directory_fd)


class _Earlier:
    """What the items before one will have done: so names may change hands within one call."""

    def __init__(self) -> None:
        self._there: dict[str, bool] = {}
        self._above: set[str] = set()

    def add(self, source: str, target: str) -> None:
        """After these two comes the next item."""
        self._there[plain(source)] = False
        path = plain(target)
        self._there[path] = True
        while path != "/" and path not in self._above:
            path = os.path.dirname(path)
            self._above.add(path)

    def decided(self, path: str) -> bool | None:
        """Whether something will be there; None if that is not decided by what came before.

        Below a directory that was moved here it is not known: then it shows when it is done.
        """
        path = plain(path)
        if path in self._there or path in self._above:
            return self._there.get(path, True)
        while path != "/":
            path = os.path.dirname(path)
            if path in self._there:
                return self._there[path]
        return None

    def check_source(self, places: Places, path: str) -> None:
        """Raises OSError if there will be nothing to move."""
        there = self.decided(path)
        if there is None:
            with places.place(path) as place:
                assert_changeable(place)
        elif not there:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def check_target(self, places: Places, path: str) -> None:
        """Raises OSError if something will be there."""
        there = self.decided(path)
        if there is None:
            check_free(places, path)
        elif plain(path) in self._there and there:
            raise FileExistsError(errno.EEXIST, _TAKEN, path)


def _move_one(item: Move, source: Place, target: Place) -> None:
    try:
        moves.move(source, target)
    except moves.SourceRemains as error:
        try:
            with explained(item.src, "src"):
                raise error.cause
        except ExecdError as explanation:
            raise explanation.partly_done([item.src]) from error
    except OSError as error:
        if error.errno in _AT_TARGET:
            raise
        with explained(item.src, "src"):
            raise


def assert_changeable(place: Place) -> os.stat_result:
    """What is there, not followed, once it is clear that its directory may be written to.

    Raises:
        OSError: ENOENT, EACCES, ...
    """
    info = os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
    _assert_writable(place)
    return info


def _assert_writable(place: Place) -> None:
    if not os.access(f"/proc/self/fd/{place.directory_fd}", os.W_OK | os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, "its directory may not be written to", place.path)


def check_free(places: Places, path: str) -> None:
    """Whether something new may be put at `path`, its missing directories made.

    Raises:
        OSError: EEXIST if there is something.
    """
    trees.check_directories(places, os.path.dirname(plain(path)))
    try:
        with places.place(path) as place:
            try:
                os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
            except FileNotFoundError:
                _assert_writable(place)
                return
    except FileNotFoundError:
        return
    raise FileExistsError(errno.EEXIST, _TAKEN, path)


def unless_missing(call: Callable[[], None]) -> None:
    """Call it; that there is nothing is no error."""
    try:
        call()
    except FileNotFoundError:
        return


def named_ownership(asked: str, wanted: Permission) -> Ownership:
    """Mode, owner and group that a client wants for the path it calls `asked`; mode 0 is the same as none.

    Raises:
        InvalidBody: there is no such user or group.
    """
    try:
        return Ownership.named(wanted.mode or None, wanted.owner, wanted.group)
    except UnknownName as error:
        raise InvalidBody(f"{asked}.{error.field}: {error}", {"field": f"{asked}.{error.field}"}) from error
