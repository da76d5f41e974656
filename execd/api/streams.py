"""An execution followed live: init, output as it comes, pings in silence, one terminal event, the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from execd.api import encoders, framing
from execd.api.framing import Framing
from execd.logs import WARNING, log
from execd.models.commands import outcome_json, usage_json

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from execd.services.blocks import Piece
    from execd.services.executions import Execution
    from execd.services.reader import Reader
    from execd.settings import Settings

TAKE_BYTES: Final = 128 * 1024
"""Output encoded and sent at once; the next batch waits until the connection has room."""
_WATCH_AFTER: Final = 0.05
"""Seconds after which a stream begins to watch for its client leaving."""
_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Started(Response):
    """The whole answer to a background start: `init` and the end of the stream, in one piece."""

    def __init__(self, execution: Execution, frames: Framing) -> None:
        body = framing.event(frames, "init", framing.INIT_EID, text=execution.id)
        body += framing.event(
            frames, "execution_complete", framing.STARTED_EID, execution_time=0, background=True, running=True
        )
        super().__init__(body, headers=_headers(execution, frames))


class EventStream:
    """Follows one execution from its first byte. The client leaving ends the stream, not the execution."""

    def __init__(self, execution: Execution, frames: Framing, settings: Settings) -> None:
        self._execution = execution
        self._frames = frames
        self._settings = settings
        self._encoder = encoders.encoder(frames, settings.line_endings, settings.event_text)
        self._gone = False
        self._sent_at = 0.0
        self._ping_due = False
        self._watcher: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it all; returns early if the client leaves."""
        loop = asyncio.get_running_loop()
        with self._execution.log.reader() as reader:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers()})
            init = framing.event(self._frames, "init", framing.INIT_EID, text=self._execution.id)
            await self._send(send, init)
            first = min(_WATCH_AFTER, self._settings.ping_interval)
            self._timer = loop.call_later(first, self._settle_in, loop, receive, reader)
            try:
                await self._follow(reader, send)
            finally:
                self._timer.cancel()
                if self._watcher is not None:
                    self._watcher.cancel()

    def _headers(self) -> list[tuple[bytes, bytes]]:
        headers = _headers(self._execution, self._frames)
        return [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def _follow(self, reader: Reader, send: Send) -> None:
        while not self._gone:
            reader.wake.clear()
            if self._ping_due:
                self._ping_due = False
                await self._send(send, framing.event(self._frames, "ping", None, text="pong"))
            pieces = await self._next(reader)
            if pieces:
                await self._send(send, self._encoder.encode(pieces))
                await asyncio.sleep(0)  # `send` returns at once while the socket has room: let others run
            elif reader.at_end:
                await self._send(send, self._terminal(), more=False)
                return
            else:
                await reader.wake.wait()

    async def _next(self, reader: Reader) -> list[Piece]:
        wanted = reader.on_disk(TAKE_BYTES)
        if wanted is None:
            return reader.take(TAKE_BYTES)
        try:
            data = await self._execution.spool.load(*wanted)
        except OSError as error:
            # Cannot go on without leaving out output: no terminal event, so the client sees a broken stream.
            log.write(WARNING, "kept_output_lost", id=self._execution.id, error=str(error))
            raise
        return reader.take_loaded(wanted[0], data)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        self._sent_at = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": body, "more_body": more})

    def _settle_in(self, loop: asyncio.AbstractEventLoop, receive: Receive, reader: Reader) -> None:
        # Most commands are over before this: they do not pay for a task that waits for a disconnect.
        self._watcher = loop.create_task(self._watch(receive, reader))
        self._on_silence(loop, reader)

    async def _watch(self, receive: Receive, reader: Reader) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        reader.wake.set()

    def _on_silence(self, loop: asyncio.AbstractEventLoop, reader: Reader) -> None:
        interval = self._settings.ping_interval
        quiet = loop.time() - self._sent_at
        if quiet >= interval - 0.001:
            self._ping_due = True
            reader.wake.set()
            quiet = 0.0
        self._timer = loop.call_later(interval - quiet, self._on_silence, loop, reader)

    def _terminal(self) -> bytes:
        execution = self._execution
        outcome = execution.outcome
        assert outcome is not None
        ours = {
            "outcome": outcome_json(outcome),
            "executed": "executed",
            "retryable": False,
            "exit_code": outcome.code,
            "execution_time": round(execution.duration * 1000),
            "rusage": usage_json(execution),
            "drained": execution.drained,
        }
        eid = (execution.log.sealed_at or 0) + framing.OUTPUT_EID + 1
        if not outcome.failed:
            return framing.event(self._frames, "execution_complete", eid, **ours)
        # `evalue` is what clients read as the exit code
        error = {"ename": "CommandExecError", "evalue": str(outcome.code), "traceback": [outcome.text]}
        return framing.event(self._frames, "error", eid, error=error, **ours)


def _headers(execution: Execution, frames: Framing) -> dict[str, str]:
    return {"Content-Type": frames.value, "X-Execd-Command-Id": execution.id, **_HEADERS}
