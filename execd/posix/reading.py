"""Opening a regular file and reading it in bounded pieces. May block: for file threads."""

from __future__ import annotations

import os
import select
import stat

from execd.errors import BrokenOff
from execd.posix.handle import Handle
from execd.posix.places import Places

PIECE = 1 << 20
"""Bytes read, or given to the kernel to send, in one call."""
_BATCH = 16 * PIECE  # sent in one turn of a thread
_PATIENCE = 5  # milliseconds that a thread waits for a socket with room

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class NotRegular(Exception):
    """It is no regular file; the message says what it is."""


class Shortened(BrokenOff):
    """A file ends before the bytes that were promised of it: the answer has to be broken off."""


def open_regular(places: Places, path: str) -> tuple[Handle, os.stat_result]:
    """Open the regular file that the absolute `path` names, symlinks followed.

    Raises:
        NotRegular: a directory, FIFO, socket or device. It was not opened.
        NotAllowed: from Places.
        OSError: from open(2).
    """
    found = places.open(path, os.O_PATH)
    try:
        info = os.fstat(found)
        if not stat.S_ISREG(info.st_mode):
            raise NotRegular(_KINDS.get(stat.S_IFMT(info.st_mode), "no regular file"))
        # Opened for reading only now that it is known: who waits at the other end of a FIFO, and many a
        # device, would feel an open. Whatever has become of its path, this is the same file (proc(5)).
        fd = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(found)
    return Handle(fd), info


def read_at(fd: int, start: int, stop: int) -> bytes:
    """The bytes from `start` up to `stop`; fewer only if the file ends before."""
    data = os.pread(fd, stop - start, start)
    if len(data) == stop - start or not data:
        return data
    parts = [data]
    start += len(data)
    while start < stop and (data := os.pread(fd, stop - start, start)):
        parts.append(data)
        start += len(data)
    return b"".join(parts)


def read_on(fd: int, limit: int) -> bytes:
    """The next bytes in order, up to `limit`; fewer only at the end. For files that the kernel makes up as
    they are read: those need not know where a position is. What would block has ended.
    """
    parts: list[bytes] = []
    left = limit
    try:
        while left and (data := os.read(fd, left)):
            parts.append(data)
            left -= len(data)
    except BlockingIOError:
        pass
    return b"".join(parts)


def send_batch(sock: int, fd: int, start: int, stop: int) -> tuple[int, bool]:
    """Let the kernel send bytes of a file from `start` up to `stop`, as many as the non-blocking socket
    `sock` takes in a short time, 16 MiB at most. How many that were, and whether it took all it was given.

    Raises:
        Shortened: the file ends at `start`.
        OSError: from sendfile(2).
    """
    begun, stop = start, min(stop, start + _BATCH)
    while start < stop:
        try:
            sent = os.sendfile(sock, fd, start, min(PIECE, stop - start))
        except BlockingIOError:
            if not _has_room(sock):
                return start - begun, False
            continue
        if not sent:
            if start > begun:
                break
            raise Shortened("the file became shorter while it was sent")
        start += sent
    return start - begun, True


def _has_room(sock: int) -> bool:
    # A quick client makes room at once: cheaper to wait here than to go back to the event loop.
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(_PATIENCE))
