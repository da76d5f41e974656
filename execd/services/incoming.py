"""Bodies that become files, piece by piece, in the threads that write them."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from execd.errors import ExecdError, InsufficientStorage, InvalidContent, InvalidFile, InvalidMetadata
from execd.posix.atomic import AtomicFile
from execd.posix.ownership import Ownership, UnknownName
from execd.posix.targets import Directories
from execd.services.filesystem import Filesystem, explained
from execd.services.multipart import Multipart, NotMultipart, Part
from execd.services.preconditions import Precondition

Result = TypeVar("Result")

METADATA_BYTES: Final = 64 * 1024
"""The JSON of one file's metadata."""
_GROUP_FILES: Final = 32  # small files that are synced together, which costs a fraction of one by one...
_GROUP_BYTES: Final = 1024 * 1024  # ...and what they hold together at most


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file as the client asks for it. None: as it is, or the default of a new file."""

    path: str
    owner: str | None = None
    group: str | None = None
    mode: int | None = None

    def begin(self, filesystem: Filesystem, common: Directories | None = None) -> AtomicFile:
        """Check all of it, and open the file that will be its content. `common`: as Target has it.

        Raises:
            InvalidMetadata: there is no such user or group.
            ExecdError: the path cannot be written; see `Filesystem.resolve` and `explained`.
        """
        path = filesystem.resolve(self.path)
        if path.endswith("/"):
            raise InvalidFile(f"path: {self.path!r} names a directory", {"field": "path"})
        try:
            ownership = Ownership.named(self.mode or None, self.owner, self.group)
        except UnknownName as error:
            raise InvalidMetadata(f"{error.field}: {error}", {"field": error.field}) from error
        with explained(self.path):
            return AtomicFile(filesystem.places, path, ownership, common)


@dataclass(frozen=True, slots=True)
class Written:
    """A file after it was written. `path`: the real one, as the file system has it."""

    path: str
    info: os.stat_result
    created: bool


class Incoming(ABC, Generic[Result]):
    """Takes one body, piece by piece. Its methods block. They may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._abandoned = False

    def feed(self, pieces: Sequence[bytes]) -> None:
        """The next pieces of the body."""
        with self._lock:
            for piece in pieces if not self._abandoned else ():
                self._take(piece)

    def finish(self, pieces: Sequence[bytes]) -> Result:
        """The last pieces; then what was asked for is done."""
        self.feed(pieces)
        with self._lock:
            return self._complete()

    def abandon(self) -> None:
        """Nothing more comes: drop what is not complete. May be called again."""
        with self._lock:
            self._abandoned = True
            self._drop()

    def told(self, error: ExecdError) -> ExecdError:
        """The error that ends it, with what the client has to know of the files before."""
        return error

    @abstractmethod
    def _take(self, piece: bytes) -> None: ...

    @abstractmethod
    def _complete(self) -> Result: ...

    @abstractmethod
    def _drop(self) -> None: ...


class Pairs(Incoming[None]):
    """multipart/form-data: a part `metadata`, then a part `file`, and so on. `done`: paths already written.

    A file is begun when its metadata is complete, so that what is wrong with it is known before its bytes are
    read. Files are put in place in their order.
    """

    def __init__(self, filesystem: Filesystem, boundary: bytes, parse: Callable[[bytes], Wanted]) -> None:
        super().__init__()
        self._filesystem = filesystem
        self._parser = Multipart(boundary)
        self._parse = parse
        self._part = ""
        self._metadata = bytearray()
        self._asked = ""
        self._file: AtomicFile | None = None
        self._group: list[tuple[str, AtomicFile]] = []
        self._group_bytes = 0
        self._directories = Directories()
        self._any = False
        self.done: list[str] = []

    def told(self, error: ExecdError) -> ExecdError:
        return error.partly_done(self.done)

    def _take(self, piece: bytes) -> None:
        try:
            for found in self._parser.feed(piece):
                if isinstance(found, memoryview):
                    self._content(found)
                elif isinstance(found, Part):
                    self._begin(found)
                else:
                    self._end()
        except NotMultipart as error:
            self._publish()
            raise InvalidContent(str(error)) from error
        except ExecdError:
            self._publish()  # the files before it are complete
            raise
        self._publish()

    def _complete(self) -> None:
        try:
            self._parser.close()
        except NotMultipart as error:
            raise InvalidContent(str(error)) from error
        if self._file is not None:
            raise InvalidFile(f"{self._asked!r}: its metadata is not followed by a file", {"field": "file"})
        if not self._any:
            raise InvalidMetadata("the body has no metadata and no file", {"field": "metadata"})

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        for _, file in self._group:
            file.close()
        self._group = []
        self._directories.close()

    def _begin(self, part: Part) -> None:
        self._any = True
        self._part = part.name
        if part.name == "metadata":
            if self._file is not None:
                raise InvalidFile(
                    f"{self._asked!r}: its metadata is not followed by a file", {"field": "file"}
                )
        elif part.name == "file":
            if self._file is None:
                raise InvalidMetadata("a part file has no part metadata before it", {"field": "metadata"})
            if part.length is not None:
                assert_room(self._file, self._asked, part.length)
        else:
            raise InvalidContent(f"a part is named {part.name[:80]!r}, allowed are metadata and file")

    def _content(self, data: memoryview) -> None:
        if self._part == "file":
            assert self._file is not None
            with explained(self._asked):
                self._file.write(data)
        else:
            self._metadata += data
            if len(self._metadata) > METADATA_BYTES:
                raise InvalidMetadata(
                    f"a part metadata is larger than {METADATA_BYTES} bytes", {"field": "metadata"}
                )

    def _end(self) -> None:
        if self._part == "metadata":
            wanted = self._parse(bytes(self._metadata))
            self._metadata.clear()
            self._asked, self._file = wanted.path, wanted.begin(self._filesystem, self._directories)
            return
        assert self._file is not None
        file, self._file = self._file, None
        self._group.append((self._asked, file))
        self._group_bytes += file.size
        with explained(self._asked):
            file.seal()
        if len(self._group) >= _GROUP_FILES or self._group_bytes >= _GROUP_BYTES:
            self._publish()

    def _publish(self) -> None:
        group, self._group, self._group_bytes = self._group, [], 0
        try:
            for asked, file in group:
                with explained(asked):
                    file.sync()
            directories: dict[tuple[int, int], tuple[str, AtomicFile]] = {}
            for asked, file in group:
                with explained(asked):
                    file.publish()
                    self.done.append(asked)
                    directories[file.target.directory] = asked, file
            for asked, file in directories.values():
                with explained(asked):
                    file.target.sync_directory()
        finally:
            for _, file in group:
                file.close()
            if self._file is not None:
                self._file.target.detach()
            self._directories.close()


class Content(Incoming[Written]):
    """The body is one file's content, or what is put at its end (`add`). `length`: its size if announced."""

    def __init__(
        self,
        filesystem: Filesystem,
        wanted: Wanted,
        precondition: Precondition,
        length: int | None,
        *,
        add: bool,
    ) -> None:
        super().__init__()
        self._filesystem = filesystem
        self._wanted = wanted
        self._precondition = precondition
        self._length = length
        self._add = add
        self._file: AtomicFile | None = None

    def begin(self) -> None:
        """Check what can be checked before the body is read."""
        with self._lock:
            self._file = self._wanted.begin(self._filesystem)
            with explained(self._wanted.path):
                self._precondition.check(self._file.target.current())
            if self._length is not None:
                assert_room(self._file, self._wanted.path, self._length)

    def _take(self, piece: bytes) -> None:
        assert self._file is not None
        with explained(self._wanted.path):
            self._file.write(piece)

    def _complete(self) -> Written:
        file = self._file
        assert file is not None
        with explained(self._wanted.path):
            settle = file.append if self._add else file.commit
            info = settle(self._precondition.check)
        return Written(file.target.path, info, file.created)

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()


def assert_room(file: AtomicFile, asked: str, length: int) -> None:
    """Refuse at once what cannot fit.

    Raises:
        InsufficientStorage: the target's file system has less free than `length` bytes.
    """
    with explained(asked):
        free = file.free_bytes()
    if length > free:
        raise InsufficientStorage(
            f"path: {asked!r}: {length} bytes are to come, its file system has {free} free", {"field": "path"}
        )
