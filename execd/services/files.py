"""Files and directories: what they are, and changing them. Every call of several items checks them all
first, then does them in order; an error then says which were done.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from execd.errors import ExecdError, FileMissing, InvalidBody, InvalidFile
from execd.posix import entries, moves, trees
from execd.posix.ownership import Ownership, UnknownName
from execd.services.filesystem import Filesystem, explained

if TYPE_CHECKING:
    from execd.models.files import Move, Permission

Item = TypeVar("Item")


class Files:
    """All methods may raise what `Filesystem.resolve` and `explained` do."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._places = filesystem.places

    async def info(self, asked: Sequence[str]) -> dict[str, dict[str, object]]:
        """What lstat says of each, by the names that were asked for.

        Raises:
            FileMissing: one of them is not there.
        """
        return await self._filesystem.run(lambda: {name: self._info(name) for name in asked})

    async def set_permissions(self, wanted: Mapping[str, Permission]) -> None:
        """Set mode, owner and group. A symlink's target is what is meant.

        Raises:
            InvalidBody: there is no such user or group.
        """
        await self._filesystem.run(lambda: self._set_permissions(wanted))

    async def move(self, wanted: Sequence[Move]) -> None:
        """Rename, also across file systems; a missing directory above the destination is made.

        Raises:
            AlreadyExists: something is at the destination. Nothing is overwritten.
        """
        await self._filesystem.run(lambda: self._move(wanted))

    async def delete(self, asked: Sequence[str]) -> None:
        """Remove files and links (never what they point at); what is not there is no error.

        Raises:
            InvalidFile: one is a directory; nothing was removed.
        """
        await self._filesystem.run(lambda: self._delete(asked))

    async def make_directories(self, wanted: Mapping[str, Permission]) -> None:
        """Make directories and those above them. One that is there stays as it is.

        Raises:
            AlreadyExists: there is something else.
        """
        await self._filesystem.run(lambda: self._make_directories(wanted))

    async def remove_directories(self, asked: Sequence[str]) -> None:
        """Remove directories with all that is in them; one that is not there is no error.

        Raises:
            InvalidFile: one is a file, or the root directory; nothing was removed.
        """
        await self._filesystem.run(lambda: self._remove_directories(asked))

    def _info(self, asked: str) -> dict[str, object]:
        path = self._filesystem.resolve(asked)
        with explained(asked):
            if path.strip("/") == "":
                return entries.describe(path, os.stat(self._checked_root()))
            with self._places.place(path) as place:
                found = os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
            return entries.describe(path, found)

    def _checked_root(self) -> str:
        os.close(self._places.open("/", os.O_PATH))
        return "/"

    def _set_permissions(self, wanted: Mapping[str, Permission]) -> None:
        def check(asked: str) -> None:
            _ownership(asked, wanted[asked])
            with explained(asked):
                os.close(self._places.open(self._filesystem.resolve(asked), os.O_PATH))

        def change(asked: str) -> None:
            ownership = _ownership(asked, wanted[asked])
            with explained(asked):
                fd = self._places.open(self._filesystem.resolve(asked), os.O_PATH)
                try:
                    ownership.apply(fd)
                finally:
                    os.close(fd)

        _each(list(wanted), check, change)

    def _move(self, wanted: Sequence[Move]) -> None:
        def check(item: Move) -> None:
            source, target = (
                self._filesystem.resolve(item.src, "src"),
                self._filesystem.resolve(item.dest, "dest"),
            )
            with explained(item.src, "src"), self._places.place(source) as place:
                os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
            with explained(item.dest, "dest"):
                if os.path.lexists(target):
                    raise FileExistsError(17, "is there already", target)

        def change(item: Move) -> None:
            source, target = (
                self._filesystem.resolve(item.src, "src"),
                self._filesystem.resolve(item.dest, "dest"),
            )
            with explained(item.dest, "dest"):
                trees.make_directories(self._places, os.path.dirname(target), Ownership())
            with explained(item.src, "src"), self._places.place(source) as from_place:
                with explained(item.dest, "dest"), self._places.place(target) as to_place:
                    moves.move(from_place, to_place)

        _each(wanted, check, change, name=lambda item: item.src)

    def _delete(self, asked: Sequence[str]) -> None:
        def check(name: str) -> None:
            info = self._lstat(name)
            if info is not None and stat.S_ISDIR(info.st_mode):
                raise InvalidFile(f"path: {name!r} is a directory", {"field": "path", "path": name})

        def change(name: str) -> None:
            try:
                with explained(name), self._places.place(self._filesystem.resolve(name)) as place:
                    os.unlink(place.name, dir_fd=place.directory_fd)
            except FileMissing:
                return

        _each(asked, check, change)

    def _make_directories(self, wanted: Mapping[str, Permission]) -> None:
        def check(asked: str) -> None:
            _ownership(asked, wanted[asked])
            path = self._filesystem.resolve(asked)
            with explained(asked):
                if os.path.lexists(path) and not os.path.isdir(path):
                    raise FileExistsError(17, "is there, and is no directory", path)

        def change(asked: str) -> None:
            with explained(asked):
                ownership = _ownership(asked, wanted[asked])
                trees.make_directories(self._places, self._filesystem.resolve(asked), ownership)

        _each(list(wanted), check, change)

    def _remove_directories(self, asked: Sequence[str]) -> None:
        def check(name: str) -> None:
            if os.path.realpath(self._filesystem.resolve(name)) == "/":
                raise InvalidFile(f"path: {name!r} is the root directory", {"field": "path", "path": name})
            info = self._lstat(name)
            if info is not None and not stat.S_ISDIR(info.st_mode):
                raise InvalidFile(f"path: {name!r} is not a directory", {"field": "path", "path": name})

        def change(name: str) -> None:
            try:
                with explained(name), self._places.place(self._filesystem.resolve(name)) as place:
                    trees.remove_tree(place)
            except FileMissing:
                return

        _each(asked, check, change)

    def _lstat(self, asked: str) -> os.stat_result | None:
        try:
            with explained(asked), self._places.place(self._filesystem.resolve(asked)) as place:
                return os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
        except FileMissing:
            return None


def _ownership(asked: str, wanted: Permission) -> Ownership:
    try:
        return Ownership.named(wanted.mode or None, wanted.owner, wanted.group)
    except UnknownName as error:
        field = f"{asked}.{error.field}"
        raise InvalidBody(f"{field}: {error}", {"field": field}) from error


def _each(
    items: Sequence[Item],
    check: Callable[[Item], None],
    change: Callable[[Item], None],
    name: Callable[[Item], str] = str,
) -> None:
    for item in items:
        check(item)
    done: list[str] = []
    for item in items:
        try:
            change(item)
        except ExecdError as error:
            raise error.partly_done(done) from error
        done.append(name(item))
