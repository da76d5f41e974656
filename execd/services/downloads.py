"""Files given to clients: whole, a range, or some lines. Small ones are read in one go, others as they go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from execd.errors import RangeNotSatisfiable
from execd.posix import entries, reading
from execd.posix.handle import Handle
from execd.posix.lines import LineSearch
from execd.posix.reading import PIECE
from execd.services.filesystem import Filesystem, explained
from execd.services.ranges import Conditions, Unsatisfiable
from execd.services.transfers import Source, Tail, Transfer


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is ready to be sent. `name` is its last name as asked for.

    `size`: all of its bytes; None: they are made up as they are read, so neither size nor tag nor time mean
    anything. `part`: where the wanted range begins and ends; None: all of it. `content`: the wanted bytes, or
    where they come from (the receiver closes it); None: the client has them already.
    """

    name: str
    content: bytes | Source | None
    size: int | None = None
    tag: str = ""
    modified: int = 0
    """Seconds since 1970."""
    part: tuple[int, int] | None = None


class Lines:
    """Some lines of a file, being looked for. Whoever has it closes it, or the `Transfer` that it found."""

    def __init__(self, filesystem: Filesystem, file: Handle, search: LineSearch) -> None:
        self._filesystem = filesystem
        self._file = file
        self._search = search

    async def found(self) -> Transfer | None:
        """Look a little further: at 16 MiB of the file at most. None: not yet found."""
        if not await self._filesystem.run(self._advance):
            return None
        return Transfer(self._filesystem, self._file, self._search.start, self._search.stop)

    def close(self) -> None:
        """Give the file up."""
        self._filesystem.later(self._file.close)

    def _advance(self) -> bool:
        with self._file.use() as fd:
            return self._search.advance(partial(reading.read_at, fd))


class Downloads:
    """Reads files for clients."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem

    async def open(self, asked: str, conditions: Conditions) -> Download:
        """The file that a client calls `asked`, or the part of it that the conditions name.

        Raises:
            InvalidFile: a directory, FIFO, socket or device, or no possible path.
            RangeNotSatisfiable: no byte of it is in the ranges.
            FileMissing, Forbidden, PathNotAllowed: as named.
        """
        return await self._filesystem.run(partial(self._open, asked, conditions))

    async def lines(self, asked: str, first: int, count: int | None) -> bytes | Lines:
        """`count` lines (None: all that there are) from line `first` (from 1) on, joined with newlines: from
        a small file at once, else still to be found. Raises what `open` does.
        """
        return await self._filesystem.run(partial(self._lines, asked, first, count))

    def _open(self, asked: str, conditions: Conditions) -> Download:
        with self._opened(asked) as file:
            size, fd = file.info.st_size, file.fd
            if not size and (begun := reading.read_on(fd, PIECE)):
                return Download(file.name, self._made_up(file, begun))
            modified, tag = file.info.st_mtime_ns // 1_000_000_000, entries.etag(file.info)
            if conditions.known(tag):
                return Download(file.name, None, size, tag, modified)
            try:
                part = conditions.selected(size, tag, modified)
            except Unsatisfiable:
                raise RangeNotSatisfiable(
                    f"{asked!r} has {size} bytes, none of them in the range", size
                ) from None
            start, stop = part or (0, size)
            if stop - start > PIECE:
                content = Transfer(self._filesystem, file.keep(), start, stop)
                return Download(file.name, content, size, tag, modified, part)
            data = reading.read_at(fd, start, stop)
            if len(data) < stop - start:  # /sys says 4096 of everything; or it was cut short just now
                return Download(file.name, self._made_up(file, reading.read_on(fd, PIECE)))
            return Download(file.name, data, size, tag, modified, part)

    def _made_up(self, file: _Open, begun: bytes) -> bytes | Source:
        return begun if len(begun) < PIECE else Tail(self._filesystem, file.keep(), begun)

    def _lines(self, asked: str, first: int, count: int | None) -> bytes | Lines:
        with self._opened(asked) as file:
            size = file.info.st_size
            if size <= PIECE:
                data = reading.read_on(file.fd, PIECE)
                if len(data) < PIECE:
                    search = LineSearch(first, count, len(data))
                    while not search.advance(lambda start, stop: data[start:stop]):
                        pass
                    return data[search.start : search.stop]
            known = size if size >= PIECE else 0
            return Lines(self._filesystem, file.keep(), LineSearch(first, count, known))

    @contextmanager
    def _opened(self, asked: str) -> Iterator[_Open]:
        path = self._filesystem.resolve(asked)
        with explained(asked):
            handle, info = reading.open_regular(self._filesystem.places, path)
            with handle.use() as fd:
                file = _Open(handle, info, fd, os.path.basename(path))
                try:
                    yield file
                finally:
                    if not file.kept:
                        handle.close()


@dataclass(slots=True)
class _Open:
    """A file that is open within a block, and beyond it if it is kept. `info` is from fstat."""

    handle: Handle
    info: os.stat_result
    fd: int
    name: str
    kept: bool = False

    def keep(self) -> Handle:
        """Whoever asks for it closes it."""
        self.kept = True
        return self.handle
