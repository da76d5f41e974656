"""A file that keeps the last `capacity` bytes of a stream, addressed by absolute offset. Sync calls, from
any thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class RingFile:
    """The byte at `offset` is stored at `offset % capacity`; older bytes are overwritten.

    The file is created 0600 and exclusively inside `directory_fd`, so a symlink put in its place is
    never followed. `close` keeps the file, `remove` unlinks it; both may be called at any time, also while
    another thread reads or writes: its descriptor stays until it is done.
    """

    __slots__ = ("_capacity", "_closed", "_directory_fd", "_fd", "_lock", "_name", "_users", "size")

    def __init__(self, directory_fd: int, name: str, capacity: int) -> None:
        self._directory_fd = directory_fd
        self._name = name
        self._capacity = capacity
        self._fd = -1
        self._users = 0
        self._closed = False
        self._lock = threading.Lock()
        self.size = 0
        """Bytes on disk, at most `capacity`."""

    def write(self, offset: int, buffers: Sequence[bytes | bytearray]) -> None:
        """Store `buffers`, one after the other, from `offset` on.

        Raises:
            OSError: ENOSPC, EROFS, ... Nothing that was stored before is lost by it.
        """
        with self._descriptor(create=True) as fd:
            for buffer in buffers:
                view = memoryview(buffer)
                while view:
                    position = offset % self._capacity
                    written = os.pwrite(fd, view[: self._capacity - position], position)
                    view = view[written:]
                    offset += written
                    self.size = max(self.size, position + written)

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; the caller asks only for what is still kept.

        Raises:
            OSError: the file is gone or cannot be read. EIO also if it is shorter than it was.
        """
        parts = []
        with self._descriptor(create=False) as fd:
            while length > 0:
                position = offset % self._capacity
                part = os.pread(fd, min(length, self._capacity - position), position)
                if not part:
                    raise OSError(5, "kept output was truncated from outside", self._name)
                parts.append(part)
                offset += len(part)
                length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Give the descriptor back; from now on each read or write opens the file for itself alone."""
        with self._lock:
            self._closed = True
            self._close_unused()

    def remove(self) -> None:
        """Delete the file; a missing one is fine."""
        self.close()
        if self.size:
            self.size = 0
            try:
                os.unlink(self._name, dir_fd=self._directory_fd)
            except OSError:
                return  # gone with its directory, or the directory became read-only: nothing to do

    @contextlib.contextmanager
    def _descriptor(self, *, create: bool) -> Iterator[int]:
        with self._lock:
            if self._fd < 0:
                new = create and not self.size
                flags = _OPEN_FLAGS | os.O_CREAT | os.O_EXCL if new else _OPEN_FLAGS
                self._fd = os.open(self._name, flags, 0o600, dir_fd=self._directory_fd)
            self._users += 1
        try:
            yield self._fd
        finally:
            with self._lock:
                self._users -= 1
                self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._users and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
