"""The output of one execution: a bounded log with absolute byte offsets.

Pure: no process, no HTTP, no disk. Whoever owns a log writes its `overflow()` to disk and says so with
`spilled()`; the log knows which bytes are in memory, which are on disk and which are gone.

Offsets count the bytes of both streams together, in the order in which they were appended. The log is
a row of blocks, each of one stream; `Index` remembers where every block began, so an offset can be
told apart into a stdout and a stderr offset even after its block has left memory.
"""

from __future__ import annotations

from collections.abc import Callable

from execd.services.blocks import (
    BLOCK_BYTES,
    BLOCK_OVERHEAD,
    MAX_BLOCKS,
    STDOUT,
    Block,
    Index,
    Piece,
)
from execd.services.reader import Reader


class OutputLog:
    """Bytes [start, end) of an execution's output; `start` moves up when the oldest bytes go.

    Invariants: start <= memory_start <= end. Memory holds [memory_start, end), at most `memory_limit`
    bytes before `full`. While a reader is attached, no byte that it has not read is dropped: the log
    turns `full` instead, and its owner stops appending until `room`.
    """

    __slots__ = (
        "_block_limit",
        "_blocks",
        "_disk_limit",
        "_in_flight",
        "_index",
        "_readers",
        "_stdout_end",
        "end",
        "memory_bytes",
        "memory_limit",
        "on_progress",
        "sealed_at",
        "start",
    )

    def __init__(self, memory_limit: int, disk_limit: int, event_limit: int = BLOCK_BYTES) -> None:
        """`event_limit`: the bytes after which a longer line is split. Appends share a block only up to
        there, so nothing follows a split in its block, and every reader splits alike.
        """
        self.memory_limit = memory_limit
        self._block_limit = min(BLOCK_BYTES, event_limit)
        self._disk_limit = disk_limit
        self._blocks: list[Block] = []
        self._index = Index()
        self._readers: list[Reader] = []
        self._in_flight = 0  # blocks at the front that are being written to disk
        self._stdout_end = 0
        self.memory_bytes = 0
        self.start = 0
        self.end = 0
        self.sealed_at: int | None = None
        """Where the execution's own output ends; bytes after it come from processes it left behind."""
        self.on_progress: Callable[[], None] | None = None
        """Called when a reader read or left, or the disk caught up: there may be room again."""

    @property
    def memory_start(self) -> int:
        """Offset of the oldest byte in memory; what is kept before it is on disk."""
        return self._blocks[0].start if self._blocks else self.end

    @property
    def full(self) -> bool:
        """True when nothing may be appended until a reader reads or the disk catches up."""
        return self.memory_bytes >= self.memory_limit

    @property
    def attached(self) -> int:
        """How many readers are attached."""
        return len(self._readers)

    def dropped(self) -> tuple[int, int]:
        """How many bytes of stdout and of stderr are gone from the front."""
        return self.offsets_at(self.start)

    def totals(self) -> tuple[int, int]:
        """How many bytes of stdout and of stderr were ever appended."""
        return self._stdout_end, self.end - self._stdout_end

    def offsets_at(self, offset: int) -> tuple[int, int]:
        """The stdout and stderr offsets that the log offset `offset` (start <= offset <= end) means."""
        if offset >= self.end or not len(self._index):
            return self._stdout_end, self.end - self._stdout_end
        position = max(0, self._index.find(offset))
        stdout = self._index.stdout_before(position, offset)
        return stdout, offset - stdout

    def append(self, stream: int, data: bytes) -> None:
        """Add bytes of one stream and wake the readers."""
        size = len(data)
        if not size:
            return
        last = self._blocks[-1] if len(self._blocks) > self._in_flight else None
        if self.end == self.sealed_at:
            last = None  # a reader stops at the seal: no block may lie across it
        if last and last.stream == stream and len(last.data) + size < self._block_limit:
            if not isinstance(last.data, bytearray):
                last.data = bytearray(last.data)
            last.data += data
            self.memory_bytes += size
        else:
            self._index.add(self.end, stream, self._stdout_end)
            self._blocks.append(Block(self.end, stream, data))
            self.memory_bytes += size + BLOCK_OVERHEAD
        self.end += size
        if stream == STDOUT:
            self._stdout_end += size
        for reader in self._readers:
            reader.wake.set()

    def seal(self) -> None:
        """Mark the end of the execution's own output and wake the readers."""
        self.sealed_at = self.end
        for reader in self._readers:
            reader.wake.set()

    def overflow(self, keep: int) -> list[bytes | bytearray]:
        """The oldest blocks in memory beyond `keep` bytes, to be written to disk at `memory_start`.

        Empty if there are none, if some are being written already, or if writing them would take
        the place of bytes that a reader has not read. Call `spilled` when they are written.
        """
        if self._in_flight or self.memory_bytes <= keep:
            return []
        spare, batch = self.memory_bytes - keep, 0
        unread_on_disk = self.memory_start - self._needed_from()
        room = self._disk_limit - unread_on_disk
        if unread_on_disk > 0 and len(self._index) >= MAX_BLOCKS:
            return []
        for block in self._blocks:
            size = len(block.data)
            if batch >= spare or batch + size > room:
                break
            batch += size
            self._in_flight += 1
        self._move_start(min(self._kept_from(), self.memory_start))
        return [block.data for block in self._blocks[: self._in_flight]]

    def spilled(self) -> None:
        """What `overflow` gave is on disk: forget its memory; the disk keeps the last `disk_limit`."""
        self._forget(self._in_flight)
        oldest = max(self.start, self.memory_start - self._disk_limit)
        if len(self._index) > MAX_BLOCKS:
            oldest = max(oldest, self._index.start(len(self._index) - MAX_BLOCKS))
        self._move_start(min(oldest, self.memory_start, self._needed_from()))

    def drop_overflow(self) -> None:
        """There is no disk: drop what `overflow` gave, and with it whatever was kept before."""
        self._forget(self._in_flight)
        self._move_start(self.memory_start)

    def keep_overflow(self) -> None:
        """What `overflow` gave was not written after all: keep it in memory."""
        self._in_flight = 0

    def drop_disk(self) -> None:
        """The bytes on disk are gone."""
        self._move_start(self.memory_start)

    def unread_overflow(self) -> bool:
        """True if an attached reader still needs bytes of the oldest blocks beyond the limit."""
        return self._needed_from() < self.memory_start + sum(
            len(block.data) for block in self._blocks[: self._in_flight]
        )

    def reader(self, offset: int = 0) -> Reader:
        """Attach a reader at `offset` (clamped to what is kept). Leaving its `with` block detaches it."""
        reader = Reader(self, min(max(offset, self._kept_from()), self.end))
        reader.wake.set()  # what is there already is news to it
        self._readers.append(reader)
        return reader

    def read_memory(self, offset: int, limit: int) -> list[Piece]:
        """Pieces from `offset` (not before `memory_start`) on: the rest of its block, then whole blocks
        while all of them have at most `limit` bytes.
        """
        position = len(self._blocks)
        while position and self._blocks[position - 1].start > offset:
            position -= 1
        pieces: list[Piece] = []
        for block in self._blocks[max(0, position - 1) :]:
            skip = offset - block.start
            size = len(block.data) - skip
            if size <= 0 or (pieces and size > limit):
                break
            data = block.data
            if skip or isinstance(data, bytearray):
                data = bytes(memoryview(data)[skip:])
            offset += size
            limit -= size
            pieces.append(Piece(block.stream, data, offset, block.start))
        return pieces

    def span_on_disk(self, offset: int, limit: int) -> int:
        """How many bytes to read from disk at `offset`: up to the end of its block, or of the last block
        that ends within `limit` bytes.
        """
        position = self._index.find(offset + limit)
        end = self._index.start(position) if position >= 0 else offset
        if end <= offset:
            position += 1
            end = self._index.start(position) if position < len(self._index) else self.memory_start
        return min(end, self.memory_start) - offset

    def read_raw(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of both streams from `offset`, which must not be before `memory_start`."""
        pieces = self.read_memory(offset, limit)
        return b"".join([piece.data for piece in pieces])[:limit]

    def pieces_at(self, offset: int, data: bytes) -> list[Piece]:
        """Take apart bytes that were read from disk at `offset` into pieces of one stream each."""
        pieces = []
        position = self._index.find(offset)
        view = memoryview(data)
        while view:
            last = position + 1 >= len(self._index)
            end = self.end if last else self._index.start(position + 1)
            part = bytes(view[: end - offset])
            view = view[len(part) :]
            offset += len(part)
            start = self._index.start(position)
            pieces.append(Piece(self._index.stream(position), part, offset, start))
            position += 1
        return pieces

    def _kept_from(self) -> int:
        # Writing to disk takes the place of what lies too far behind, from the moment it begins.
        if not self._in_flight:
            return self.start
        written = self._blocks[self._in_flight].start if self._in_flight < len(self._blocks) else self.end
        return max(self.start, written - self._disk_limit)

    def _needed_from(self) -> int:
        return min((reader.offset for reader in self._readers if not reader.at_end), default=self.end)

    def _forget(self, blocks: int) -> None:
        for block in self._blocks[:blocks]:
            self.memory_bytes -= len(block.data) + BLOCK_OVERHEAD
        del self._blocks[:blocks]
        self._in_flight = 0

    def _move_start(self, offset: int) -> None:
        self.start = offset
        self._index.forget_before(offset)

    def detach(self, reader: Reader) -> None:
        """Called by `Reader.close`."""
        self._readers.remove(reader)
        self.note_progress()

    def note_progress(self) -> None:
        """There may be room again: tell the owner."""
        if self.on_progress is not None:
            self.on_progress()
