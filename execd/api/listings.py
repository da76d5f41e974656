"""/directories/list and /files/search: a page as an array or an object, or a stream of entries."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from execd.api import query
from execd.api.body import parse_body
from execd.api.framing import ascii_json, prefers_ndjson
from execd.errors import InvalidBody, InvalidQuery
from execd.models.listings import ListDirectoryRequest, SearchFilesRequest
from execd.services.entry_text import FIELDS
from execd.services.listings import Asked, Ending, Listing, Listings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from execd.api.state import TypedRequest

_MOST: Final = 2**63 - 1
_DEFAULT_DEPTH: Final = 1
_DEFAULT_PATTERN: Final = "**"
_WATCH_AFTER: Final = 0.05
"""Seconds after which a walk begins to watch for its client leaving: most are over before that."""


_PATIENCE: Final = 1.0
"""Seconds that a walk stays open for a client that does not read; then it rests until the client does."""


async def list_directory(request: TypedRequest) -> ASGIApp:
    """What is in a directory, level by level."""
    depth = query.whole_number(request, "depth", 0, _MOST)
    return _answer(request, _asked(request, depth=_DEFAULT_DEPTH if depth is None else depth))


async def search_files(request: TypedRequest) -> ASGIApp:
    """The files below a directory that match a pattern."""
    return _answer(request, _asked(request, pattern=query.optional(request, "pattern") or _DEFAULT_PATTERN))


async def list_directory_page(request: TypedRequest) -> ASGIApp:
    """`list_directory` with a JSON body, and an object as the answer."""
    body = await parse_body(request, ListDirectoryRequest)
    depth = _DEFAULT_DEPTH if body.depth is None else body.depth
    fields = None if body.fields is None else tuple(body.fields)
    asked = Asked(body.path, depth=depth, limit=body.limit, cursor=body.cursor or "", fields=fields)
    return _PageObject(request.state["listings"], asked)


async def search_files_page(request: TypedRequest) -> ASGIApp:
    """`search_files` with a JSON body, and an object as the answer."""
    body = await parse_body(request, SearchFilesRequest)
    pattern = body.pattern or _DEFAULT_PATTERN
    fields = None if body.fields is None else tuple(body.fields)
    asked = Asked(body.path, pattern=pattern, limit=body.limit, cursor=body.cursor or "", fields=fields)
    return _PageObject(request.state["listings"], asked)


def _asked(request: TypedRequest, depth: int | None = None, pattern: str | None = None) -> Asked:
    text = query.optional(request, "fields")
    fields = None if text is None else tuple(text.split(","))
    for name in fields or ():
        if name not in FIELDS:
            raise InvalidQuery(
                f"query parameter fields has {name[:80]!r}, allowed are {', '.join(FIELDS)}",
                {"field": "fields"},
            )
    return Asked(
        query.required(request, "path"),
        depth,
        pattern,
        query.whole_number(request, "limit", 1, _MOST),
        query.optional(request, "cursor") or "",
        fields,
    )


def _answer(request: TypedRequest, asked: Asked) -> ASGIApp:
    listings = request.state["listings"]
    if prefers_ndjson(request.headers.get("accept", "")):
        return _Stream(listings, asked)
    return _PageArray(listings, asked)


class _PageArray:
    """A page as a bare array, which older clients expect; how it ended is in the headers."""

    def __init__(self, listings: Listings, asked: Asked) -> None:
        self._listings = listings
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Collect it, then send it: the headers say how it ended."""
        parts: list[bytes] = []
        async with self._listings.open(self._asked, held=True) as listing, _watching(receive, listing):
            while (entries := await listing.chunk()) is not None:
                if entries:
                    parts.append(f"{',' if parts else ''}{','.join(entries)}".encode())
            ending = listing.ending
        head, tail = self._around(ending)
        parts = [head, *parts, tail]
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % sum(map(len, parts))),
            *self._headers(ending),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        parts.reverse()
        while parts:  # each is let go once it is sent
            await send({"type": "http.response.body", "body": parts.pop(), "more_body": bool(parts)})
            await asyncio.sleep(0)  # `send` returns at once while the socket has room: let others run

    def _around(self, ending: Ending) -> tuple[bytes, bytes]:
        return b"[", b"]"

    def _headers(self, ending: Ending) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"x-execd-truncated", b"true" if ending.reason else b"false"),
            (b"x-execd-skipped", b"%d" % ending.skipped),
        ]
        if ending.reason:
            headers.append((b"x-execd-truncated-reason", ending.reason.encode()))
        if ending.next_cursor:
            headers.append((b"x-execd-next-cursor", ending.next_cursor.encode()))
        return headers


class _PageObject(_PageArray):
    """A page as an object that says itself how it ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As the array; what is wrong with the query was in the body."""
        try:
            await super().__call__(scope, receive, send)
        except InvalidQuery as error:
            raise InvalidBody(error.message, error.details) from None

    def _around(self, ending: Ending) -> tuple[bytes, bytes]:
        limit = self._listings.limit(self._asked)
        rest = ascii_json({**_record(ending), "limit": limit})
        return b'{"entries":[', b"]," + rest[1:]

    def _headers(self, ending: Ending) -> list[tuple[bytes, bytes]]:
        return []


class _Stream:
    """Entries as they are found, one JSON object a line; the last line says how it ended."""

    def __init__(self, listings: Listings, asked: Asked) -> None:
        self._listings = listings
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it all; a client that leaves ends the walk."""
        loop = asyncio.get_running_loop()
        headers = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]
        async with self._listings.open(self._asked, held=False) as listing, _watching(receive, listing):
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            while (entries := await listing.chunk()) is not None:
                if entries:
                    entries.append("")
                    body = "\n".join(entries).encode()
                    timer = loop.call_later(_PATIENCE, listing.rest)
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    timer.cancel()
            record = ascii_json(_record(listing.ending)) + b"\n"
        await send({"type": "http.response.body", "body": record})


def _record(ending: Ending) -> dict[str, object]:
    return {
        "truncated": ending.reason is not None,
        "reason": ending.reason,
        "next_cursor": ending.next_cursor,
        "skipped": ending.skipped,
    }


@contextlib.asynccontextmanager
async def _watching(receive: Receive, listing: Listing) -> AsyncIterator[None]:
    """Within the block, the client leaving ends the walk."""
    watcher: asyncio.Task[None] | None = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        listing.leave()

    def begin() -> None:
        nonlocal watcher
        watcher = loop.create_task(watch())

    loop = asyncio.get_running_loop()
    timer = loop.call_later(_WATCH_AFTER, begin)
    try:
        yield
    finally:
        timer.cancel()
        if watcher is not None:
            watcher.cancel()
