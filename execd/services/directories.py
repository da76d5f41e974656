"""Directories: making them, and removing them with all that is in them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from execd.errors import ExecdError
from execd.posix import trees
from execd.posix.ownership import Ownership
from execd.services.files import assert_changeable, named_ownership, unless_missing
from execd.services.filesystem import Filesystem, explained
from execd.services.items import each

if TYPE_CHECKING:
    from execd.models.files import Permission


class Directories:
    """All methods may raise what `Filesystem.resolve` and `explained` do, and end as `items.each` says."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._places = filesystem.places

    async def make(self, wanted: Mapping[str, Permission]) -> None:
        """Make directories and those above them. One that is there stays as it is.

        Raises:
            AlreadyExists: there is something else.
            InvalidBody: there is no such user or group; nothing was made.
        """
        await self._filesystem.run(lambda: self._make(wanted))

    async def remove(self, asked: Sequence[str]) -> None:
        """Remove directories with all that is in them, of a symlink only itself; nothing there is no error.

        Raises:
            InvalidFile: one is neither, or is the root directory; nothing was removed. Or another file system
                is mounted in one, which is not entered.
        """
        await self._filesystem.run(lambda: self._remove(asked))

    def _make(self, wanted: Mapping[str, Permission]) -> None:
        def check(asked: str) -> tuple[str, Ownership]:
            ownership = named_ownership(asked, wanted[asked])
            path = self._filesystem.resolve(asked)
            with explained(asked):
                trees.check_directories(self._places, path)
            return path, ownership

        def change(asked: str, found: tuple[str, Ownership]) -> None:
            with explained(asked):
                trees.make_directories(self._places, *found)

        each(list(wanted), check, change)

    def _remove(self, asked: Sequence[str]) -> None:
        def check(name: str) -> str:
            path = self._filesystem.resolve(name)
            with explained(name):
                unless_missing(lambda: self._check_remove(path))
            return path

        def change(name: str, path: str) -> None:
            try:
                with explained(name):
                    unless_missing(lambda: self._remove_one(path))
            except ExecdError as error:
                # What was in it may be gone in part, and is not counted.
                error.executed, error.retryable = "unknown", False
                raise

        each(asked, check, change)

    def _check_remove(self, path: str) -> None:
        with self._places.place(path) as place:
            kind = stat.S_IFMT(assert_changeable(place).st_mode)
        if kind not in (stat.S_IFDIR, stat.S_IFLNK):
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", path)

    def _remove_one(self, path: str) -> None:
        with self._places.place(path) as place:
            info = os.stat(place.name, dir_fd=place.directory_fd, follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                trees.remove(place)  # should it have become a directory meanwhile, that is what was asked for
            else:
                trees.remove_directory(place)
