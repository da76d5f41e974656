"""Replacing text in files: bytes for bytes, each file as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from execd.errors import Conflict, CountMismatch
from execd.posix import entries, replacing
from execd.posix.atomic import AtomicFile
from execd.posix.reading import open_regular
from execd.posix.replacing import Replacer
from execd.services.filesystem import Filesystem, explained
from execd.services.items import each

if TYPE_CHECKING:
    from execd.models.files import Replacement

_ATTEMPTS: Final = 5
"""Times that a file is read again because somebody else has written it meanwhile."""


class _Changed(Exception):
    """The file is no longer the one that was read."""


@dataclass(frozen=True, slots=True)
class _Edit:
    path: str
    replacer: Replacer
    expected: int | None
    nothing_to_do: bool
    """No match, or `old` is `new`: the file is not touched."""
    count: int
    """Of matches that were seen when it was checked: all of them if `nothing_to_do`."""


class Replacements:
    """May raise what `Filesystem.resolve` and `explained` do, and ends as `items.each` says."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._places = filesystem.places

    async def replace(self, wanted: Mapping[str, Replacement]) -> dict[str, int]:
        """Replace every `old` by `new`; how many there were, by the names that were asked for.

        A file keeps its mode, its owner, and the symlink that leads to it; it becomes a new inode, so its
        other hard links keep the old content. A file without a match is not touched.

        Raises:
            FileMissing, InvalidFile, Forbidden: one is not there, no regular file, or may not be read and
                written; no file was changed.
            CountMismatch: one has not as many matches as expected; it was not changed.
            Conflict: one is written by others all the time.
        """
        return await self._filesystem.run(lambda: self._replace(wanted))

    def _replace(self, wanted: Mapping[str, Replacement]) -> dict[str, int]:
        counts: dict[str, int] = {}

        def change(asked: str, edit: _Edit) -> None:
            counts[asked] = edit.count if edit.nothing_to_do else self._change(asked, edit)

        each(list(wanted), lambda asked: self._check(asked, wanted[asked]), change)
        return counts

    def _check(self, asked: str, wanted: Replacement) -> _Edit:
        path = self._filesystem.resolve(asked)
        replacer = Replacer(wanted.old.encode(), wanted.new.encode())
        same = replacer.old == replacer.new
        with explained(asked):
            with self._opened(path) as (fd, _), closing(AtomicFile(self._places, path)):
                count = 0
                for found in replacer.count(_chunks(fd, replacer)):
                    count += found
                    if count and wanted.expected_count is None and not same:
                        break  # there is something to do: how much is counted when it is done
        _assert_expected(asked, wanted.expected_count, count)
        return _Edit(path, replacer, wanted.expected_count, same or not count, count)

    def _change(self, asked: str, edit: _Edit) -> int:
        for _ in range(_ATTEMPTS):
            try:
                with explained(asked):
                    return self._change_once(asked, edit)
            except _Changed:
                continue
        raise Conflict(f"path: {asked!r} is written by others all the time", {"field": "path", "path": asked})

    def _change_once(self, asked: str, edit: _Edit) -> int:
        with self._opened(edit.path) as (fd, info), closing(AtomicFile(self._places, edit.path)) as file:
            count = edit.replacer.replace(_chunks(fd, edit.replacer), file.write)

            def check(current: os.stat_result | None) -> None:
                if current is None or entries.etag(current) != entries.etag(info):
                    raise _Changed

            if edit.expected is not None and count != edit.expected:
                check(os.fstat(fd))
                _assert_expected(asked, edit.expected, count)
            if count:
                file.commit(check)
            return count

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        handle, info = open_regular(self._places, path)
        with closing(handle), handle.use() as fd:
            yield fd, info


def _chunks(fd: int, replacer: Replacer) -> Iterator[bytes]:
    return replacing.chunks(fd, max(replacing.WINDOW, len(replacer.old)))


def _assert_expected(asked: str, expected: int | None, count: int) -> None:
    if expected is not None and count != expected:
        raise CountMismatch(
            f"path: {asked!r} holds it {count} times, expected were {expected}",
            {"field": f"{asked}.expected_count", "path": asked, "expected": expected, "count": count},
        )
