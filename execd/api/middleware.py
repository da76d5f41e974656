"""What every request passes through, outermost first: Boundary, Authentication, RequestLimit, BodyLimit.

Pure ASGI. Everything inside raises; only Boundary turns what was raised into an answer.
"""

from __future__ import annotations

import hmac
import os
import re
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from execd.api.errors import answer_to
from execd.errors import BodyTooLarge, BrokenOff, ExecdError, TooManyRequests, Unauthorized
from execd.logs import DEBUG, INFO, WARNING, log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER: Final = b"x-execd-access-token"
OPEN_PATHS: Final = frozenset({"/ping", "/readyz"})
"""Answered without a token and beyond the limit on requests: a health check must always get through."""
_REQUEST_ID: Final = re.compile(rb"[!-~]{1,128}")
_LOGGED_PATH: Final = 200  # characters


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first value of a request header; `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None


class Boundary:
    """Request id in and out, Date, one log line a request, and no fault gets past it unshaped."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._date = b""
        self._date_of = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id")
        request_id = given if given and _REQUEST_ID.fullmatch(given) else os.urandom(16).hex().encode()
        started, status = time.perf_counter(), 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id),
                    (b"date", self._now()),
                ]
            await send(message)

        scope["app"] = self  # makes the router raise instead of answering in its own words
        try:
            await self._app(scope, receive, observed)
        except Exception as error:
            if status:
                if isinstance(error, BrokenOff):
                    log.write(WARNING, "answer_broken_off", error=str(error), request_id=request_id.decode())
                else:
                    log.exception("answer_broken_off", error, request_id=request_id.decode())
                raise  # the server closes the connection: a cut answer must not look complete
            await answer_to(error, scope, request_id.decode())(scope, receive, observed)
        finally:
            log.write(
                DEBUG if scope["path"] in OPEN_PATHS else INFO,
                "request",
                method=scope["method"],
                path=scope["path"][:_LOGGED_PATH],
                status=status,
                ms=round((time.perf_counter() - started) * 1000, 2),
                request_id=request_id.decode(),
            )

    def _now(self) -> bytes:
        second = int(time.time())
        if second != self._date_of:
            self._date_of, self._date = second, formatdate(second, usegmt=True).encode()
        return self._date


class Authentication:
    """The access token, compared in constant time, before anything else of the request is looked at."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._token and scope["path"] not in OPEN_PATHS:
            given = header(scope, TOKEN_HEADER)
            if given is None or not hmac.compare_digest(given, self._token):
                what = "missing" if given is None else "invalid"
                raise Unauthorized(f"{what} access token: send it as header X-EXECD-ACCESS-TOKEN")
        await self._app(scope, receive, send)


class RequestLimit:
    """At most `limit` requests are being answered at once."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if self._now >= self._limit:
            raise TooManyRequests(f"{self._limit} requests are being answered, the limit")
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1


class BodyLimit:
    """No body of more than `limit` bytes: refused unread if it is announced, else where it passes it.

    The paths in `unlimited` take bodies of any size.
    """

    def __init__(self, app: ASGIApp, limit: int, unlimited: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._limit = limit
        self._unlimited = unlimited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._unlimited:
            await self._app(scope, receive, send)
            return
        announced = header(scope, b"content-length")
        if announced is not None and int(announced) > self._limit:
            raise self._error()
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise self._error()
            return message

        await self._app(scope, counted if announced is None else receive, send)

    def _error(self) -> ExecdError:
        return BodyTooLarge(f"the body is larger than {self._limit} bytes", {"limit_bytes": self._limit})
