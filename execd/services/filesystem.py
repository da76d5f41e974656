"""What all file services share: threads, allowed roots, `$VAR` and `~` in paths, and errors by name."""

from __future__ import annotations

import contextlib
import errno
from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from execd.errors import (
    AlreadyExists,
    ExecdError,
    FileMissing,
    Forbidden,
    InsufficientStorage,
    InternalError,
    InvalidFile,
    PathNotAllowed,
    ResourceExhausted,
)
from execd.posix import entries, paths
from execd.posix.environment import Environments
from execd.posix.places import MAX_PATH, NotAllowed, Places
from execd.posix.reading import NotRegular
from execd.settings import Settings

T = TypeVar("T")

FILE_THREADS: Final = 8
"""Threads for reading, writing and changing files: slow disks and big transfers share them..."""
WALK_THREADS: Final = 2
"""...and walks have their own, so that neither has to wait for the other."""

_SITUATIONS: Final[dict[int, type[ExecdError]]] = {
    errno.ENOENT: FileMissing,
    errno.ESRCH: FileMissing,  # a file of /proc whose process has ended
    errno.EACCES: Forbidden,
    errno.EPERM: Forbidden,
    errno.EROFS: Forbidden,
    errno.EEXIST: AlreadyExists,
    errno.ENOTEMPTY: AlreadyExists,
    errno.ENOSPC: InsufficientStorage,
    errno.EDQUOT: InsufficientStorage,
    errno.EFBIG: InsufficientStorage,
    errno.EMFILE: ResourceExhausted,
    errno.ENFILE: ResourceExhausted,
    errno.ENOMEM: ResourceExhausted,
    **dict.fromkeys(
        (
            errno.ENOTDIR,
            errno.EISDIR,
            errno.ELOOP,
            errno.ENAMETOOLONG,
            errno.EINVAL,
            errno.EBUSY,
            errno.ENXIO,
            errno.EXDEV,
            errno.ETXTBSY,
            errno.ENODEV,
        ),
        InvalidFile,
    ),
}


class Filesystem:
    """The file side of the daemon. Blocking calls go through `run` or `walk`, never on the event loop."""

    def __init__(self, settings: Settings, environments: Environments, loop: AbstractEventLoop) -> None:
        self.places = Places(settings.root_list)
        self._environments = environments
        self._loop = loop
        self._files = ThreadPoolExecutor(FILE_THREADS, "execd-io")
        self._walks = ThreadPoolExecutor(WALK_THREADS, "execd-walk")

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in a file thread."""
        return await self._loop.run_in_executor(self._files, call)

    async def walk(self, call: Callable[[], T]) -> T:
        """Run `call` in a walk thread."""
        return await self._loop.run_in_executor(self._walks, call)

    def later(self, call: Callable[[], object]) -> None:
        """Run `call` in a file thread some time, without waiting for it. Not if the daemon stops before."""
        with contextlib.suppress(RuntimeError):  # it is stopping
            self._files.submit(call)

    def resolve(self, asked: str, field: str = "path") -> str:
        """The absolute path that a client means. Reads the EXECD_ENVS file: blocking.

        Raises:
            InvalidFile: it is empty, too long, holds a NUL, or names undefined variables.
        """
        if not asked or "\0" in asked:
            why = "is empty" if not asked else "holds a NUL character"
            raise InvalidFile(f"{field}: {asked!r} {why}", {"field": field})
        try:
            simple = asked[0] == "/" and "$" not in asked  # most paths: the file need not be read for them
            path = asked if simple else paths.expand(asked, self._environments.merged({}))
        except paths.UndefinedVariables as error:
            raise InvalidFile(f"{field}: {error}", {"field": field, "undefined": error.names}) from error
        if len(path.encode(errors="surrogateescape")) > MAX_PATH:
            raise InvalidFile(f"{field}: longer than {MAX_PATH} bytes", {"field": field})
        return path

    def close(self) -> None:
        """Let the threads end; what they are doing is finished first."""
        self._files.shutdown(wait=False, cancel_futures=True)
        self._walks.shutdown(wait=False, cancel_futures=True)


class explained:
    """Within the block, what the system says of the file that a client calls `asked` becomes an error by
    name, with that name in it.
    """

    __slots__ = ("_asked", "_field")

    def __init__(self, asked: str, field: str = "path") -> None:
        self._asked = asked
        self._field = field

    def __enter__(self) -> None:
        """Nothing to do: this is no generator because it is entered several times for every file."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (NotAllowed, NotRegular, OSError)):
            raise _explanation(error, self._asked, self._field) from error


def _explanation(error: NotAllowed | NotRegular | OSError, asked: str, field: str) -> ExecdError:
    details: dict[str, object] = {"field": field, **entries.named(asked)}
    if isinstance(error, NotAllowed):
        return PathNotAllowed(f"{field}: {asked!r} leads outside of the allowed directories", details)
    if isinstance(error, NotRegular):
        return InvalidFile(f"{field}: {asked!r} is {error}", details)
    number = error.errno or 0
    if number in errno.errorcode:
        details["errno"] = errno.errorcode[number]
    return _SITUATIONS.get(number, InternalError)(f"{field}: {asked!r}: {error.strerror or error}", details)
