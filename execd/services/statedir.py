"""The daemon's private directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

from execd.logs import WARNING, log


class StateDirectory:
    """The daemon's private directory (0700, locked), emptied of what an earlier daemon left.

    `fd` is -1 if it cannot be had; `problem` then says why.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.problem: str | None = None
        self._lock = -1
        try:
            self._open(path)
        except OSError as error:
            self.problem = f"{path}: {error.strerror or error}"
            log.write(WARNING, "state_directory_unusable", path=path, error=str(error))

    def _open(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.makedirs(path, 0o700)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                raise PermissionError(1, "belongs to another user", path)
            os.fchmod(fd, 0o700)
            lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise OSError(11, "in use by another execd", path) from None
        except OSError:
            os.close(fd)
            raise
        self.fd, self._lock = fd, lock
        self._clear()

    def _clear(self) -> None:
        for name in os.listdir(self.fd):
            if name.endswith((".out", ".probe")):
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode):
                        os.unlink(name, dir_fd=self.fd)

    def probe(self) -> None:
        """Write, sync and rename a file, as keeping output needs it.

        Raises:
            OSError: that does not work.
        """
        if self.fd < 0:
            raise OSError(5, self.problem or "no state directory")
        if not os.fstat(self.fd).st_nlink:
            self._make_again()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open("a.probe", flags, 0o600, dir_fd=self.fd)
        try:
            os.write(fd, b"ready?\n")
        finally:
            os.close(fd)
        os.replace("a.probe", "b.probe", src_dir_fd=self.fd, dst_dir_fd=self.fd)
        os.unlink("b.probe", dir_fd=self.fd)

    def _make_again(self) -> None:
        # Somebody removed it, a cleaner of /tmp perhaps. Who has the descriptor goes on with the new one.
        again = StateDirectory(self.path)
        if again.fd < 0:
            raise OSError(2, again.problem)
        os.dup2(again.fd, self.fd, inheritable=False)
        os.dup2(again._lock, self._lock, inheritable=False)
        os.close(again.fd)
        os.close(again._lock)

    def close(self) -> None:
        """Leave no output behind; give lock and descriptors back."""
        if self.fd >= 0:
            with contextlib.suppress(OSError):  # the directory is gone
                self._clear()
        for fd in (self.fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self.fd = self._lock = -1
