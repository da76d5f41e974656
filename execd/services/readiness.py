"""Readiness: does a command really run here? Asked of the real engine, cached, bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from execd.errors import ExecdError
from execd.posix import resources
from execd.posix.resources import Amount
from execd.services.blocks import STDOUT
from execd.services.engine import Engine
from execd.services.launch import Launch

T = TypeVar("T")

TIMEOUT: Final = 5.0
"""Seconds for all checks together."""
CACHE: Final = 3.0
"""Seconds for which an answer is given again without a new check."""
MIN_DISK_BYTES: Final = 1024 * 1024
MIN_INODES: Final = 16
MIN_PIDS: Final = 4
MIN_DESCRIPTORS: Final = 16
_WORD: Final = "execd-ready"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: `detail` says what was seen, or what is wrong."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, and when they were made (monotonic seconds)."""

    checks: dict[str, Check]
    made_at: float

    @property
    def ready(self) -> bool:
        """True if every check passed."""
        return all(check.ok for check in self.checks.values())


class Readiness:
    """Callers that come while checks run share their result."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last: Report | None = None
        self._running: asyncio.Task[Report] | None = None

    async def report(self) -> Report:
        """The current report, at most `CACHE` seconds old, within `TIMEOUT` seconds and a moment."""
        if self._engine.stopping:
            return Report({"accepting": Check(False, "the daemon is stopping")}, time.monotonic())
        if self._last is not None and time.monotonic() - self._last.made_at < CACHE:
            return self._last
        if self._running is None:
            self._running = asyncio.create_task(self._check_all())
            self._running.add_done_callback(self._checked)
        return await asyncio.shield(self._running)

    def _checked(self, _: asyncio.Task[Report]) -> None:
        self._running = None

    async def _check_all(self) -> Report:
        checks: dict[str, Callable[[], Awaitable[Check]]] = {
            "command": self._command,
            "state_directory": self._state_directory,
            "disk": self._disk,
            "processes": self._processes,
            "descriptors": self._descriptors,
        }
        results = await asyncio.gather(*(_bounded(check) for check in checks.values()))
        self._last = Report(dict(zip(checks, results, strict=True)), time.monotonic())
        return self._last

    async def _command(self) -> Check:
        started, output = time.monotonic(), b""
        request = Launch(command=f"echo {_WORD}", timeout=TIMEOUT)
        try:
            execution = await self._engine.start(request, listed=False)
            with execution.log.reader() as reader:
                while not reader.at_end:
                    await reader.wake.wait()
                    reader.wake.clear()
                    # What a shell says on stderr of a missing locale and the like is no fault of the command.
                    output += b"".join([p.data for p in reader.take(4096) if p.stream == STDOUT])
        except ExecdError as error:
            return Check(False, f"{error.code}: {error.message}")
        took = f"{(time.monotonic() - started) * 1000:.1f} ms"
        assert execution.outcome is not None
        if execution.outcome.failed:
            return Check(False, f"echo ended with {execution.outcome.text} after {took}")
        if output != _WORD.encode() + b"\n":
            return Check(False, f"echo printed {output[:80]!r}")
        return Check(True, f"a command ran in {took}")

    async def _state_directory(self) -> Check:
        state = self._engine.state
        try:
            await self._in_thread(state.probe)
        except OSError as error:
            return Check(False, f"{state.path}: {error.strerror or error}")
        return Check(True, state.path)

    async def _disk(self) -> Check:
        try:
            state = self._engine.state
            where = state.fd if state.fd >= 0 else state.path  # the descriptor outlives the name
            space, inodes = await self._in_thread(lambda: resources.disk(where))
        except OSError as error:
            return Check(False, f"{self._engine.state.path}: {error.strerror or error}")
        if space.free < MIN_DISK_BYTES:
            return Check(False, f"{space.free} bytes are free on the disk of the state directory")
        if inodes.total and inodes.free < MIN_INODES:
            return Check(False, f"{inodes.free} inodes are free on the disk of the state directory")
        return Check(True, f"{space.free} bytes and {inodes.free} inodes are free")

    async def _processes(self) -> Check:
        return _enough(await self._in_thread(resources.pids), MIN_PIDS, "processes")

    async def _descriptors(self) -> Check:
        return _enough(await self._in_thread(resources.descriptors), MIN_DESCRIPTORS, "descriptors")

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._engine.files, call)


def _enough(amount: Amount | None, least: int, what: str) -> Check:
    if amount is None:
        return Check(True, f"no limit on {what} is known")
    return Check(amount.free >= least, f"{amount.free} of {amount.total} {what} are free")


async def _bounded(check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check()
    except TimeoutError:
        return Check(False, f"no answer within {TIMEOUT:g} s")
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
        return Check(False, str(error))
