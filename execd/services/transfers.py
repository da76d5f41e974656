"""Bytes of an open file on their way to a client, a bounded piece at a time."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from execd.posix import reading
from execd.posix.handle import Handle
from execd.posix.reading import PIECE, Shortened

if TYPE_CHECKING:
    from execd.services.filesystem import Filesystem

EXTENSION: Final = "execd.sendfile"
"""ASGI: a connection with this extension takes a message of this type, with a `transfer`, instead of its
bytes. It sends what the kernel can send by itself; what is left after that is sent as bytes.
"""
_NO_SENDFILE: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EOVERFLOW)


class Source(Protocol):
    """Gives bytes of a file. `close` may come at any time, also while a thread reads."""

    size: int | None
    """How many bytes it gives in all; None: not known."""

    async def read(self) -> bytes:
        """The next bytes, at most 1 MiB; none at the end."""

    def close(self) -> None:
        """Give the file up."""


class Transfer:
    """The bytes of a file from `start` up to `stop`: exactly those, or an error."""

    def __init__(self, filesystem: Filesystem, file: Handle, start: int, stop: int) -> None:
        self._filesystem = filesystem
        self._file = file
        self._at = start
        self._stop = stop
        self.size: int | None = stop - start
        self.by_kernel = True
        """Whether `send` may be used: it has not been seen to fail."""

    @property
    def left(self) -> int:
        """Bytes still to be given or sent."""
        return self._stop - self._at

    async def read(self) -> bytes:
        """The next bytes, at most 1 MiB; none at the end.

        Raises:
            Shortened: the file has become shorter.
        """
        stop = min(self._stop, self._at + PIECE)
        data = await self._filesystem.run(partial(self._read, self._at, stop))
        if len(data) < stop - self._at:
            raise Shortened("the file became shorter while it was sent")
        self._at = stop
        return data

    async def send(self, sock: Handle) -> bool:
        """Send what the non-blocking socket takes in a short time; whether it would take more.

        Where the file's kind cannot be sent by the kernel, `by_kernel` becomes false and nothing is sent.

        Raises:
            Shortened: the file has become shorter.
            OSError: of the socket or the disk.
        """
        try:
            sent, more = await self._filesystem.run(partial(self._send, sock, self._at))
        except OSError as error:
            if error.errno not in _NO_SENDFILE:
                raise
            self.by_kernel = False
            return True
        self._at += sent
        return more

    def close(self) -> None:
        self._filesystem.later(self._file.close)

    def _read(self, start: int, stop: int) -> bytes:
        with self._file.use() as fd:
            return reading.read_at(fd, start, stop)

    def _send(self, sock: Handle, start: int) -> tuple[int, bool]:
        with self._file.use() as fd, sock.use() as to:
            return reading.send_batch(to, fd, start, self._stop)


class Tail:
    """What follows `begun` in a file that does not know its size: until it ends."""

    def __init__(self, filesystem: Filesystem, file: Handle, begun: bytes) -> None:
        self._filesystem = filesystem
        self._file = file
        self._begun = begun
        self.size: int | None = None

    async def read(self) -> bytes:
        """The next bytes, at most 1 MiB; none at the end."""
        if self._begun:
            data, self._begun = self._begun, b""
            return data
        return await self._filesystem.run(self._read)

    def close(self) -> None:
        self._filesystem.later(self._file.close)

    def _read(self) -> bytes:
        with self._file.use() as fd:
            return reading.read_on(fd, PIECE)
