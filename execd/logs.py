"""Structured log: one JSON object a line, written by its own thread, bounded in memory and on disk.

A full disk or a stopped log reader costs lines, never the event loop: lines that find the queue full
are counted and the count is written when there is room. Secrets never get here; command text, frames
and headers are never logged by anyone.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Final

EMERGENCY, ERROR, WARNING, INFO, DEBUG = 0, 3, 4, 6, 7
"""The syslog levels that are used here."""

QUEUE_LINES: Final = 2000
FILE_BYTES: Final = 16 * 1024 * 1024
"""A log file larger than this is renamed to NAME.1, in place of the one before."""
TEXT_LIMIT: Final = 4000
"""Characters of one logged value."""
_GATHER_SECONDS: Final = 0.05
_CLOSE_TIMEOUT: Final = 2.0  # seconds that a stop waits for the writer
_NAMES: Final = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")


_encode: Final = json.JSONEncoder(default=str).encode  # made once: json.dumps makes one for every call


class Log:
    """Where log lines go. Before `open`, and if the file cannot be written, that is stderr."""

    def __init__(self) -> None:
        self.level = INFO
        self._secrets: Sequence[str] = ()
        self._path = ""
        self._fd = 2
        self._size = 0
        self._lost = 0
        self._second, self._stamp = 0, ""
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def open(self, path: str, level: int, secrets: Sequence[str] = ()) -> None:
        """Log to `path` (empty: stderr) what is at most `level`; values equal to a secret are masked."""
        self.level = level
        self._secrets = [json.dumps(secret)[1:-1] for secret in secrets]  # as they stand in a line
        self._path = path
        if path:
            try:
                self._fd = self._open_file()
            except OSError as error:
                self._path = ""
                self.write(WARNING, "log_file_unusable", path=path, error=str(error), used="stderr")

    def write(self, level: int, event: str, **values: object) -> None:
        """Queue one line; never blocks. `event` is a fixed snake_case name, `values` its details."""
        if level > self.level:
            return
        now = time.time()
        if int(now) != self._second:
            self._second = int(now)
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        stamp = f"{self._stamp}.{int(now % 1 * 1000):03}Z"
        record = {"time": stamp, "level": _NAMES[level], "event": event, **values}
        line = _encode(record)
        for secret in self._secrets:
            line = line.replace(secret, "***")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="execd-log", daemon=True)
            self._thread.start()
        if self._lines.qsize() < QUEUE_LINES:
            self._lines.put(line.encode() + b"\n")
        else:
            self._lost += 1

    def exception(self, event: str, error: BaseException, **values: object) -> None:
        """One line for a fault of ours, with the end of its traceback."""
        trace = "".join(traceback.format_exception(error))
        self.write(ERROR, event, error=repr(error)[:TEXT_LIMIT], traceback=trace[-TEXT_LIMIT:], **values)

    def close(self) -> None:
        """Write what is queued, for a bounded time."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._closing.set()
            self._lines.put(None)
            thread.join(_CLOSE_TIMEOUT)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            # Gather for a moment: waking this thread for every line costs more than writing it.
            self._closing.wait(_GATHER_SECONDS)
            batch = [line]
            while not self._lines.empty():
                more = self._lines.get()
                if more is None:
                    self._write_out(b"".join(batch))
                    return
                batch.append(more)
            if self._lost:
                lost, self._lost = self._lost, 0
                batch.append(b'{"level":"warning","event":"log_lines_lost","count":%d}\n' % lost)
            self._write_out(b"".join(batch))

    def _write_out(self, data: bytes) -> None:
        try:
            if self._path and self._size + len(data) > FILE_BYTES:
                os.replace(self._path, self._path + ".1")
                os.close(self._fd)
                self._fd = self._open_file()
            view = memoryview(data)
            while view:
                written = os.write(self._fd, view)
                self._size += written
                view = view[written:]
        except OSError:
            self._lost += data.count(b"\n")

    def _open_file(self) -> int:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(fd).st_size
        return fd


log: Final = Log()
"""The daemon's log: one per process, as stderr is."""


def die(message: str, status: int) -> None:
    """Write one line for the person at the terminal and exit."""
    sys.stderr.write(f"execd: {message}\n")
    raise SystemExit(status)
