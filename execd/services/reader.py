"""Reading an output log from some offset on, as it grows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from execd.services.blocks import Piece

if TYPE_CHECKING:
    from execd.services.output import OutputLog


class Reader:
    """One attached reader of a log: everything before `offset` was read.

    `wake` is set whenever there may be more to read.
    """

    __slots__ = ("_log", "offset", "wake")

    def __init__(self, log: OutputLog, offset: int) -> None:
        self._log = log
        self.offset = offset
        self.wake = asyncio.Event()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.detach(self)

    @property
    def at_end(self) -> bool:
        """True when the log is sealed and everything before the seal was read."""
        return self._log.sealed_at is not None and self.offset >= self._log.sealed_at

    def on_disk(self, limit: int) -> tuple[int, int] | None:
        """The (offset, length) to read from disk next, or None if the next bytes are in memory."""
        if self.offset >= self._log.memory_start or self.at_end:
            return None
        span, sealed_at = self._log.span_on_disk(self.offset, limit), self._log.sealed_at
        return self.offset, span if sealed_at is None else min(span, sealed_at - self.offset)

    def take(self, limit: int) -> list[Piece]:
        """The next pieces from memory, about `limit` bytes in all; nothing beyond the seal."""
        pieces = [] if self.at_end else self._log.read_memory(self.offset, limit)
        sealed_at = self._log.sealed_at
        if sealed_at is not None:
            pieces = [piece for piece in pieces if piece.end <= sealed_at]
        if pieces:
            self._advance(pieces[-1].end)
        return pieces

    def take_loaded(self, offset: int, data: bytes) -> list[Piece]:
        """The pieces of `data`, which was read from disk at `offset` as `on_disk` asked."""
        pieces = self._log.pieces_at(offset, data)
        self._advance(offset + len(data))
        return pieces

    def _advance(self, offset: int) -> None:
        self.offset = offset
        self._log.note_progress()
