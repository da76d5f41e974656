"""The application: the only place that builds services, orders middleware and owns the lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from execd.api import commands, errors, health, meta
from execd.api.middleware import Authentication, BodyLimit, Boundary, RequestLimit
from execd.api.state import State
from execd.errors import ExecdError
from execd.services.capabilities import Capabilities
from execd.services.commands import Commands
from execd.services.engine import Engine
from execd.services.readiness import Readiness

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from execd.settings import Settings

ROUTES = [
    Route("/command", commands.run_command, methods=["POST"]),
    Route("/command", commands.interrupt_command, methods=["DELETE"]),
    Route("/command/status/{id}", commands.command_status, methods=["GET"]),
    Route("/command/{id}/logs", commands.command_logs, methods=["GET"]),
    Route("/ping", health.ping, methods=["GET"]),
    Route("/readyz", health.readyz, methods=["GET"]),
    Route("/capabilities", meta.capabilities, methods=["GET"]),
    Route("/openapi.yaml", meta.openapi, methods=["GET"]),
    Route("/docs", meta.docs, methods=["GET"]),
    Route("/docs/{asset}", meta.docs_asset, methods=["GET"]),
]


class Application:
    """The ASGI app and the engine behind it, which the server stops before it closes connections."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.engine: Engine | None = None
        starlette = Starlette(
            routes=ROUTES,
            middleware=[
                Middleware(Authentication, token=settings.access_token),
                Middleware(RequestLimit, limit=settings.max_requests),
                Middleware(BodyLimit, limit=settings.max_body),
            ],
            exception_handlers={
                ExecdError: errors.on_execd_error,
                HTTPException: errors.on_http_exception,
                Exception: self._on_fault,
            },
            lifespan=self._lifespan,
        )
        starlette.router.redirect_slashes = False
        self.asgi: ASGIApp = Boundary(starlette)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[State]:
        engine = Engine(self._settings, self._environ, asyncio.get_running_loop())
        self.engine = engine
        try:
            yield State(
                settings=self._settings,
                commands=Commands(engine, self._settings),
                readiness=Readiness(engine),
                capabilities=Capabilities(engine, self._settings),
            )
        finally:
            await engine.stop()
            engine.close()

    async def _on_fault(self, request: Request, error: Exception) -> Response:
        request_id = request.headers.get("x-request-id", "")
        return errors.error_response(errors.internal_error(error, request_id))


def create_app(settings: Settings, environ: Mapping[str, str]) -> Application:
    """Build the daemon. `environ` is what commands inherit, less what is private to the daemon."""
    return Application(settings, cast("Mapping[str, str]", dict(environ)))
