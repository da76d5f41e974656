"""Where lines of a file begin and end, found in bounded memory. May block: for file threads."""

from __future__ import annotations

from collections.abc import Callable

Read = Callable[[int, int], bytes]
"""The bytes of the file from one position up to another; none at its end."""

_PIECE = 256 * 1024  # counting newlines keeps other threads waiting, some 100 us for so many bytes
_TURN = 64  # pieces


def nth_newline(data: bytes, nth: int, start: int = 0) -> int:
    """The position of the `nth` newline (from 1) from `start` on, of which there are as many at least."""
    low, high = start, len(data)
    while high - low > 64:
        middle = (low + high) // 2
        found = data.count(b"\n", low, middle)
        if found >= nth:
            high = middle
        else:
            low, nth = middle, nth - found
    at = low - 1
    for _ in range(nth):
        at = data.index(b"\n", at + 1)
    return at


class LineSearch:
    """Looks for `count` lines (None: all) from line `first` (from 1) on, in a file of `size` bytes (0: not
    known). When it is over, those lines joined with newlines are the bytes from `start` up to `stop`.
    """

    def __init__(self, first: int, count: int | None, size: int) -> None:
        self.start = 0
        self.stop = 0
        self._skip = first - 1  # newlines to go before `start`
        self._take = count  # newlines to go before `stop`
        self._size = size
        self._at = 0
        self._last = b""  # the byte before `_at`

    def advance(self, read: Read) -> bool:
        """Look at the next 16 MiB at most; True once it is over."""
        for _ in range(_TURN):
            if self._skip == 0 and self._take is None and self._size > self._at:
                self._at, self._last = self._size, read(self._size - 1, self._size)
                self._end()
                return True
            piece = read(self._at, self._at + _PIECE)
            if not piece:
                self._end()
                return True
            if self._look(piece):
                return True
        return False

    def _look(self, piece: bytes) -> bool:
        within = 0
        if self._skip:
            there = piece.count(b"\n")
            if there < self._skip:
                self._skip -= there
                self._pass(piece)
                return False
            within = nth_newline(piece, self._skip) + 1
            self._skip = 0
            self.start = self._at + within
        if self._take is not None:
            there = piece.count(b"\n", within)
            if there >= self._take:
                self.stop = self._at + nth_newline(piece, self._take, within)
                return True
            self._take -= there
        self._pass(piece)
        return False

    def _pass(self, piece: bytes) -> None:
        self._at += len(piece)
        self._last = piece[-1:]

    def _end(self) -> None:
        if self._skip:
            self.start = self._at
        self.stop = max(self.start, self._at - (self._last == b"\n"))
