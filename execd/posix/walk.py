"""A walk over a tree: ordered, bounded, able to go on from any place in it. Blocks: not for the event loop.

Entries come in one fixed order: by the bytes of their names, what is in a directory right after it. Every
directory is opened below its parent, never through a symlink, and read with a window: only the smallest
names after the place reached are kept, so a directory of a million entries costs memory for a page.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Generic, Literal

from execd.posix import mounts
from execd.posix.plan import Place, Plan, S
from execd.posix.window import Window, item_of, name_of

Found = tuple[str, str, str, os.stat_result | None]
"""Directory below the root (ending with a slash, or empty), name, kind (a letter of `window`), lstat(2)."""
Reason = Literal["entries", "deadline", "bytes", "depth"]

WINDOW: Final = 131_072
"""Names kept at once, in all open directories together..."""
_SEARCH_WINDOW: Final = 16_384
"""...and in one of a search at least, whose directories count for nothing in its page."""
_LEFT: Final = 256
"""Names that an outer directory keeps when an inner one needs the room."""
_STATS: Final = 64
"""Entries looked at between two looks at the clock."""
_LOOK_AHEAD: Final = 1.0
"""Seconds that a search with a full page goes on to see whether there is more."""
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class _Directory(Generic[S]):
    """An open directory: `items` are the names still to come, last first; `last` is the one reached."""

    __slots__ = ("depth", "device", "fd", "items", "last", "more", "prefix", "state")

    def __init__(self, fd: int, prefix: str, depth: int, device: int, state: S | None) -> None:
        self.fd = fd
        self.prefix = prefix
        self.depth = depth
        self.device = device
        self.state = state
        self.items: list[str] = []
        self.more = True
        self.last = ""


class Walk(Generic[S]):
    """Iterate over `found()`; `None` from it is a pause in which others may work. `close` it in any case.

    `reason`: why it ended before the end of the tree, None while it has not; `skipped`: entries that could
    not be read or had vanished; `cut`: something lies deeper than `depth`.
    """

    def __init__(self, root_fd: int, plan: Plan[S]) -> None:
        """Owns `root_fd` from here on."""
        self._plan = plan
        self._end = time.monotonic() + plan.seconds
        self._at_end: Reason = "deadline"
        self._searching = plan.glob is not None
        self._progress = False
        self._over = False
        self._closed = False  # the subtree of the last item is done
        self._pseudo: dict[int, bool] = {}
        self.limit = plan.limit
        self.limit_reason: Reason = "entries"
        self.count = 0
        self.skipped = 0
        self.cut = plan.after.cut
        self.reason: Reason | None = None
        self.cancelled = False
        self.seconds_left = plan.seconds
        state = plan.glob.start if plan.glob else None
        self._stack = [_Directory(root_fd, "", 1, os.fstat(root_fd).st_dev, state)]

    def close(self) -> None:
        """Close what is open; `place` and `seconds_left` stay."""
        if self._over:
            return
        self._place = self.place()
        self.seconds_left = max(0.0, self._end - time.monotonic())
        while self._stack:
            os.close(self._stack.pop().fd)
        self._over = True

    def place(self) -> Place:
        """How far it has come: a later walk of the same tree goes on from there."""
        if self._over:
            return self._place
        if not self._stack:
            return Place(b"", inside=False, cut=self.cut)
        top = self._stack[-1]
        if top.last:
            return Place(os.fsencode(top.prefix + name_of(top.last)), not self._closed, self.cut)
        return Place(os.fsencode(top.prefix[:-1]), inside=True, cut=self.cut)

    def found(self) -> Iterator[Found | None]:
        """Every entry in order, until the tree or a limit ends. With a limit reached, goes on until it is
        known whether there is more, for a search `_LOOK_AHEAD` at most.
        """
        if self._plan.depth == 0:
            self._stack[0].more = False
        else:
            self._resume()
        if self.limit == 0 and self._plan.glob is not None:
            self._look_ahead()
        while self._stack and self.reason is None:
            top = self._stack[-1]
            if top.items:
                yield from self._through(top)
            elif top.more:
                yield from self._load(top)
            else:
                os.close(self._stack.pop().fd)
                self._closed = self._progress = True
                if self._stack and self._late():
                    break

    def _through(self, top: _Directory[S]) -> Iterator[Found | None]:
        """The entries of the window, up to the first directory that is entered."""
        items, fd, prefix, plan = top.items, top.fd, top.prefix, self._plan
        with_stat, everything, turn = plan.with_stat, plan.glob is None, 0
        deeper = top.depth < plan.depth or (plan.capped and not self.cut)
        while items:
            turn += 1
            if turn % _STATS == 0 and self._late():
                return
            item = items.pop()
            kind, name = item[-1], item[:-2]
            if not name.isascii():
                name = name_of(item)
            if everything or kind != "d":
                info = self._stat(fd, name) if with_stat else None
                if with_stat and info is None:
                    self.skipped += 1
                    top.last, self._closed = item, True
                    continue
                if self.count >= self.limit:
                    items.append(item)
                    self.reason = self.limit_reason
                    return
                top.last, self._closed = item, kind != "d"
                self.count += 1
                self._progress = True
                yield prefix, name, kind, info
                if not everything and self.count >= self.limit:
                    self._look_ahead()
            else:
                top.last, self._closed = item, False
            if kind == "d":
                if deeper and self._descend(top, name):
                    return
                self._closed = True

    def _stat(self, fd: int, name: str) -> os.stat_result | None:
        """None: it has vanished, may not be looked at, or is no longer what matched."""
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return None
        return None if self._searching and stat.S_ISDIR(info.st_mode) else info

    def _look_ahead(self) -> None:
        self._end = min(self._end, time.monotonic() + _LOOK_AHEAD)
        self._at_end = self.limit_reason

    def _late(self) -> bool:
        """True if the walk is to end here. Never before it got further than it started: a next page that
        goes on from here must not come to the same place.
        """
        if self.cancelled or (self._progress and time.monotonic() >= self._end):
            self.reason = self._at_end
        return self.reason is not None

    def _descend(self, parent: _Directory[S], name: str) -> bool:
        """Open a directory on top of the stack; or, at the deepest level, see whether anything is in it."""
        plan, state = self._plan, parent.state
        if plan.glob is not None and state is not None:
            state = plan.glob.child(state, name)
            if state is None:
                return False
        if parent.depth >= plan.depth and (self.cut or not plan.capped):
            return False
        fd = -1
        try:
            fd = os.open(name, OPEN, dir_fd=parent.fd)
            device = os.fstat(fd).st_dev
            if device != parent.device and self._is_pseudo(device):
                os.close(fd)
                return False
            if parent.depth >= plan.depth:
                with os.scandir(fd) as entries:
                    self.cut = next(entries, None) is not None
                os.close(fd)
                return False
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            if error.errno in _EXHAUSTED:
                raise
            self.skipped += 1
            return False
        self._stack.append(_Directory(fd, f"{parent.prefix}{name}/", parent.depth + 1, device, state))
        self._closed = False
        return True

    def _is_pseudo(self, device: int) -> bool:
        if device not in self._pseudo:
            self._pseudo[device] = mounts.is_pseudo(device)
        return self._pseudo[device]

    def _resume(self) -> None:
        """Open the directories that lead to the place to go on from, as far as they are still there."""
        after = self._plan.after
        names = [os.fsdecode(name) for name in after.path.split(b"/")] if after.path else []
        for number, name in enumerate(names):
            top = self._stack[-1]
            top.last = item_of(name, "d")
            entered = number + 1 < len(names) or after.inside
            self._closed = not (entered and self._descend(top, name))
            if self._closed:
                return

    def _load(self, top: _Directory[S]) -> Iterator[None]:
        """Fill the window of a directory with the smallest names after the one reached."""
        glob, state = self._plan.glob, top.state
        wanted = self.limit - self.count + 1
        window = Window(top.last, min(wanted if glob is None else max(wanted, _SEARCH_WINDOW), WINDOW))
        try:
            if glob is None or state is None:
                with os.scandir(top.fd) as entries:
                    yield from self._read(lambda: window.read(entries))
            else:
                test, entered = state.test, partial(glob.child, state)
                if state.names is not None:
                    window.look_up(top.fd, state.names, test, entered)
                else:
                    with os.scandir(top.fd) as entries:
                        yield from self._read(lambda: window.read_matching(entries, test, entered))
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
            self.skipped += 1  # what was read before counts
        if self.reason is None:
            self.skipped += window.skipped
            top.items, top.more = window.finish()
            self._make_room(len(top.items))

    def _read(self, read: Callable[[], bool]) -> Iterator[None]:
        while read() and not self._late():
            yield None

    def _make_room(self, added: int) -> None:
        """Let outer directories forget names that come last, if the windows together are too large."""
        held = sum(len(directory.items) for directory in self._stack) if added > _LEFT else 0
        for directory in self._stack[:-1]:
            excess = min(held - WINDOW, len(directory.items) - _LEFT)
            if excess > 0:
                del directory.items[:excess]
                directory.more = True
                held -= excess
