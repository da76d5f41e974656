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
from execd.services.blocks import STDERR, STDOUT
from execd.services.lines import LineAssembler
from execd.services.outcome import Forced, Outcome
from execd.services.output import OutputLog
from execd.services.store import Spool
from execd.settings import Settings

READ_BYTES: Final = 64 * 1024
"""One read from a pipe: what it holds by default (pipe(7)). Larger reads gain nothing."""
HOLD_SECONDS: Final = 0.2
"""An unfinished line is passed on after this much silence, in `keep` mode."""
CONTENT_LIMIT: Final = 4096
"""Characters of command text that a record keeps."""


class Execution:
    """One process tree and its output. Exactly one outcome, decided once."""

    __slots__ = (
        "_assemblers",
        "_drain_deadline",
        "_drain_timer",
        "_ending",
        "_forced",
        "_hold_timer",
        "_last_read",
        "_loop",
        "_on_closed",
        "_on_exited",
        "_oom_before",
        "_oom_count",
        "_open",
        "_paused",
        "_poller",
        "_process",
        "_reason",
        "_settings",
        "_started",
        "_timeout_timer",
        "_waiters",
        "background",
        "content",
        "content_truncated",
        "drained",
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
        self.drained = True
        """False if output was still coming when the stream had to end."""
        self._process: Process | None = process
        self._settings = settings
        self._loop = loop
        self._poller = poller
        self._started = loop.time()
        self._oom_count = oom_count
        self._oom_before = oom_before
        self._assemblers = (LineAssembler(settings.event_text), LineAssembler(settings.event_text))
        self._open = {STDOUT: process.stdout, STDERR: process.stderr}
        self._paused = False
        self._last_read = 0.0
        self._drain_deadline = 0.0
        self._drain_timer: asyncio.TimerHandle | None = None
        self._hold_timer: asyncio.TimerHandle | None = None
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
        """True until its process has ended, whatever became of what that started."""
        return self.outcome is None

    @property
    def sealed(self) -> bool:
        """True when its output is complete."""
        return self.log.sealed_at is not None

    @property
    def pid(self) -> int | None:
        """The leader's pid while it is ours to name; None once it was reaped."""
        return self._process.pid if self._process and self.running else None

    @property
    def forced(self) -> Forced | None:
        """Set once somebody has begun to end it by force."""
        return self._forced

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
        self.log.on_progress = self._resume_if_room
        for stream, fd in self._open.items():
            self._poller.watch(fd, self._on_readable, stream)
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

    # Output

    def _on_readable(self, stream: int) -> None:
        self._read(stream)
        self._relieve()
        if self._assemblers[stream].holding and self._hold_timer is None and self._may_hold:
            self._hold_timer = self._loop.call_later(HOLD_SECONDS, self._on_held)

    def _relieve(self) -> None:
        """Move output to disk while memory is more than half full; stop reading when it is full."""
        half = self.log.memory_limit // 2
        if self.log.memory_bytes > half:
            self.spool.relieve(half)
            if self.log.full:
                self._pause()

    @property
    def _may_hold(self) -> bool:
        return self._settings.line_endings == "keep"

    def _read(self, stream: int) -> bool:
        """One read; False if there was nothing to read (yet, or ever again)."""
        fd = self._open.get(stream)
        if fd is None:
            return False
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._poller.unwatch(fd)
            os.close(fd)
            del self._open[stream]
            self.log.append(stream, self._assemblers[stream].flush(final=True))
            if not self._open and not self.running:
                self._all_pipes_closed()
            return False
        self._last_read = self._loop.time()
        self.log.append(stream, self._assemblers[stream].feed(data))
        return True

    def _on_held(self) -> None:
        self._hold_timer = None
        waited = self._loop.time() - self._last_read
        if waited < HOLD_SECONDS:
            self._hold_timer = self._loop.call_later(HOLD_SECONDS - waited, self._on_held)
            return
        for stream in (STDOUT, STDERR):
            self.log.append(stream, self._assemblers[stream].flush(final=False))

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            for fd in self._open.values():
                self._poller.unwatch(fd)

    def _resume_if_room(self) -> None:
        if self._paused and not self.log.full:
            self._paused = False
            self._last_read = self._loop.time()
            for stream, fd in self._open.items():
                self._poller.watch(fd, self._on_readable, stream)
        elif self._paused:
            self.spool.relieve(self.log.memory_limit // 2)

    # The end

    def _on_exit(self, pidfd: int) -> None:
        process = self._process
        assert process is not None
        if self._ending is not None:
            self._poller.unwatch(pidfd)
            self._ending.set()
            return
        status = process.reap()
        if status is not None:
            self._settle(status)

    def _settle(self, status: ExitStatus) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._poller.unwatch(process.pidfd)
        os.close(process.pidfd)
        self.finished_at = time.time()
        self.duration = self._loop.time() - self._started
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
        self._drain()

    def _drain(self) -> None:
        # What the process wrote before it ended is in its pipes by now: take what is there at once.
        if not self._paused:
            for stream in (STDOUT, STDERR):
                while self._read(stream) and not self.log.full:
                    pass
            self._relieve()
        if self._open:
            now = self._last_read = self._loop.time()
            self._drain_deadline = now + self._settings.drain_timeout
            self._arm_drain(self._settings.drain_quiet)
        else:
            self._all_pipes_closed()

    def _arm_drain(self, seconds: float) -> None:
        self._drain_timer = self._loop.call_later(seconds, self._on_drain)

    def _on_drain(self) -> None:
        # Some process still holds a pipe: one left in the background on purpose, perhaps for ever.
        self._drain_timer = None
        settings, now = self._settings, self._loop.time()
        if self._paused:
            # Not silence: a reader is slow, and it is owed all that was written.
            self._drain_deadline = now + settings.drain_timeout
            self._arm_drain(settings.drain_quiet or HOLD_SECONDS)
        elif now - self._last_read >= settings.drain_quiet:
            self._seal()
        elif now >= self._drain_deadline:
            self.drained = False
            self._seal()
        else:
            quiet_at = self._last_read + settings.drain_quiet
            self._arm_drain(max(0.001, min(quiet_at, self._drain_deadline) - now))

    def _all_pipes_closed(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None
        if self._hold_timer is not None:
            self._hold_timer.cancel()
            self._hold_timer = None
        if not self.sealed:
            self._seal()
        self.log.on_progress = None
        self.spool.finish()
        if self._on_closed is not None:
            self._on_closed(self)
        self._on_exited = self._on_closed = None
        self._waiters = []
        self._ending = None

    def _seal(self) -> None:
        # The pipes stay open and are read on: a process left behind must not die of SIGPIPE.
        for stream in (STDOUT, STDERR):
            self.log.append(stream, self._assemblers[stream].flush(final=True))
        self.log.seal()
