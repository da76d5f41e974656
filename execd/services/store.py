"""Kept output on disk: one ring file an execution, under one budget, never more than the disk can spare.

No disk, no room, or no right to write is not a failure of the command: its log then keeps what memory
holds, and `Spool.fault` says so wherever the output is shown.
"""

from __future__ import annotations

import errno
import os
from asyncio import AbstractEventLoop, Future
from concurrent.futures import Executor
from typing import Final

from execd.logs import WARNING, log
from execd.posix.ringfile import RingFile
from execd.services.output import OutputLog
from execd.services.statedir import StateDirectory
from execd.settings import Settings

SMALL_BYTES: Final = 64 * 1024
"""Output of a finished execution up to this size stays in memory..."""
SMALL_TOTAL: Final = 8 * 1024 * 1024
"""...while all of it together is at most this; then the oldest goes to disk."""
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class OutputStore:
    """The budget that all spools share. Called on the event loop; file work runs in `executor`."""

    def __init__(
        self, directory: StateDirectory, settings: Settings, executor: Executor, loop: AbstractEventLoop
    ) -> None:
        self.directory = directory
        self.executor = executor
        self.loop = loop
        self.capacity = settings.output_disk
        self._total = settings.output_total
        self._min_free = settings.min_free_disk / 100
        self._finished: dict[Spool, None] = {}  # oldest first
        self._small: dict[Spool, None] = {}  # those of them with output in memory
        self.disk_bytes = 0
        """Bytes that all spools have on disk."""
        self.small_bytes = 0
        """Bytes that finished executions have in memory, not counting what is on its way to disk."""

    def spool(self, execution_id: str, output: OutputLog) -> Spool:
        """The disk side of one log. Makes no file before there is something to write."""
        return Spool(self, f"{execution_id}.out", output)

    def make_room(self, size: int) -> bool:
        """Drop the oldest finished output until `size` more bytes fit the budget; False if they cannot."""
        while self.disk_bytes + size > self._total and self.drop_oldest():
            pass
        return self.disk_bytes + size <= self._total

    def drop_oldest(self) -> bool:
        """Drop the disk output of the execution that finished first; False if there is none."""
        for spool in self._finished:
            if spool.accounted and not spool.being_read and not spool.being_written:
                spool.drop_disk("dropped to make room for newer output")
                return True
        return False

    def require_free_space(self) -> None:
        """Raises OSError (ENOSPC) if the disk has less free than it must keep. Blocking."""
        space = os.fstatvfs(self.directory.fd)
        if space.f_bavail < space.f_blocks * self._min_free:
            raise OSError(28, f"less than {self._min_free:.0%} of the disk is free")

    def finished(self, spool: Spool) -> None:
        """An execution ended for good: its output is now the first to be dropped after older ones."""
        self._finished[spool] = None
        if self.small_bytes > SMALL_TOTAL:
            for oldest in list(self._small):
                oldest.flush()
                if self.small_bytes <= SMALL_TOTAL:
                    break

    def forget(self, spool: Spool) -> None:
        """The record is gone."""
        self._finished.pop(spool, None)

    def in_memory(self, spool: Spool, before: int, now: int) -> None:
        """The bytes that the spool of a finished execution has in memory have changed."""
        self.small_bytes += now - before
        if now:
            self._small[spool] = None
        else:
            self._small.pop(spool, None)


class Spool:
    """Moves the overflow of one log to disk and reads it back."""

    __slots__ = (
        "_closing",
        "_discarded",
        "_flushed",
        "_in_memory",
        "_log",
        "_ring",
        "_store",
        "accounted",
        "being_written",
        "fault",
    )

    def __init__(self, store: OutputStore, name: str, output: OutputLog) -> None:
        self._store = store
        self._log = output
        self._ring = RingFile(store.directory.fd, name, max(1, store.capacity))
        self.being_written = False
        self._closing = False
        self._discarded = False
        self._flushed = False
        self._in_memory = 0
        self.accounted = 0
        """Bytes on disk, or on the way there, that the budget knows of."""
        self.fault: str | None = None
        """Why output that should have been kept was not; None: all is well."""

    @property
    def being_read(self) -> bool:
        """True while a reader is attached: its bytes are not dropped."""
        return self._log.attached > 0

    def relieve(self, keep: int) -> None:
        """Start moving what the log has in memory beyond `keep` bytes to disk, if there is any."""
        if self.being_written or self._discarded:
            return
        start = self._log.memory_start
        buffers = self._log.overflow(keep)
        if not buffers:
            return
        store = self._store
        growth = self._ring.size_after(start, sum(map(len, buffers))) - self.accounted
        if store.directory.fd < 0 or not store.capacity:
            self._refused(store.directory.problem or "output is not kept on disk (limit 0)")
        elif not store.make_room(growth):
            self._refused("the budget for output on disk is used up by running commands")
        else:
            self.being_written = True
            self._account(self.accounted + growth)  # now: another spool must not count on the same room
            work = store.loop.run_in_executor(store.executor, self._write, start, buffers)
            work.add_done_callback(self._written)

    async def load(self, offset: int, length: int) -> bytes:
        """Read back from disk.

        Raises:
            OSError: it is not there any more.
        """
        store = self._store
        return await store.loop.run_in_executor(store.executor, self._ring.read, offset, length)

    def finish(self) -> None:
        """Nothing will be appended any more. Large output leaves memory, the descriptor is closed."""
        self._closing = True
        if self._log.memory_bytes > SMALL_BYTES:
            self.relieve(0)
        self._settle()
        self._store.finished(self)

    def flush(self) -> None:
        """Move all that is in memory to disk."""
        self._flushed = True
        self._count(0)  # at once: nobody else need move for what is on its way
        self.relieve(0)
        self._settle()

    def drop_disk(self, why: str) -> None:
        """Delete what is on disk, and say so in `fault`."""
        if self.being_written:
            return
        self.fault = why
        self._log.drop_disk()
        self._remove()

    def discard(self) -> None:
        """The execution's record is gone: so is its output."""
        self._closing = self._discarded = True
        self._count(0)
        self._store.forget(self)
        if not self.being_written:
            self._remove()

    def _write(self, offset: int, buffers: list[bytes | bytearray]) -> None:
        self._store.require_free_space()
        self._ring.write(offset, buffers)

    def _written(self, work: Future[None]) -> None:
        self.being_written = False
        self._account(self._ring.size)
        error, kept = work.exception(), False
        if error is None:
            self._log.spilled()
        else:
            if isinstance(error, OSError) and error.errno in _NO_SPACE:
                self._store.drop_oldest()
            kept = self._refused(getattr(error, "strerror", None) or str(error))
        if self._discarded:
            self._remove()
            return
        self._settle()
        if not kept:  # else the next try is due when a reader has read: at once, it would fail again
            self._log.note_progress()

    def _refused(self, why: str) -> bool:
        """The disk does not take what the log gave; True if that stays in memory for a reader."""
        if self.fault is None:
            log.write(WARNING, "output_not_kept", reason=why)
        self.fault = why
        just_ended = self._closing and not self._flushed
        if just_ended or self._log.unread_overflow():
            self._log.keep_overflow()
            return True
        self._log.drop_overflow()
        self._remove()
        return False

    def _settle(self) -> None:
        # After the end: count what stays in memory, close the file; it is opened again to be read.
        if self._closing and not self.being_written:
            self._count(self._log.memory_bytes)
            self._ring.close()

    def _count(self, in_memory: int) -> None:
        self._store.in_memory(self, self._in_memory, in_memory)
        self._in_memory = in_memory

    def _account(self, size: int) -> None:
        self._store.disk_bytes += size - self.accounted
        self.accounted = size

    def _remove(self) -> None:
        self._account(0)
        self._ring.remove()
