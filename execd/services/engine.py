"""The engine: starts executions, keeps their records, ends them. One per daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from asyncio import AbstractEventLoop, Task
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Final

from execd.errors import ResourceExhausted, ShuttingDown, TooManyExecutions
from execd.logs import ERROR, log
from execd.posix import libc
from execd.posix.environment import Environments
from execd.posix.poller import Poller
from execd.posix.process import Process
from execd.posix.reaper import Reaper
from execd.posix.resources import OomCounter
from execd.services import ending
from execd.services.executions import Execution
from execd.services.launch import Launch, launch
from execd.services.outcome import Forced
from execd.services.output import OutputLog
from execd.services.records import Records
from execd.services.spawner import Spawner
from execd.services.statedir import StateDirectory
from execd.services.store import OutputStore
from execd.settings import Settings

SPAWN_THREADS: Final = 2
"""Threads that start processes. Two also make a fair queue of a burst; more gain nothing (measured)."""
FILE_THREADS: Final = 4
_HURRY_SECONDS: Final = 1.0
"""How long a stop that was asked for twice waits for what it killed."""
LINGERING_FACTOR: Final = 4
"""Ended executions whose pipes are still held by a process they left: at most this times the running."""


class Engine:
    """Use as a context manager on the running loop, in the main thread."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], loop: AbstractEventLoop) -> None:
        self._settings = settings
        self._loop = loop
        self.environments = Environments(environ, settings.env_file or None)
        self._spawner: Spawner[tuple[Process, int]] = Spawner(loop, SPAWN_THREADS)
        self.files = _running_threads(FILE_THREADS, "execd-file")
        loop.set_default_executor(self.files)
        self._reaper = Reaper()
        self._poller = Poller(loop)
        self._oom = OomCounter()
        self.state = StateDirectory(settings.state_path)
        self.store = OutputStore(self.state, settings, self.files, loop)
        self.records = Records(settings, loop)
        self._starting = 0
        self._open = 0
        self._endings: set[Task[None]] = set()
        self.stopping = False
        self._patience = settings.shutdown_timeout
        self._grace = settings.kill_grace
        self.subreaper = libc.become_subreaper()
        # Not loop.add_signal_handler: uvloop keeps SIGCHLD for its own subprocesses, of which we have none.
        self._sigchld_before = signal.signal(signal.SIGCHLD, self._on_sigchld)

    @property
    def running(self) -> int:
        """Executions that are starting or running."""
        return self._starting + self.records.running

    async def start(self, request: Launch, *, background: bool = False, listed: bool = True) -> Execution:
        """Check, start and register. When this returns, the process runs and can be found by its id.

        `listed` False: a check of our own, which leaves no record.

        Raises:
            ShuttingDown, TooManyExecutions: nothing was started.
            InvalidBody, IdentityNotPermitted, StartFailed, ResourceExhausted: see `launch`.
        """
        if self._stop_was_asked():
            raise ShuttingDown("the daemon is stopping")
        limit = self._settings.max_executions
        lingering = self._open - self.records.running
        if listed and (self.running >= limit or lingering >= limit * LINGERING_FACTOR):
            raise TooManyExecutions(
                f"{self.running} executions are running, the limit is {limit}; of {lingering} that ended, "
                f"processes left behind hold the pipes, the limit is {limit * LINGERING_FACTOR}",
                {"running": self.running, "limit": limit, "lingering": lingering},
            )
        execution_id = os.urandom(16).hex()
        ticket = self._reaper.begin_spawn()
        self._starting += 1
        try:
            process, oom_before = await self._spawner.submit(
                partial(self._launch, request, execution_id), partial(self._abandon, ticket)
            )
        except Exception:
            self._reaper.end_spawn(ticket, None)
            raise
        finally:
            self._starting -= 1
        try:
            return self._adopt(ticket, process, request, execution_id, oom_before, background, listed)
        except OSError as error:
            process.abandon()
            raise ResourceExhausted(f"cannot watch the command: {error}") from error

    def _adopt(
        self,
        ticket: int,
        process: Process,
        request: Launch,
        execution_id: str,
        oom_before: int,
        background: bool,
        listed: bool,
    ) -> Execution:
        self._reaper.end_spawn(ticket, process.pid)
        settings = self._settings
        output = OutputLog(settings.output_memory, settings.output_disk, settings.event_text)
        execution = Execution(
            execution_id,
            request.content,
            process,
            output,
            self.store.spool(execution_id, output),
            self._settings,
            self._loop,
            self._poller,
            background=background,
            oom_count=self._oom.read,
            oom_before=oom_before,
        )
        execution.begin(request.timeout, self._timed_out, self._exited, self._closed)
        self._open += 1
        self.records.add(execution, listed=listed)
        if self._stop_was_asked():  # while the process was being started
            self.end(execution, "shutdown")
        return execution

    def end(self, execution: Execution, reason: str) -> None:
        """Begin to end a running execution and everything it started; no effect on one that has ended."""
        self._force(execution, "interrupted", reason)

    async def stop(self) -> None:
        """Refuse new work, end what runs, wait until it has ended. When the setting's time is up it is
        killed; the grace that it has before is never more than half of that time.
        """
        self.stopping = True
        self._grace = min(self._grace, self._patience / 2)
        running = self.records.all_running()
        for execution in running:
            self.end(execution, "shutdown")
        if not await self._wait_exited(running, self._patience):
            self.hurry()
            await self._wait_exited(running, _HURRY_SECONDS)

    async def _wait_exited(self, running: list[Execution], seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for execution in running:
                    await execution.wait_exited()
                return True
        return False

    def hurry(self) -> None:
        """Kill what is still running after `stop`, and let that wait for little more."""
        self._patience = _HURRY_SECONDS
        for task in self._endings:
            task.cancel()
        for execution in self.records.all_running():
            if execution.leader is not None:
                self._begin_end(execution, execution.leader, 0.0)

    def close(self) -> None:
        """Give everything back. What still runs is killed; what ended executions left behind lives on."""
        for execution in self.records.all_running():
            execution.kill()
        signal.signal(signal.SIGCHLD, self._sigchld_before)
        for task in self._endings:
            task.cancel()
        self._spawner.close()
        self.records.close()
        self._poller.close()
        self.files.shutdown(wait=True)
        self.state.close()
        self._oom.close()

    def statistics(self) -> dict[str, int]:
        """What is held right now, in counts and bytes."""
        return {
            "running": self.running,
            "open": self._open,
            "records": len(self.records),
            "output_disk_bytes": self.store.disk_bytes,
            "output_memory_bytes": self.store.small_bytes,
            "orphans_reaped": self._reaper.reaped,
            "tasks": len(asyncio.all_tasks(self._loop)),
            "watched_descriptors": len(self._poller),
        }

    def _stop_was_asked(self) -> bool:
        return self.stopping

    def _on_sigchld(self, _number: int, _frame: FrameType | None) -> None:
        # Runs in the loop's own thread, which the signal has woken: `call_soon` is enough.
        self._loop.call_soon(self._reaper.sweep)

    def _launch(self, request: Launch, execution_id: str) -> tuple[Process, int]:
        oom_before = self._oom.read()  # before: it may be struck at once
        return launch(request, execution_id, self.environments), oom_before

    def _timed_out(self, execution: Execution) -> None:
        self._force(execution, "timed_out", "timeout")

    def _force(self, execution: Execution, forced: Forced, reason: str) -> None:
        leader = execution.force(forced, reason)
        if leader is not None:
            self._begin_end(execution, leader, self._grace)

    def _begin_end(self, execution: Execution, leader: Process, grace: float) -> None:
        work = ending.end(execution, leader, grace, self.files, self._poller)
        task = self._loop.create_task(work)
        self._endings.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: Task[None]) -> None:
        self._endings.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.exception("ending_failed", error)

    def _exited(self, execution: Execution, pid: int) -> None:
        self._reaper.release(pid)
        self.records.exited(execution)

    def _closed(self, execution: Execution) -> None:
        self._open -= 1
        self.records.closed(execution)

    def _abandon(self, ticket: int, launched: tuple[Process, int] | None) -> None:
        # The request was cancelled while its process was being started: nobody will ever know its id.
        if launched is not None:
            process, _ = launched
            process.abandon()
            log.write(ERROR, "start_abandoned", pid=process.pid)
        self._reaper.end_spawn(ticket, None)


def _running_threads(count: int, name: str) -> ThreadPoolExecutor:
    """Threads that all run from the start. Where commands have taken the last process that may be had, no
    thread can be started any more; ending those commands takes one.
    """
    executor = ThreadPoolExecutor(count, name)
    together = threading.Barrier(count)
    for _ in range(count):
        executor.submit(together.wait)
    return executor
