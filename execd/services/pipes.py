"""The output pipes of one execution, read into its log: held lines, backpressure, and the end."""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Final

from execd.posix import process
from execd.posix.poller import Poller
from execd.services.blocks import STDERR, STDOUT
from execd.services.lines import LineAssembler
from execd.services.output import OutputLog
from execd.services.store import Spool
from execd.settings import Settings

READ_BYTES: Final = 64 * 1024
"""One read from a pipe: what it holds by default (pipe(7)). Larger reads gain nothing."""
HOLD_SECONDS: Final = 0.2
"""An unfinished line is passed on after this much silence, in `keep` mode."""


class OutputPipes:
    """Reads stdout and stderr until both are closed. The log is sealed some time before or just then.

    While the log is full neither pipe is read. `finish` says that the process has ended: the log is then
    sealed when the pipes are closed, or quiet, or the time for that is up. They are read on even so, for a
    process left behind must not die of SIGPIPE.
    """

    __slots__ = (
        "_assemblers",
        "_drain_deadline",
        "_drain_timer",
        "_finishing",
        "_hold_timer",
        "_last_read",
        "_log",
        "_loop",
        "_on_closed",
        "_open",
        "_owed",
        "_paused",
        "_poller",
        "_settings",
        "_spool",
        "drained",
    )

    def __init__(
        self,
        fds: tuple[int, int],
        log: OutputLog,
        spool: Spool,
        settings: Settings,
        loop: AbstractEventLoop,
        poller: Poller,
    ) -> None:
        self._open = dict(zip((STDOUT, STDERR), fds, strict=True))
        self._log = log
        self._spool = spool
        self._settings = settings
        self._loop = loop
        self._poller = poller
        self._assemblers = (LineAssembler(settings.event_text), LineAssembler(settings.event_text))
        self._paused = False
        self._owed: dict[int, int] = {}  # stream -> bytes written before the end that are still in its pipe
        self._finishing = False
        self._last_read = 0.0
        self._drain_deadline = 0.0
        self._drain_timer: TimerHandle | None = None
        self._hold_timer: TimerHandle | None = None
        self._on_closed: Callable[[], None] | None = None
        self.drained = True
        """False if output was still coming when the log had to be sealed."""

    def begin(self, on_closed: Callable[[], None]) -> None:
        """Start to read. `on_closed` is called once, when nobody holds the pipes and `finish` was called.

        Raises:
            OSError: the kernel watches no more descriptors.
        """
        self._on_closed = on_closed
        for stream, fd in self._open.items():
            self._poller.watch(fd, self._on_readable, stream)
        self._log.on_progress = self._resume_if_room

    def names(self) -> frozenset[str]:
        """How /proc calls the pipes that are open."""
        return process.pipe_names(self._open.values())

    def finish(self) -> None:
        """The process has ended: read what it left in the pipes, then seal the log."""
        self._finishing = True
        if not self._paused:
            for stream in (STDOUT, STDERR):
                while self._read(stream) and not self._log.full:
                    pass
            self._relieve()
        if self._open:
            if self._paused:
                self._owed = {stream: process.waiting(fd) for stream, fd in self._open.items()}
            now = self._last_read = self._loop.time()
            self._drain_deadline = now + self._settings.drain_timeout
            self._arm_drain(self._settings.drain_quiet)
        else:
            self._close()

    def _on_readable(self, stream: int) -> None:
        self._read(stream)
        self._relieve()
        holding = self._assemblers[stream].holding
        if holding and self._hold_timer is None and self._settings.line_endings == "keep":
            self._hold_timer = self._loop.call_later(HOLD_SECONDS, self._on_held)
        if not self._open and self._finishing:
            self._close()

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
            self._owed.pop(stream, None)
            self._log.append(stream, self._assemblers[stream].flush(final=True))
            return False
        self._last_read = self._loop.time()
        self._log.append(stream, self._assemblers[stream].feed(data))
        if self._owed:
            self._owed[stream] = max(0, self._owed[stream] - len(data))
        return True

    def _on_held(self) -> None:
        self._hold_timer = None
        waited = self._loop.time() - self._last_read
        if waited < HOLD_SECONDS:
            self._hold_timer = self._loop.call_later(HOLD_SECONDS - waited, self._on_held)
            return
        for stream in (STDOUT, STDERR):
            self._log.append(stream, self._assemblers[stream].flush(final=False))

    # Backpressure

    def _relieve(self) -> None:
        """Move output to disk while memory is more than half full; stop reading when it is full."""
        half = self._log.memory_limit // 2
        if self._log.memory_bytes > half:
            self._spool.relieve(half)
            if self._log.full:
                self._pause()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            for fd in self._open.values():
                self._poller.unwatch(fd)

    def _resume_if_room(self) -> None:
        if not self._paused:
            return
        if self._log.full:
            self._spool.relieve(self._log.memory_limit // 2)
            if self._log.full:
                return
        self._paused = False
        self._last_read = self._loop.time()
        for stream, fd in self._open.items():
            self._poller.watch(fd, self._on_readable, stream)

    # The end

    def _arm_drain(self, seconds: float) -> None:
        self._drain_timer = self._loop.call_later(seconds, self._on_drain)

    def _on_drain(self) -> None:
        # Some process still holds a pipe: one left in the background on purpose, perhaps for ever.
        self._drain_timer = None
        settings, now = self._settings, self._loop.time()
        if any(self._owed.values()):
            # Not silence: a reader is slow, and it is owed all that was written before the end.
            self._drain_deadline = now + settings.drain_timeout
            self._arm_drain(settings.drain_quiet or HOLD_SECONDS)
        elif not self._paused and now - self._last_read >= settings.drain_quiet and not self._read_both():
            if self._open:
                self._seal()
            else:
                self._close()
        elif now >= self._drain_deadline:
            self.drained = False
            self._seal()
        else:
            quiet_at = self._drain_deadline if self._paused else self._last_read + settings.drain_quiet
            self._arm_drain(max(0.001, min(quiet_at, self._drain_deadline) - now))

    def _read_both(self) -> bool:
        # A busy loop may have been too late to read: that is no silence.
        some = [self._read(stream) for stream in (STDOUT, STDERR)]
        self._relieve()
        return any(some)

    def _seal(self) -> None:
        for stream in (STDOUT, STDERR):
            self._log.append(stream, self._assemblers[stream].flush(final=True))
        self._log.seal()

    def _close(self) -> None:
        for timer in (self._drain_timer, self._hold_timer):
            if timer is not None:
                timer.cancel()
        if self._log.sealed_at is None:
            self._seal()
        self._log.on_progress = None
        self._spool.finish()
        on_closed, self._on_closed = self._on_closed, None
        if on_closed is not None:
            on_closed()
