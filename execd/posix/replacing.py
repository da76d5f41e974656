"""Replacing bytes in files of any size, as bytes.replace would on the whole of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

WINDOW = 256 * 1024
"""Bytes read at a time, if what is looked for is not longer."""
_JOINED = 4 * 1024 * 1024  # bytes that are put together before they are written
Write = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Replacer:
    """Every `old`, from the left and without overlap, becomes `new`. Pure: no I/O.

    Holds a chunk and what may be the beginning of a match at its end.
    """

    old: bytes
    new: bytes

    def count(self, chunks: Iterable[bytes]) -> Iterator[int]:
        """How many matches end in each chunk."""
        for found in self._split(chunks):
            yield len(found) - 1

    def replace(self, chunks: Iterable[bytes], write: Write) -> int:
        """Write the content with its matches replaced; how many there were."""
        count = 0
        for pieces in self._split(chunks):
            matches = len(pieces) - 1
            count += matches
            if matches * len(self.new) <= _JOINED:
                if joined := self.new.join(pieces):
                    write(joined)
                continue
            for index, piece in enumerate(pieces):
                if index:
                    write(self.new)
                if piece:
                    write(piece)
        return count

    def _split(self, chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
        """The content between matches, chunk by chunk."""
        held, kept = b"", len(self.old) - 1
        for chunk in chunks:
            pieces = (held + chunk).split(self.old)
            last = pieces[-1]
            cut = max(0, len(last) - kept)
            pieces[-1], held = last[:cut], last[cut:]
            yield pieces
        if held:
            yield [held]


def chunks(fd: int, length: int) -> Iterator[bytes]:
    """The content of the file from its start, `length` bytes at a time."""
    at = 0
    while data := os.pread(fd, length, at):
        yield data
        at += len(data)
