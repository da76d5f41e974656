"""Commands: what clients ask of executions. Foreground and background are the same execution; a
background one is merely not followed by the request that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from execd.errors import ResourceExhausted
from execd.services.engine import Engine
from execd.services.executions import Execution
from execd.services.launch import Launch
from execd.services.lines import incomplete_tail
from execd.settings import Settings

if TYPE_CHECKING:
    from execd.models.commands import RunCommandRequest

PAGE_BYTES: Final = 1024 * 1024
"""Output in one page of `logs`."""
_ANSWER_MARGIN: Final = 0.5  # seconds after the grace in which an interrupt still waits for the outcome


@dataclass(frozen=True, slots=True)
class Page:
    """Output from some offset on: raw bytes, whole UTF-8 characters, stdout and stderr as they came.

    `start` is where it begins (later than asked if older output is gone), `next` where to go on.
    """

    data: bytes
    start: int
    next: int
    more: bool


class Commands:
    """Start, follow, inspect and interrupt commands."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings

    async def start(self, request: RunCommandRequest) -> Execution:
        """Start a command; see `Engine.start` for what it raises. Nothing has run if it raises."""
        launch = Launch(
            request.command,
            tuple(request.argv or ()),
            request.cwd,
            request.envs or {},
            request.uid,
            request.gid,
            request.timeout_seconds,
        )
        return await self._engine.start(launch, background=bool(request.background))

    def get(self, command_id: str) -> Execution:
        """Raises CommandNotFound."""
        return self._engine.records.get(command_id)

    async def interrupt(self, command_id: str) -> Execution:
        """End a command and all it started: TERM, grace, KILL. Waits until the outcome is known, for
        little longer than the grace. A command that has ended is left alone, however often it is asked.

        Raises:
            CommandNotFound: unknown id.
        """
        execution = self.get(command_id)
        self._engine.end(execution, "request")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.kill_grace + _ANSWER_MARGIN):
                await execution.wait_exited()
        return execution

    async def page(self, command_id: str, cursor: int) -> Page:
        """One page of output from the byte `cursor` on; an empty one at or beyond the end.

        Raises:
            CommandNotFound: unknown id.
        """
        execution = self.get(command_id)
        log = execution.log
        start = min(max(cursor, log.start), log.end)
        data = b""
        # A second turn is needed when the output moved to disk, or went, while the disk was read.
        while not data and start < log.end:
            start = max(start, log.start)
            on_disk = log.memory_start - start
            if on_disk <= 0:
                data = log.read_raw(start, PAGE_BYTES)
                break
            try:
                data = await execution.spool.load(start, min(on_disk, PAGE_BYTES))
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise ResourceExhausted(f"cannot read kept output: {error.strerror}") from error
                execution.spool.drop_disk(f"lost on disk: {error.strerror or error}")
            else:
                if log.start > start:  # overwritten meanwhile
                    data = b""
        if start > cursor:
            data, start = _from_whole_character(data, start)
        if len(data) > incomplete_tail(data):
            data = data[: len(data) - incomplete_tail(data)]
        end = start + len(data)
        return Page(data, start, end, end < log.end)


def _from_whole_character(data: bytes, start: int) -> tuple[bytes, int]:
    # Older output is gone, at any byte: skip what follows a lead byte that went with it.
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:], start + skip
