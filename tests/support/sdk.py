"""The released Python SDK, sync and async, behind one blocking face: a scenario is written once for both."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from opensandbox import Sandbox, SandboxSync
from opensandbox.adapters.factory import AdapterFactory
from opensandbox.config import ConnectionConfig
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.models.execd import CommandLogs, CommandStatus, Execution, ExecutionHandlers, RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.models.sandboxes import SandboxEndpoint
from opensandbox.services.command import Commands
from opensandbox.sync.adapters.factory import AdapterFactorySync
from opensandbox.sync.services.command import CommandsSync

from tests.support.live import Daemon
from tests.support.realserver import RealServer

T = TypeVar("T")
Kind = Literal["sync", "async"]
KINDS: tuple[Kind, ...] = ("sync", "async")
LineEndings = Literal["keep", "strip"]
Record = Callable[[str, Any], None]
"""Called with a handler's name and what it was given."""
HANDLERS = ("on_init", "on_stdout", "on_stderr", "on_execution_complete", "on_error")
SECONDS = 60.0


@dataclass(frozen=True)
class Target:
    """A daemon, and how to reach it: directly, or through a server. `token`: sent if not empty."""

    daemon: Daemon
    line_endings: LineEndings = "keep"
    server: RealServer | None = None
    token: str = ""

    @property
    def url(self) -> str:
        """For raw HTTP."""
        return f"http://{self.server.proxied(self.daemon.port)}" if self.server else self.daemon.url

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of either kind of ConnectionConfig."""
        headers = {"X-EXECD-ACCESS-TOKEN": self.token} if self.token else {}
        found = {"protocol": "http", "headers": headers, "disable_metrics": True}
        if self.server:
            found |= {
                "domain": self.server.domain,
                "api_key": self.server.api_key,
                "use_server_proxy": True,
            }
        return found


class Sdk(ABC):
    """The commands, the files and the health service of one connected client."""

    kind: ClassVar[Kind]

    def __init__(self, target: Target) -> None:
        self.target = target
        self.daemon = target.daemon
        self.line_endings = target.line_endings

    @abstractmethod
    def submit(
        self, command: str | list[str], record: Record | None = None, **opts: Any
    ) -> Future[Execution]:
        """Run a command without waiting for it; `opts` as RunCommandOpts has them."""

    def run(self, command: str | list[str], record: Record | None = None, **opts: Any) -> Execution:
        """Run a command as `submit` does, and wait for its end."""
        return self.submit(command, record, **opts).result(SECONDS)

    def background(self, command: str | list[str], **opts: Any) -> str:
        """Start a background command; its id."""
        execution = self.run(command, background=True, **opts)
        assert execution.id
        return execution.id

    @abstractmethod
    def set_env(self, key: str, value: str) -> None: ...

    @abstractmethod
    def interrupt(self, execution_id: str) -> None: ...

    @abstractmethod
    def status(self, execution_id: str) -> CommandStatus: ...

    @abstractmethod
    def logs(self, execution_id: str, cursor: int | None = None) -> CommandLogs: ...

    @abstractmethod
    def files(self, method: str, *args: Any, **options: Any) -> Any:
        """What a method of the filesystem service returns; of a stream, the list of its pieces."""

    @abstractmethod
    def healthy(self) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...


class SyncSdk(Sdk):
    """The sync client; `submit` uses threads, which share its connections."""

    kind = "sync"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._threads = ThreadPoolExecutor(64, "sdk")
        config = ConnectionConfigSync(**target.options).with_transport_if_missing()
        self._close = config.close_transport_if_owned
        self._commands: CommandsSync
        if target.server:
            sandbox = SandboxSync.connect(str(target.daemon.port), connection_config=config)
            self._commands, self._healthy = sandbox.commands, sandbox.is_healthy
            self._files = sandbox.files
        else:
            endpoint = SandboxEndpoint(endpoint=f"127.0.0.1:{target.daemon.port}")
            factory = AdapterFactorySync(config)
            self._commands = factory.create_command_service(endpoint)
            self._files = factory.create_filesystem_service(endpoint)
            health = factory.create_health_service(endpoint)
            self._healthy = lambda: health.ping("any")

    def submit(
        self, command: str | list[str], record: Record | None = None, **opts: Any
    ) -> Future[Execution]:
        handlers = (
            ExecutionHandlersSync(**{name: _bound(record, name) for name in HANDLERS}) if record else None
        )
        return self._threads.submit(
            self._commands.run, command, opts=RunCommandOpts(**opts), handlers=handlers
        )

    def set_env(self, key: str, value: str) -> None:
        self._commands.set_env(key, value)

    def interrupt(self, execution_id: str) -> None:
        self._commands.interrupt(execution_id)

    def status(self, execution_id: str) -> CommandStatus:
        return self._commands.get_command_status(execution_id)

    def logs(self, execution_id: str, cursor: int | None = None) -> CommandLogs:
        return self._commands.get_background_command_logs(execution_id, cursor)

    def files(self, method: str, *args: Any, **options: Any) -> Any:
        found = getattr(self._files, method)(*args, **options)
        return list(found) if isinstance(found, Iterator) else found

    def healthy(self) -> bool:
        return self._healthy()

    def close(self) -> None:
        self._threads.shutdown()
        self._close()


class AsyncSdk(Sdk):
    """The async client, on an event loop in a thread of its own."""

    kind = "async"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sdk-loop", daemon=True)
        self._thread.start()
        self._commands: Commands
        self._wait(self._connect())

    async def _connect(self) -> None:
        config = ConnectionConfig(**self.target.options).with_transport_if_missing()
        self._close = config.close_transport_if_owned
        if self.target.server:
            sandbox = await Sandbox.connect(str(self.daemon.port), connection_config=config)
            self._commands, self._healthy = sandbox.commands, sandbox.is_healthy
            self._files = sandbox.files
        else:
            endpoint = SandboxEndpoint(endpoint=f"127.0.0.1:{self.daemon.port}")
            factory = AdapterFactory(config)
            self._commands = factory.create_command_service(endpoint)
            self._files = factory.create_filesystem_service(endpoint)
            health = factory.create_health_service(endpoint)
            self._healthy = lambda: health.ping("any")

    def submit(
        self, command: str | list[str], record: Record | None = None, **opts: Any
    ) -> Future[Execution]:
        handlers = (
            ExecutionHandlers(**{name: _awaited(record, name) for name in HANDLERS}) if record else None
        )
        running = self._commands.run(command, opts=RunCommandOpts(**opts), handlers=handlers)
        return asyncio.run_coroutine_threadsafe(running, self._loop)

    def set_env(self, key: str, value: str) -> None:
        self._wait(self._commands.set_env(key, value))

    def interrupt(self, execution_id: str) -> None:
        self._wait(self._commands.interrupt(execution_id))

    def status(self, execution_id: str) -> CommandStatus:
        return self._wait(self._commands.get_command_status(execution_id))

    def logs(self, execution_id: str, cursor: int | None = None) -> CommandLogs:
        return self._wait(self._commands.get_background_command_logs(execution_id, cursor))

    def files(self, method: str, *args: Any, **options: Any) -> Any:
        async def call() -> Any:
            found = await getattr(self._files, method)(*args, **options)
            return [piece async for piece in found] if isinstance(found, AsyncIterator) else found

        return self._wait(call())

    def healthy(self) -> bool:
        return self._wait(self._healthy())

    def close(self) -> None:
        self._wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)


def _bound(record: Record, name: str) -> Callable[[Any], None]:
    return lambda message: record(name, message)


def _awaited(record: Record, name: str) -> Callable[[Any], Coroutine[Any, Any, None]]:
    async def call(message: Any) -> None:
        record(name, message)

    return call


@contextlib.contextmanager
def connected(kind: Kind, target: Target) -> Iterator[Sdk]:
    """A client of that kind, closed when the block is left."""
    sdk: Sdk = SyncSdk(target) if kind == "sync" else AsyncSdk(target)
    try:
        yield sdk
    finally:
        sdk.close()
