"""Files that clients send: from the network to the disk as they come, each whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from execd.errors import ExecdError
from execd.services.filesystem import Filesystem
from execd.services.incoming import Content, Incoming, Pairs, Wanted, Written
from execd.services.preconditions import Precondition

Result = TypeVar("Result")

_BATCH_BYTES: Final = (
    1024 * 1024
)  # received while the batch before it is written; then the client has to wait
_WORTH_A_HOP: Final = 256 * 1024  # less is gathered: going to a thread and back costs as much as writing it


class Source(Protocol):
    """A body on its way in. `complete`: nothing comes after what was read."""

    complete: bool

    async def read(self) -> bytes:
        """The next bytes; none at the end, or once `interrupt` was called."""

    def interrupt(self) -> None:
        """Let a `read` that waits return."""


class Uploads:
    """Receives bodies. One batch of a body is being written while the next one is received, never more."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._open: set[Incoming[Any]] = set()

    async def receive(self, source: Source, boundary: bytes, parse: Callable[[bytes], Wanted]) -> None:
        """Write the files of a multipart body, in order. `parse` reads one file's metadata.

        Raises:
            ExecdError: what went wrong; `details.done` has the files that were written before.
        """
        await self._take_in(source, Pairs(self._filesystem, boundary, parse))

    async def write(
        self, source: Source, wanted: Wanted, precondition: Precondition, length: int | None, *, add: bool
    ) -> Written:
        """Make the body the content of one file, or put it at its end (`add`). `length`: as announced.

        Raises:
            ExecdError: what went wrong; the file is as it was.
        """
        content = Content(self._filesystem, wanted, precondition, length, add=add)
        return await self._take_in(source, content, content.begin)

    def close(self) -> None:
        """Drop what is still being received, so that nothing of it stays on the disk."""
        for incoming in list(self._open):
            incoming.abandon()

    async def _take_in(
        self, source: Source, incoming: Incoming[Result], begin: Callable[[], None] | None = None
    ) -> Result:
        self._open.add(incoming)
        try:
            if begin:
                await self._filesystem.run(begin)
            return await self._pump(source, incoming)
        except ExecdError as error:
            raise incoming.told(error) from None
        finally:
            await asyncio.shield(self._filesystem.run(incoming.abandon))
            self._open.discard(incoming)

    async def _pump(self, source: Source, incoming: Incoming[Result]) -> Result:
        flight: asyncio.Task[None] | None = None
        batch: list[bytes] = []
        size, enough = 0, 1  # the first bytes are looked at at once: most of what can be wrong is in them
        while data := await source.read():
            batch.append(data)
            size += len(data)
            if source.complete:
                break
            if flight is not None and (flight.done() or size >= _BATCH_BYTES):
                await flight
                flight = None
            if flight is None and size >= enough:
                flight = self._write(source, incoming, batch)
                batch, size, enough = [], 0, _WORTH_A_HOP
        if flight is not None:
            await flight
        return await self._filesystem.run(partial(incoming.finish, batch))

    def _write(self, source: Source, incoming: Incoming[Result], batch: list[bytes]) -> asyncio.Task[None]:
        def landed(flight: asyncio.Task[None]) -> None:
            if not flight.cancelled() and flight.exception():
                source.interrupt()  # the client is told now, not when it sends its next bytes

        flight = asyncio.ensure_future(self._filesystem.run(partial(incoming.feed, batch)))
        flight.add_done_callback(landed)
        return flight
