"""Execution: one run of anything. It belongs to the daemon, not to the request that started it.

Everything here runs on the event loop and is driven by it: readable pipes, an ended process, a timer.
States: running, then exited (the outcome is known), then sealed (its output is complete, streams end),
then closed (nobody holds its pipes any more).
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Final

from execd.posix.poller import Poller
from execd.posix.process import ExitStatus, Process, Usage
from execd.services import outcome as outcomes
from execd.services.outcome import Forced, Outcome
from execd.services.output import OutputLog
from execd.services.pipes import OutputPipes
from execd.services.store import Spool
from execd.settings import Settings

CONTENT_LIMIT: Final = 4096
"""Characters of command text that a record keeps."""


class Execution:
    """One process tree and its output. Exactly one outcome, decided once."""

    __slots__ = (
        "_drained",
        "_ending",
        "_forced",
        "_loop",
        "_on_closed",
        "_on_exited",
        "_oom_before",
        "_oom_count",
        "_pipes",
        "_poller",
        "_process",
        "_reason",
        "_started",
        "_timeout_timer",
        "_waiters",
        "background",
        "content",
        "content_truncated",
        "duration",
        "finished_at",
        "id",
        "log",
        "outcome",
        "spool",
        "started_at",
        "usage",
    )

    def __init__(
        self,
        execution_id: str,
        content: str,
        process: Process,
        log: OutputLog,
        spool: Spool,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        *,
        background: bool,
        oom_count: Callable[[], int],
        oom_before: int,
    ) -> None:
        self.id = execution_id
        self.content = content[:CONTENT_LIMIT]
        self.content_truncated = len(content) > CONTENT_LIMIT
        self.background = background
        self.log = log
        self.spool = spool
        self.started_at = time.time()
        self.finished_at: float | None = None
        self.duration = 0.0
        """Seconds from start to exit, on the monotonic clock."""
        self.outcome: Outcome | None = None
        self.usage: Usage | None = None
        self._process: Process | None = process
        self._loop = loop
        self._poller = poller
        self._started = loop.time()
        self._oom_count = oom_count
        self._oom_before = oom_before
        fds = (process.stdout, process.stderr)
        self._pipes: OutputPipes | None = OutputPipes(fds, log, spool, settings, loop, poller)
        self._drained = True
        self._timeout_timer: asyncio.TimerHandle | None = None
        self._forced: Forced | None = None
        self._reason: str | None = None
        self._ending: asyncio.Event | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._on_exited: Callable[[Execution, int], None] | None = None
        self._on_closed: Callable[[Execution], None] | None = None

    # State

    @property
    def running(self) -> bool:
        """True until its outcome is known: its process has ended and, if it is being ended by force, so has
        all that it started.
        """
        return self.outcome is None

    @property
    def sealed(self) -> bool:
        """True when its output is complete."""
        return self.log.sealed_at is not None

    @property
    def leader(self) -> Process | None:
        """Its process, after `force` and until it was reaped."""
        return None if self._ending is None else self._process

    def pipe_names(self) -> frozenset[str]:
        """How /proc calls the output pipes that are still open: who holds them belongs to it."""
        return frozenset() if self._pipes is None else self._pipes.names()

    @property
    def drained(self) -> bool:
        """False if output was still coming when its stream had to end."""
        return self._drained if self._pipes is None else self._pipes.drained

    def begin(
        self,
        timeout: float | None,
        on_timeout: Callable[[Execution], None],
        on_exited: Callable[[Execution, int], None],
        on_closed: Callable[[Execution], None],
    ) -> None:
        """Start to watch it. `on_timeout(execution)` is called after `timeout` seconds (None: never).

        `on_exited(execution, pid)` is called when its process was reaped, `on_closed` when it is over.
        """
        process = self._process
        assert process is not None
        self._on_exited, self._on_closed = on_exited, on_closed
        assert self._pipes is not None
        self._pipes.begin(self._closed)
        self._poller.watch(process.pidfd, self._on_exit, process.pidfd)
        if timeout is not None:
            self._timeout_timer = self._loop.call_later(timeout, on_timeout, self)

    def force(self, forced: Forced, reason: str) -> Process | None:
        """Claim the right to end it by force; None if it has ended by itself, even if that is still news to
        us, or somebody has that right already.

        From here on its leader stays unreaped until `settle_forced`, so its group can be signalled.
        """
        process = self._process
        if process is None or self._forced or process.ended():
            return None
        self._forced, self._reason = forced, reason
        self._ending = asyncio.Event()
        return process

    def kill(self) -> None:
        """The daemon stops now: SIGKILL to the group, nothing more."""
        if self._process is not None:
            self._process.signal_group(signal.SIGKILL)

    async def wait_leader_ended(self) -> None:
        """After `force`: wait until the leader has ended (it is still a zombie then)."""
        assert self._ending is not None
        await self._ending.wait()

    @property
    def leader_ended(self) -> bool:
        """After `force`: True once the leader has ended."""
        return self._ending is not None and self._ending.is_set()

    def settle_forced(self) -> None:
        """After `force`, when the leader has ended and its tree is gone: reap it and decide."""
        assert self._process is not None
        status = self._process.reap()
        assert status is not None, "the leader has ended"
        self._settle(status)

    async def wait_exited(self) -> None:
        """Wait until the outcome is known."""
        if self.running:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    # The end

    def _on_exit(self, pidfd: int) -> None:
        process = self._process
        assert process is not None
        if self._ending is not None:
            self._poller.unwatch(pidfd)
            self._note_end()
            self._ending.set()
            return
        status = process.reap()
        if status is not None:
            self._settle(status)

    def _note_end(self) -> None:
        if self.finished_at is None:
            self.finished_at = time.time()
            self.duration = self._loop.time() - self._started

    def _settle(self, status: ExitStatus) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._poller.unwatch(process.pidfd)
        os.close(process.pidfd)
        self._note_end()
        self.usage = status.usage
        oom = bool(status.signal) and self._oom_count() > self._oom_before
        self.outcome = outcomes.decide(status, self._forced, self._reason, oom=oom)
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
            self._timeout_timer = None
        if self._on_exited is not None:
            self._on_exited(self, process.pid)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        assert self._pipes is not None
        self._pipes.finish()

    def _closed(self) -> None:
        # What remains is a record, of which thousands are kept: let go of all the rest.
        self._drained, self._pipes = self.drained, None
        if self._on_closed is not None:
            self._on_closed(self)
        self._on_exited = self._on_closed = None
        self._waiters = []
        self._ending = None
