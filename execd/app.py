"""The application: the only place that builds services, orders middleware and owns the lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.routing import Route, Router

from execd.api import commands, downloads, files, health, listings, meta, uploads
from execd.api.endpoint import Endpoint
from execd.api.middleware import Authentication, BodyLimit, Boundary, RequestLimit
from execd.api.state import State
from execd.services.capabilities import Capabilities
from execd.services.commands import Commands
from execd.services.directories import Directories
from execd.services.downloads import Downloads
from execd.services.engine import Engine
from execd.services.files import Files
from execd.services.filesystem import Filesystem
from execd.services.listings import Listings
from execd.services.readiness import Readiness
from execd.services.replacements import Replacements
from execd.services.uploads import Uploads

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from execd.settings import Settings

ROUTES = [
    Route("/command", Endpoint(commands.run_command), methods=["POST"]),
    Route("/command", Endpoint(commands.interrupt_command), methods=["DELETE"]),
    Route("/command/status/{id}", Endpoint(commands.command_status), methods=["GET"]),
    Route("/command/{id}/logs", Endpoint(commands.command_logs), methods=["GET"]),
    Route("/files/info", Endpoint(files.file_info), methods=["GET"]),
    Route("/files/permissions", Endpoint(files.set_permissions), methods=["POST"]),
    Route("/files/upload", Endpoint(uploads.upload_files), methods=["POST"]),
    Route("/files/content", Endpoint(uploads.write_content), methods=["PUT"]),
    Route("/files/replace", Endpoint(files.replace_contents), methods=["POST"]),
    Route("/files/mv", Endpoint(files.move_files), methods=["POST"]),
    Route("/files", Endpoint(files.delete_files), methods=["DELETE"]),
    Route("/files/download", Endpoint(downloads.download_file), methods=["GET"]),
    Route("/directories", Endpoint(files.make_directories), methods=["POST"]),
    Route("/directories", Endpoint(files.remove_directories), methods=["DELETE"]),
    Route("/directories/list", Endpoint(listings.list_directory), methods=["GET"]),
    Route("/directories/list", Endpoint(listings.list_directory_page), methods=["POST"]),
    Route("/files/search", Endpoint(listings.search_files), methods=["GET"]),
    Route("/files/search", Endpoint(listings.search_files_page), methods=["POST"]),
    Route("/ping", Endpoint(health.ping), methods=["GET"]),
    Route("/readyz", Endpoint(health.readyz), methods=["GET"]),
    Route("/capabilities", Endpoint(meta.capabilities), methods=["GET"]),
    Route("/openapi.yaml", Endpoint(meta.openapi), methods=["GET"]),
    Route("/docs", Endpoint(meta.docs), methods=["GET"]),
    Route("/docs/{asset}", Endpoint(meta.docs_asset), methods=["GET"]),
]


class Application:
    """The ASGI app and the engine behind it, which the server stops before it closes connections."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.engine: Engine | None = None
        app: ASGIApp = Router(ROUTES, redirect_slashes=False, lifespan=self._lifespan)
        app = BodyLimit(app, settings.max_body, unlimited=uploads.PATHS)
        app = RequestLimit(app, settings.max_requests)
        app = Authentication(app, settings.access_token)
        self.asgi: ASGIApp = Boundary(app)

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[State]:
        engine = Engine(self._settings, self._environ, asyncio.get_running_loop())
        self.engine = engine
        filesystem = Filesystem(self._settings, engine.environments, asyncio.get_running_loop())
        incoming = Uploads(filesystem)
        try:
            yield State(
                settings=self._settings,
                commands=Commands(engine, self._settings),
                readiness=Readiness(engine),
                capabilities=Capabilities(engine, self._settings),
                filesystem=filesystem,
                downloads=Downloads(filesystem),
                files=Files(filesystem),
                directories=Directories(filesystem),
                replacements=Replacements(filesystem),
                listings=Listings(filesystem, self._settings),
                uploads=incoming,
            )
        finally:
            await engine.stop()
            incoming.close()
            filesystem.close()
            engine.close()


def create_app(settings: Settings, environ: Mapping[str, str]) -> Application:
    """Build the daemon. `environ` is what commands inherit, less what is private to the daemon."""
    return Application(settings, environ)
