"""The released opensandbox-server as a process of its own, with local daemons in place of containers.

A sandbox id that is a number is the port of the daemon that it means; any other id, such as those that
`create` gives, means the default daemon. All else is the server as released: its routes, its proxy, its
settings.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import httpx

from tests.support.live import ROOT, free_port, wait_until

if TYPE_CHECKING:
    from opensandbox_server.services.sandbox_service import SandboxService

EXECD_PORT = 44772  # what the server calls the daemon's port inside a sandbox
START_SECONDS = 60.0  # its imports alone take 6 to 8 s here
_CONFIG = """
[server]
host = "127.0.0.1"
port = {port}
api_key = "{key}"
[runtime]
type = "docker"
execd_image = "unused"
[store]
path = "{directory}/server.sqlite"
"""


@dataclass(frozen=True)
class RealServer:
    """A running server: what a client needs to reach it."""

    port: int
    api_key: str = "conformance"

    @property
    def domain(self) -> str:
        return f"127.0.0.1:{self.port}"

    def proxied(self, daemon_port: int) -> str:
        """Host and path under which the server passes requests on to a daemon."""
        return f"{self.domain}/v1/sandboxes/{daemon_port}/proxy/{EXECD_PORT}"


@contextlib.contextmanager
def real_server(default_daemon: int) -> Iterator[RealServer]:
    """Run the server until the block is left. `default_daemon` is a port."""
    running = RealServer(free_port())
    with tempfile.TemporaryDirectory(prefix="execd-server-") as directory:
        config = Path(directory, "server.toml")
        config.write_text(_CONFIG.format(port=running.port, key=running.api_key, directory=directory))
        log = Path(directory, "log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.realserver", str(default_daemon)],
                cwd=ROOT,
                env=os.environ | {"SANDBOX_CONFIG_PATH": str(config), "NO_PROXY": "127.0.0.1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

        def healthy() -> bool:
            assert process.poll() is None, f"the server ended at once: {log.read_text()}"
            try:
                return httpx.get(f"http://{running.domain}/health", trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        try:
            wait_until(healthy, START_SECONDS, "an answer of the server")
            yield running
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def serve(default_daemon: int) -> None:
    """In the server's process: put local daemons in the place of its container runtime, then run it."""
    import docker
    import uvicorn
    from opensandbox_server.services import factory

    service = local_service(default_daemon)
    with (
        patch.object(docker, "from_env", lambda: object()),
        patch.object(factory, "create_sandbox_service", lambda: service),
    ):
        from opensandbox_server.main import app, app_config

        server = app_config.server
        uvicorn.run(
            app,
            host=server.host,
            port=server.port,
            timeout_keep_alive=server.timeout_keep_alive,
            limit_concurrency=server.limit_concurrency,
            timeout_graceful_shutdown=1,
            loop=server.loop,
            http=server.http,
            date_header=False,
            log_level="warning",
        )


def local_service(default_daemon: int) -> SandboxService:
    """A backend whose sandboxes exist already, run for ever, and are daemons on this machine."""
    from opensandbox_server.api.schema import (
        CreateSandboxRequest,
        CreateSandboxResponse,
        Endpoint,
        Sandbox,
        SandboxStatus,
    )
    from opensandbox_server.services.extension_service import ExtensionService
    from opensandbox_server.services.sandbox_service import SandboxService

    status = SandboxStatus(state="Running")

    class LocalService(SandboxService, ExtensionService):
        docker_client = object()  # only handed on: nothing here has a container

        async def create_sandbox(self, request: CreateSandboxRequest) -> CreateSandboxResponse:
            return CreateSandboxResponse(
                id=str(uuid.uuid4()),
                status=status,
                created_at=datetime.now(UTC),
                entrypoint=request.entrypoint,
            )

        def get_sandbox(self, sandbox_id: str) -> Sandbox:
            return Sandbox(id=sandbox_id, status=status, created_at=datetime.now(UTC), entrypoint=["true"])

        def delete_sandbox(self, sandbox_id: str) -> None:
            pass

        def get_endpoint(self, sandbox_id: str, port: int, *_: object, **__: object) -> Endpoint:
            daemon = int(sandbox_id) if sandbox_id.isdigit() else default_daemon
            return Endpoint(endpoint=f"127.0.0.1:{daemon if port == EXECD_PORT else port}")

        def get_access_renew_extend_seconds(self, sandbox_id: str) -> int | None:
            return None

    # The rest of the interface (pause, diagnostics, ...) is asked of no sandbox here.
    with patch.object(LocalService, "__abstractmethods__", frozenset()):
        return LocalService()  # type: ignore[abstract]


if __name__ == "__main__":
    serve(int(sys.argv[1]))
