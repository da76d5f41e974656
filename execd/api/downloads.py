"""/files/download: a file, a range of its bytes, or some of its lines."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from execd.api import query
from execd.api.disposition import attachment
from execd.errors import BadRequest, BodyTooLarge, InvalidQuery
from execd.services.ranges import Conditions
from execd.services.transfers import EXTENSION, Source, Transfer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from execd.api.state import TypedRequest
    from execd.services.downloads import Download, Lines

_LINES: Final = {"content-type": "text/plain; charset=utf-8"}
_LAST_DATE: Final = 253_402_300_799  # the end of 9999, and of HTTP's dates


async def download_file(request: TypedRequest) -> ASGIApp:
    """The bytes of a file, or its lines from `offset` on, at most `limit` of them."""
    path = query.required(request, "path")
    first = query.whole_number(request, "offset", 1, 2**63 - 1)
    count = query.whole_number(request, "limit", 1, 2**63 - 1)
    if first is None and count is None:
        return _answer(await request.state["downloads"].open(path, _conditions(request)))
    if "range" in request.headers:
        field = "offset" if first is not None else "limit"
        raise InvalidQuery(f"query parameter {field} counts lines: not together with Range", {"field": field})
    found = await request.state["downloads"].lines(path, first or 1, count)
    if isinstance(found, bytes):
        return Response(found, headers=_LINES)
    return await _search(found, request.receive)


async def _search(lines: Lines, receive: Receive) -> ASGIApp:
    source: Source | None = None
    try:
        async with departure(receive) as gone:
            while (source := await lines.found()) is None:
                if gone.done():
                    raise BadRequest("the client left before the lines were found")
    finally:
        if source is None:
            lines.close()
    return FileAnswer(200, _LINES, source)


def _conditions(request: TypedRequest) -> Conditions:
    get = request.headers.get
    ranges = request.headers.getlist("range")
    # RFC 9110 14.2: Range means something for GET only. Two of them are none that can be understood.
    asked = ranges[0] if request.method == "GET" and len(ranges) == 1 else None
    tags = request.headers.getlist("if-none-match")
    return Conditions(asked, get("if-range"), ", ".join(tags) if tags else None)


def _answer(download: Download) -> ASGIApp:
    headers = {
        "content-type": "application/octet-stream",
        "content-disposition": attachment(download.name),
    }
    if download.size is None:
        headers["accept-ranges"] = "none"
    else:
        headers |= {
            "accept-ranges": "bytes",
            "etag": download.tag,
            "last-modified": _http_date(download.modified),
        }
    if download.content is None:
        kept = ("etag", "last-modified", "accept-ranges")
        return Response(status_code=304, headers={name: headers[name] for name in kept})
    status = 200
    if download.part:
        status, (start, stop) = 206, download.part
        headers["content-range"] = f"bytes {start}-{stop - 1}/{download.size}"
    if isinstance(download.content, bytes):
        return Response(download.content, status, headers)
    return FileAnswer(status, headers, download.content)


def _http_date(seconds: int) -> str:
    # RFC 9110 8.8.2.1: never later than the answer itself.
    return formatdate(max(0, min(seconds, int(time.time()), _LAST_DATE)), usegmt=True)


class FileAnswer:
    """An answer whose bytes come from an open file: by way of the kernel where that works, else read in
    pieces. Closes the file. Without a size it ends when the file does.
    """

    def __init__(self, status: int, headers: dict[str, str], source: Source) -> None:
        self._status = status
        self._headers = dict(headers)
        self._source = source
        if source.size is not None:
            self._headers["content-length"] = str(source.size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI. Raises in mid-answer, so that the connection breaks, if the file becomes shorter."""
        headers = [(name.encode(), value.encode("latin-1")) for name, value in self._headers.items()]
        try:
            await send({"type": "http.response.start", "status": self._status, "headers": headers})
            if scope["method"] != "HEAD":
                source = self._source
                if isinstance(source, Transfer) and EXTENSION in scope.get("extensions", ()):
                    await send({"type": EXTENSION, "transfer": source})
                await self._send_rest(receive, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._source.close()

    async def _send_rest(self, receive: Receive, send: Send) -> None:
        if isinstance(self._source, Transfer) and not self._source.left:
            return
        async with departure(receive) as gone:
            while not gone.done() and (data := await self._source.read()):
                await send({"type": "http.response.body", "body": data, "more_body": True})


@contextlib.asynccontextmanager
async def departure(receive: Receive) -> AsyncIterator[asyncio.Future[None]]:
    """Within the block, a future that is done once the client has left: nothing else says so. A body that it
    sends is not looked at; one that is too large is the same as leaving.
    """

    async def wait() -> None:
        with contextlib.suppress(BodyTooLarge):
            while (await receive())["type"] != "http.disconnect":
                pass

    gone = asyncio.ensure_future(wait())
    try:
        yield gone
    finally:
        gone.cancel()
