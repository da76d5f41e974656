"""A handler as an ASGI app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from execd.api.state import State


class Endpoint:
    """Gives the handler a request and sends its answer. What it raises goes to the Boundary as it is.

    Instead of Starlette's own wrapper, which catches exceptions once more for every request.
    """

    def __init__(self, handler: Callable[[Request[State]], Awaitable[ASGIApp]]) -> None:
        self._handler = handler
        self.__name__ = getattr(handler, "__name__", type(handler).__name__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        response = await self._handler(Request(scope, receive, send))
        await response(scope, receive, send)
