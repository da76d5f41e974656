"""The HTTP server: uvicorn with a loop that never wakes up for nothing, and a stop that ends commands before
it closes connections.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn

from execd.logs import ERROR, INFO, TEXT_LIMIT, log
from execd.posix import listener
from execd.protocol import Protocol

if TYPE_CHECKING:
    from execd.app import Application
    from execd.settings import Settings

_HURRIED_SECONDS: Final = 0.5  # the same, at a stop that was asked for twice
_CLOSE_SECONDS: Final = 2.0  # for connections to take what was sent to them, at a stop


class _Forward(logging.Handler):
    """What uvicorn has to say, in our log; what it says of a failed request, the Boundary has said."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR and "ASGI application" not in record.getMessage():
            log.write(ERROR, "server", message=record.getMessage()[-TEXT_LIMIT:])


class Server(uvicorn.Server):
    """Waits for SIGTERM or SIGINT without polling. A second signal stops at once."""

    def __init__(self, application: Application, settings: Settings) -> None:
        logging.getLogger("uvicorn").handlers[:] = [_Forward()]
        logging.getLogger("uvicorn").propagate = False
        super().__init__(
            uvicorn.Config(
                application.asgi,
                loop="uvloop",
                http=Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=settings.keep_alive,  # type: ignore[arg-type]  # goes to call_later
                backlog=listener.BACKLOG,
            )
        )
        self._application = application
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Wait to be told to stop; then end what runs, so that its streams can say so."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup(1) sets it
            signal.signal(signal.SIGHUP, self.handle_exit)
        if not self.should_exit:
            await self._stop.wait()
        self._stop.clear()
        engine = self._application.engine
        assert engine is not None
        stopping = asyncio.ensure_future(engine.stop())
        told_again = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopping, told_again}, return_when=asyncio.FIRST_COMPLETED)
        if told_again.done():
            engine.hurry()
            await asyncio.wait({stopping}, timeout=_HURRIED_SECONDS)
        told_again.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listener and every connection, the idle ones first."""
        for server in self.servers:
            server.close()
        for sock in sockets or []:
            sock.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            seconds = _HURRIED_SECONDS if self.force_exit else _CLOSE_SECONDS
            await asyncio.wait(set(self.server_state.tasks), timeout=seconds)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal handler: note it and wake the loop."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        log.write(INFO, "stopping", signal=signal.Signals(sig).name, at_once=self.force_exit)
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
