"""Listings and searches: bounded walks of trees, in pages or as streams."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from execd.errors import InvalidQuery
from execd.posix.places import plain
from execd.posix.plan import Place, Plan
from execd.posix.walk import OPEN, Found, Walk
from execd.services import cursors
from execd.services.entry_text import FIELDS, EntryText, needs_stat
from execd.services.filesystem import Filesystem, explained
from execd.services.globs import Glob, PatternError, State
from execd.settings import Settings

PAGE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of JSON after which a page that has to be held in memory is truncated."""
OPEN_WALKS: Final = 16
"""Walks at once, each with a descriptor per level; more wait."""
_CHUNK_ENTRIES: Final = 1000
_CHUNK_BYTES: Final = 256 * 1024
_SLICE: Final = 0.1
"""Seconds that a walk works before others that wait for its thread have their turn."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query. `pattern` None: a listing. `depth`: levels, None: all. `limit` None: the default.

    `fields`: those wanted of an entry, None: all. `cursor` empty: from the beginning.
    """

    path: str
    depth: int | None = None
    pattern: str | None = None
    limit: int | None = None
    cursor: str = ""
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a walk ended. `reason` None: it saw everything."""

    reason: str | None
    next_cursor: str | None
    skipped: int


class Listings:
    """Both kinds of walks, on the walk threads of `filesystem`."""

    def __init__(self, filesystem: Filesystem, settings: Settings) -> None:
        self._filesystem = filesystem
        self._settings = settings
        self._room = asyncio.Semaphore(OPEN_WALKS)

    def limit(self, asked: Asked) -> int:
        """Entries in its page."""
        return min(asked.limit or self._settings.list_limit, self._settings.list_ceiling)

    @asynccontextmanager
    async def open(self, asked: Asked, *, held: bool) -> AsyncIterator[Listing]:
        """The listing, begun: what is wrong with the query has been raised. Leaving the block ends it.

        `held`: its page is kept in memory, so its bytes are limited, too.

        Raises:
            InvalidQuery: the pattern, the cursor or a field; `details.field` says which.
            InvalidFile, FileMissing, Forbidden, PathNotAllowed: the path.
        """
        listing = Listing(self._filesystem, self._settings, asked, self.limit(asked), self._room)
        try:
            await listing.begin(PAGE_BYTES if held else None)
            yield listing
        finally:
            listing.leave()


class Listing:
    """One walk: `chunk` by `chunk`, then its `ending`."""

    def __init__(
        self,
        filesystem: Filesystem,
        settings: Settings,
        asked: Asked,
        limit: int,
        room: asyncio.Semaphore,
    ) -> None:
        self._filesystem = filesystem
        self._settings = settings
        self._asked = asked
        self._limit = limit
        self._room = room
        self._in_room = False
        self._lock = threading.Lock()  # held by whoever works on the walk
        self._walk: Walk[State] | None = None
        self._found: Iterator[Found | None] = iter(())
        self._first: list[str] | None = None
        self._skipped = 0  # in walks before a rest
        self._resting = False
        self._left = False
        self._done = False

    async def begin(self, byte_limit: int | None) -> None:
        """Open the directory and take the first chunk: a short listing costs one hop to a thread."""
        self._bytes_left = byte_limit
        await self._enter()
        self._first = await self._filesystem.walk(self._start)

    async def chunk(self) -> list[str] | None:
        """More entries as JSON; may be none yet. None: that was all."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._done or self._left:
            return None
        await self._enter()
        return await self._filesystem.walk(self._work)

    def rest(self) -> None:
        """Hold nothing open until the next `chunk`, which goes on from the same place. Not during one."""
        if not self._done and not self._left:
            self._resting = True
            self._close_if_idle()
            self._leave_room()

    def leave(self) -> None:
        """End the walk as soon as may be, where it is now; its descriptors are closed."""
        self._left = True
        if self._walk is not None:
            self._walk.cancelled = True
        self._close_if_idle()
        self._leave_room()

    @property
    def ending(self) -> Ending:
        """How it ended; to be asked after the last chunk."""
        assert self._walk is not None
        walk = self._walk
        reason: str | None = walk.reason or (None if self._done else "deadline")
        skipped = self._skipped + walk.skipped
        if reason is None:
            return Ending("depth" if walk.cut else None, None, skipped)
        return Ending(reason, cursors.encode(walk.place(), self._query), skipped)

    async def _enter(self) -> None:
        if not self._in_room:
            await self._room.acquire()
            self._in_room = True

    def _leave_room(self) -> None:
        if self._in_room:
            self._in_room = False
            self._room.release()

    def _start(self) -> list[str]:
        asked, settings = self._asked, self._settings
        path = plain(self._filesystem.resolve(asked.path))
        fields = frozenset(FIELDS if asked.fields is None else asked.fields)
        glob = None if asked.pattern is None else _glob(asked.pattern, path)
        self._query = _identity(asked, path)
        self._path = path
        self._plan = Plan(
            depth=settings.list_depth if asked.depth is None else min(asked.depth, settings.list_depth),
            capped=asked.depth is None or asked.depth > settings.list_depth,
            limit=self._limit,
            seconds=settings.list_timeout,
            with_stat=needs_stat(fields),
            glob=glob,
            after=_place(asked.cursor, self._query),
        )
        self._text = EntryText(path, fields)
        with self._lock:
            self._open()
        return self._work()

    def _open(self) -> None:
        with explained(self._asked.path):
            self._walk = Walk(self._filesystem.places.open(self._path, OPEN), self._plan)
        self._found = self._walk.found()

    def _wake(self) -> None:
        walk = self._walk
        assert walk is not None
        self._resting = False
        self._skipped += walk.skipped
        self._plan = replace(
            self._plan,
            after=walk.place(),
            limit=self._plan.limit - walk.count,
            seconds=walk.seconds_left,
        )
        self._open()

    def _work(self) -> list[str]:
        with self._lock:
            if self._resting and not self._left:
                self._wake()
            entries = [] if self._left else self._entries()
        if self._left or self._done:
            self._close_if_idle()
        return entries

    def _entries(self) -> list[str]:
        walk, text = self._walk, self._text
        assert walk is not None
        entries: list[str] = []
        size, slice_end = 0, time.monotonic() + _SLICE
        with explained(self._asked.path):
            for found in self._found:
                if found is None:
                    if time.monotonic() >= slice_end:
                        return entries
                    continue
                entry = text(*found)
                entries.append(entry)
                size += len(entry) + 1
                if self._bytes_left is not None and size >= self._bytes_left:
                    walk.limit, walk.limit_reason = walk.count, "bytes"
                if size >= _CHUNK_BYTES or len(entries) >= _CHUNK_ENTRIES:
                    break
            else:
                self._done = True
        if self._bytes_left is not None:
            self._bytes_left -= size
        return entries

    def _close_if_idle(self) -> None:
        # Whoever holds the lock looks at `_left` after it, and closes then.
        if self._walk is not None and self._lock.acquire(blocking=False):
            try:
                self._walk.close()
            finally:
                self._lock.release()


def _glob(pattern: str, path: str) -> Glob:
    try:
        return Glob(pattern, path)
    except PatternError as error:
        details: dict[str, object] = {"field": "pattern", "position": error.position}
        raise InvalidQuery(f"pattern {pattern[:200]!r} {error}", details) from None


def _place(cursor: str, query: bytes) -> Place:
    try:
        return cursors.decode(cursor, query) if cursor else Place()
    except cursors.WrongCursor as error:
        raise InvalidQuery(f"cursor {cursor[:80]!r} {error}", {"field": "cursor"}) from None


def _identity(asked: Asked, path: str) -> bytes:
    """What must be the same for a cursor to be good: limit and fields may change."""
    parts = (path, "" if asked.depth is None else str(asked.depth), asked.pattern)
    return b"\0".join(b"" if part is None else os.fsencode(part) for part in parts)
