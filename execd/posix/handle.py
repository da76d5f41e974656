"""A descriptor that several threads may use, closed when the last of them is done with it."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator


class Handle:
    """Owns `fd`. `close` gives it up at once; a thread that is inside of `use` keeps it until it leaves, so
    that no other file can take its number meanwhile. One that is forgotten closes itself.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._users = 0
        self._given_up = False

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        """The descriptor, for the length of the block.

        Raises:
            OSError: EBADF, it was given up before.
        """
        with self._lock:
            if self._given_up:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._users += 1
        try:
            yield self._fd
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._given_up and not self._users
        if last:
            os.close(self._fd)

    def close(self) -> None:
        """Give it up. More than once is the same as once."""
        with self._lock:
            if self._given_up:
                return
            self._given_up = True
            unused = not self._users
        if unused:
            os.close(self._fd)

    def __del__(self) -> None:
        # A request that is cancelled while a thread opens its file never gets to see the file.
        self.close()
