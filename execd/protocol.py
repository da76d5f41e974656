"""One HTTP connection: uvicorn's protocol with a bounded head, errors as JSON, and one write a turn."""

from __future__ import annotations

import asyncio
import os
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from execd.api.errors import error_body
from execd.errors import BadRequest, ExecdError, HeadTooLarge
from execd.logs import INFO, log
from execd.sendfile import FileCycle

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together."""
_HEAD_SECONDS: Final = 30.0  # for a request's head to arrive, once it has begun
_LARGE_CHUNK: Final = 16 * 1024  # bytes from which a copy costs more than two more parts of a writev
_BODY_HEADERS: Final = (b"content-length", b"transfer-encoding")


class RestOfBody:
    """Hears of one body and of nothing after it."""

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._protocol: HttpToolsProtocol | None = protocol

    def on_body(self, body: bytes) -> None:
        """A part of it."""
        if self._protocol is not None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        """Its end."""
        if self._protocol is not None:
            self._protocol.on_message_complete()
            self._protocol = None


class Cycle(FileCycle):
    """An answer whose large chunks are written as they are; uvicorn would copy each of them once more."""

    async def send(self, message: ASGISendEvent) -> None:
        """As in uvicorn."""
        if message["type"] == "http.response.body" and self.chunked_encoding and not self.response_complete:
            body = message.get("body", b"")
            if len(body) >= _LARGE_CHUNK and message.get("more_body", False):
                if self.flow.write_paused and not self.disconnected:
                    await self.flow.drain()
                if not self.disconnected:
                    for part in (b"%x\r\n" % len(body), body, b"\r\n"):
                        self.transport.write(part)
                return
        await super().send(message)


class OldCycle(FileCycle):
    """An answer to HTTP/1.0, which knows no chunks: the end of the connection ends it (RFC 9112 6.1)."""

    async def send(self, message: ASGISendEvent) -> None:
        """As in uvicorn, but with neither chunks nor a count of what Content-Length still allows."""
        self.chunked_encoding = False
        if message["type"] == "http.response.body":
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class _Cork:
    """A transport that writes once a turn of the loop: head and body leave in one system call, and the
    client wakes up once for both.
    """

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send with what else is written in this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what was written, then close."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Send what was written."""
        if self._parts and not self._transport.is_closing():
            self._transport.writelines(self._parts)
        self._parts = []


class Protocol(HttpToolsProtocol):
    """One connection. Adds to uvicorn's: a limit on the head's size and time, errors as JSON, answers for
    clients that have stopped sending.
    """

    _in_head = False  # a request has begun and its headers are not all there
    _head = 0  # bytes of its complete headers
    _pieces = 0  # bytes received for it since the read in which it began
    _head_until = 0.0  # loop time
    _requests = 0
    _too_large = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._cork = _Cork(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._cork))
        self._arm_idle(self.timeout_keep_alive)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        requests = self._requests
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        if self.transport.is_closing():
            return
        if self._in_head and requests == self._requests:
            self._pieces += len(data)  # a header without an end is not seen by `on_header`
            if self._pieces > HEAD_BYTES:
                self._too_large = True
                self.send_400_response("")
                return
        if self.timeout_keep_alive_task is None and self._idle:
            left = self._head_until - self.loop.time()
            self._arm_idle(max(0.0, left) if self._in_head else self.timeout_keep_alive)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # No other protocol is offered here, so this is a plain request (RFC 9110 7.8). The parser
            # takes it to end with its headers: its body, if any, is for one that knows only of that.
            framing = b"".join([b"%b: %b\r\n" % field for field in self.headers if field[0] in _BODY_HEADERS])
            if framing:
                self.cycle.keep_alive = False
                self.cycle.more_body = True
                self.parser = httptools.HttpRequestParser(RestOfBody(self))
                self.parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n")
            if rest := data[upgrade.args[0] :]:
                self._feed(rest)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that is done sending may still wait for its answer: keep the connection for that."""
        cycle = cast("FileCycle | None", self.cycle)
        if cycle is None or cycle.more_body or (cycle.response_started and not cycle.sending_file):
            self._cork.flush()  # the loop closes the transport next, and a closed one takes nothing
            return False
        cycle.keep_alive = False
        return True

    @property
    def _idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _arm_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._in_head, self._head, self._pieces = True, 0, 0
        self._requests += 1
        self._head_until = self.loop.time() + _HEAD_SECONDS
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > HEAD_BYTES:
            self._too_large = True
            raise httptools.HttpParserError("head too large")

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
        self.cycle.__class__ = OldCycle if self.scope["http_version"] == "1.0" else Cycle
        cast("FileCycle", self.cycle).offer()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or too much of it, in the one shape of errors; then close."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            cycle.keep_alive = False  # a good request came before the bad one: it has its answer first
            return
        error: ExecdError = BadRequest("the request is no valid HTTP/1.1")
        if self._too_large:
            error = HeadTooLarge(f"request line and headers are larger than {HEAD_BYTES} bytes")
        body, request_id = error_body(error), os.urandom(16).hex()
        headers = (
            "content-type: application/json",
            "connection: close",
            f"content-length: {len(body)}",
            f"x-request-id: {request_id}",
            f"date: {formatdate(usegmt=True)}",
        )
        self.transport.write(STATUS_LINE[error.status] + "\r\n".join((*headers, "\r\n")).encode() + body)
        self.transport.close()
        log.write(INFO, "request_refused", status=error.status, code=error.code, request_id=request_id)
