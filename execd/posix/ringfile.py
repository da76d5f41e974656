"""A file that keeps the last `capacity` bytes of a stream, addressed by absolute offset. Sync calls."""

from __future__ import annotations

import os
from collections.abc import Sequence

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class RingFile:
    """The byte at `offset` is stored at `offset % capacity`; older bytes are overwritten.

    The file is created 0600 and exclusively inside `directory_fd`, so a symlink put in its place is
    never followed. `close` keeps the file, `remove` unlinks it; both may be called at any time.
    """

    __slots__ = ("_capacity", "_directory_fd", "_fd", "_name", "size")

    def __init__(self, directory_fd: int, name: str, capacity: int) -> None:
        self._directory_fd = directory_fd
        self._name = name
        self._capacity = capacity
        self._fd = -1
        self.size = 0
        """Bytes on disk, at most `capacity`."""

    def write(self, offset: int, buffers: Sequence[bytes | bytearray]) -> None:
        """Store `buffers`, one after the other, from `offset` on.

        Raises:
            OSError: ENOSPC, EROFS, ... Nothing that was stored before is lost by it.
        """
        fd = self._open()
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
        fd = self._open()
        parts = []
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
        """Give the descriptor back; the next read or write opens the file again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Delete the file; a missing one is fine."""
        self.close()
        if self.size:
            self.size = 0
            try:
                os.unlink(self._name, dir_fd=self._directory_fd)
            except OSError:
                return  # gone with its directory, or the directory became read-only: nothing to do

    def _open(self) -> int:
        if self._fd < 0:
            flags = _OPEN_FLAGS if self.size else _OPEN_FLAGS | os.O_CREAT | os.O_EXCL
            self._fd = os.open(self._name, flags, 0o600, dir_fd=self._directory_fd)
        return self._fd
