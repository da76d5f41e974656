"""What an output log is made of: blocks of one stream each, and the index of where they began. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

STDOUT: Final = 0
STDERR: Final = 1

BLOCK_BYTES: Final = 32 * 1024
"""Small appends to one stream share a block up to this size."""
BLOCK_OVERHEAD: Final = 160
"""What a block costs in memory besides its bytes, counted against the limit (bytes, measured)."""
MAX_BLOCKS: Final = 65_536
"""Blocks remembered per log (16 bytes each). Reached only when two streams alternate in tiny writes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Output of one stream as a reader gets it: `data` ends at the log offset `end`.

    `block` is the offset at which the block around it began (the same for every reader).
    """

    stream: int
    data: bytes
    end: int
    block: int


class Block:
    """Bytes of one stream that were appended together."""

    __slots__ = ("data", "start", "stream")

    def __init__(self, start: int, stream: int, data: bytes) -> None:
        self.start = start
        self.stream = stream
        self.data: bytes | bytearray = data


class Index:
    """Where each kept block starts: its offset, its stream, and the stdout bytes before it."""

    __slots__ = ("_keys", "_stdout")

    def __init__(self) -> None:
        self._keys = array("Q")  # offset << 1 | stream
        self._stdout = array("Q")

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, start: int, stream: int, stdout_before: int) -> None:
        self._keys.append(start << 1 | stream)
        self._stdout.append(stdout_before)

    def find(self, offset: int) -> int:
        """The position of the block that holds the byte at `offset`."""
        return bisect_right(self._keys, offset << 1 | 1) - 1

    def start(self, position: int) -> int:
        return self._keys[position] >> 1

    def stream(self, position: int) -> int:
        return self._keys[position] & 1

    def stdout_before(self, position: int, offset: int) -> int:
        """Stdout bytes before `offset`, which lies in the block at `position` or at its end."""
        before = self._stdout[position]
        if self.stream(position) == STDOUT:
            before += offset - self.start(position)
        return before

    def forget_before(self, offset: int) -> None:
        """Drop the blocks that end at or before `offset`."""
        position = self.find(offset)
        if position > 0:
            del self._keys[:position]
            del self._stdout[:position]
