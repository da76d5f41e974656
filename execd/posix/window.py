"""The smallest names of a directory that matter, kept within a bound while it is read.

A name is compared by its bytes. While it waits it is one string, the "item": its bytes as latin-1, a NUL,
and a letter for its kind: `d` directory, `f` regular file, `l` symlink, `o` anything else. For ASCII names,
nearly all of them, that costs no conversion.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

STEP: Final = 2048
"""Entries read at once, and names added between two sorts: each sort is then a short merge, no long call
that holds up other threads."""
_BEYOND: Final = "\U0010ffff"
"""Greater than any key."""
_NO_SUCH: Final = (errno.ENOENT, errno.ENAMETOOLONG, errno.EINVAL)
_KINDS: Final = {stat.S_IFDIR: "d", stat.S_IFREG: "f", stat.S_IFLNK: "l"}

Test = Callable[[str], object]


def item_of(name: str, kind: str) -> str:
    """The item of a name."""
    return f"{_key(name)}\0{kind}"


def name_of(item: str) -> str:
    """The name of an item."""
    key = item[:-2]
    return key if key.isascii() else os.fsdecode(key.encode("latin-1"))


def _key(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


def kind_of(entry: os.DirEntry[str]) -> str:
    """The letter for a directory entry; needs no system call where the file system tells types."""
    if entry.is_file(follow_symlinks=False):
        return "f"
    if entry.is_dir(follow_symlinks=False):
        return "d"
    return "l" if entry.is_symlink() else "o"


class Window:
    """At most `capacity` items after the item `after` (empty: all are), the smallest of those read.

    `skipped`: entries whose kind could not be told.
    """

    def __init__(self, after: str, capacity: int) -> None:
        self._low = after[:-2]
        self._high = _BEYOND
        self._items: list[str] = []
        self._capacity = capacity
        self._sorted = 0
        self.skipped = 0

    def finish(self) -> tuple[list[str], bool]:
        """The items, last first, and whether there were more."""
        self._items.sort()
        more = self._high is not _BEYOND or len(self._items) > self._capacity
        del self._items[self._capacity :]
        self._items.reverse()
        return self._items, more

    def read(self, entries: Iterator[os.DirEntry[str]]) -> bool:
        """Read on, for `STEP` entries. False: that was the last of them."""
        batch = list(islice(entries, STEP))
        low, high, add = self._low, self._high, self._items.append
        for entry in batch:
            key = entry.name
            if not key.isascii():
                key = _key(key)
            if low < key < high:
                try:
                    add(f"{key}\0{kind_of(entry)}")
                except OSError:
                    self.skipped += 1
        self._trim()
        return len(batch) == STEP

    def read_matching(self, entries: Iterator[os.DirEntry[str]], test: Test | None, entered: Test) -> bool:
        """The same for files and symlinks that pass `test`, and directories that pass `entered`."""
        batch = list(islice(entries, STEP))
        low, high, add = self._low, self._high, self._items.append
        for entry in batch:
            name = entry.name
            try:
                if test is not None and test(name):
                    kind = kind_of(entry)
                    if kind == "o" or (kind == "d" and not entered(name)):
                        continue
                elif entry.is_dir(follow_symlinks=False) and entered(name):
                    kind = "d"
                else:
                    continue
            except OSError:
                self.skipped += 1
                continue
            key = _key(name)
            if low < key < high:
                add(f"{key}\0{kind}")
        self._trim()
        return len(batch) == STEP

    def look_up(self, fd: int, names: frozenset[str], test: Test | None, entered: Test) -> None:
        """The same again where only these `names` can pass: the directory `fd` need not be read."""
        for name in names:
            if _key(name) <= self._low:
                continue
            try:
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            except OSError as error:
                self.skipped += error.errno not in _NO_SUCH
                continue
            kind = _KINDS.get(stat.S_IFMT(mode), "o")
            if (kind == "d" and entered(name)) or (kind in "fl" and test is not None and test(name)):
                self._items.append(item_of(name, kind))

    def _trim(self) -> None:
        if len(self._items) - self._sorted < max(STEP, self._sorted // 8):
            return
        self._items.sort()
        if len(self._items) > self._capacity:
            del self._items[self._capacity :]
            self._high = self._items[-1][:-2]
        self._sorted = len(self._items)
