"""The `execd.sendfile` extension of a connection: the kernel sends a file's bytes by itself (sendfile(2)).

uvicorn has no such thing. A message with a `Transfer` stands for the bytes of it that could be sent so; the
socket is a duplicate, because the event loop guards its own. File threads call sendfile, as a disk may be
slow; whenever the client is slow, the loop waits for it, and no thread does.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from execd.posix.handle import Handle
from execd.services.transfers import EXTENSION

if TYPE_CHECKING:
    from execd.services.transfers import Transfer


class FileCycle(RequestResponseCycle):
    """An answer that can have a file in it."""

    sending_file = False
    """The client may have stopped sending: it is known to be there while it takes the file."""

    def offer(self) -> None:
        """Let the application know, if this connection can do it."""
        if self.scope["scheme"] == "http" and self.transport.get_extra_info("socket") is not None:
            self.scope["extensions"] = {EXTENSION: {}}

    async def send(self, message: Any) -> None:
        """ASGI."""
        if message["type"] != EXTENSION:
            await super().send(message)
            return
        transfer: Transfer = message["transfer"]
        before = transfer.left
        self.sending_file = True
        try:
            await self._emptied()
            if not self.disconnected:
                await self._send_file(transfer)
        finally:
            self.sending_file = False
        self.expected_content_length -= before - transfer.left

    async def _send_file(self, transfer: Transfer) -> None:
        fd = os.dup(self.transport.get_extra_info("socket").fileno())
        sock = Handle(fd)
        try:
            while transfer.left and transfer.by_kernel and not self.disconnected:
                if not await transfer.send(sock):
                    await self._writable(fd)
        except ConnectionError:
            self.disconnected = True
            self.transport.abort()
        finally:
            sock.close()

    async def _emptied(self) -> None:
        """Wait until all that was written before is on its way."""
        self.transport.flush()  # type: ignore[attr-defined]  # it is our own wrapper
        if not self.transport.get_write_buffer_size() or self.disconnected:
            return
        self.transport.set_write_buffer_limits(0)
        try:
            while self.transport.get_write_buffer_size() and not self.disconnected:
                await self.flow.drain()
        finally:
            if not self.transport.is_closing():
                self.transport.set_write_buffer_limits()

    async def _writable(self, fd: int) -> None:
        """Wait until the client has made room, or has left. The protocol ends the wait when it loses the
        connection, as it does for every writer.
        """
        if self.disconnected:
            return
        loop = asyncio.get_running_loop()
        self.flow.pause_writing()
        loop.add_writer(fd, self.flow.resume_writing)
        try:
            await self.flow.drain()
        finally:
            loop.remove_writer(fd)
            self.flow.resume_writing()
