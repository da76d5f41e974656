"""A file that keeps the last `capacity` bytes of a stream, addressed by absolute offset. Sync calls, from
any thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator, Sequence

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class RingFile:
    """The byte at `offset` is stored at `offset % capacity`; older bytes are overwritten.

    The file is created 0600 and exclusively inside `directory_fd`, so a symlink put in its place is
    never followed. `close` keeps the file, `remove` unlinks it; both may be called at any time, also while
    another thread reads or writes: that one goes on with a descriptor of its own.
    """

    __slots__ = ("_capacity", "_closed", "_directory_fd", "_fd", "_lock", "_made", "_name", "size")

    def __init__(self, directory_fd: int, name: str, capacity: int) -> None:
        self._directory_fd = directory_fd
        self._name = name
        self._capacity = capacity
        self._fd = -1
        self._made = False
        self._closed = False
        self._lock = threading.Lock()
        self.size = 0
        """Bytes on disk, at most `capacity`."""

    def write(self, offset: int, buffers: Sequence[bytes | bytearray]) -> None:
        """Store `buffers`, one after the other, from `offset` on.

        Raises:
            OSError: ENOSPC, EROFS, ... Some of it may have been written.
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

    def size_after(self, offset: int, length: int) -> int:
        """What `size` will be once `length` bytes are stored from `offset` on."""
        return min(self._capacity, max(self.size, offset % self._capacity + length))

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
                    raise OSError(errno.EIO, "kept output was truncated from outside", self._name)
                parts.append(part)
                offset += len(part)
                length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Give the descriptor back; from now on each read or write opens the file for itself alone."""
        with self._lock:
            self._closed = True
            self._give_back()

    def remove(self) -> None:
        """Delete the file; a missing one is fine."""
        with self._lock:
            self._give_back()
            self.size = 0
            if self._made:
                self._made = False
                # Gone with its directory, or the directory became read-only: nothing to do.
                with contextlib.suppress(OSError):
                    os.unlink(self._name, dir_fd=self._directory_fd)

    @contextlib.contextmanager
    def _descriptor(self, *, create: bool) -> Iterator[int]:
        fd = self._open(create=create)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, *, create: bool) -> int:
        with self._lock:
            if self._fd >= 0:
                return os.dup(self._fd)
            if not self._made and not create:
                raise FileNotFoundError(errno.ENOENT, "no output is kept", self._name)
            flags = _OPEN_FLAGS if self._made else _OPEN_FLAGS | os.O_CREAT | os.O_EXCL
            fd = os.open(self._name, flags, 0o600, dir_fd=self._directory_fd)
            self._made = True
            if self._closed:
                return fd
            self._fd = fd
            return os.dup(fd)

    def _give_back(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
