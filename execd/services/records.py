"""The records of executions: running ones, and finished ones for a bounded time and number."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from typing import Final

from execd.errors import CommandNotFound
from execd.services.executions import Execution
from execd.settings import Settings

_BEING_READ_SECONDS: Final = (1.0, 60.0)
"""A record that somebody reads just when it expires is kept for its time once more, within these bounds."""


class Records:
    """id -> execution. Finished ones are kept `retention` seconds, `max_records` at most, oldest first
    to go. One whose pipes are still held by a process it left counts as finished, but is not forgotten.
    """

    def __init__(self, settings: Settings, loop: AbstractEventLoop) -> None:
        self._retention = settings.retention
        self._limit = settings.max_records
        self._extension = min(max(self._retention, _BEING_READ_SECONDS[0]), _BEING_READ_SECONDS[1])
        self._loop = loop
        self._all: dict[str, Execution] = {}
        self._unlisted: set[str] = set()
        self._finished: dict[str, float] = {}  # id -> when it may go (loop time), in that order
        self._timer: TimerHandle | None = None
        self.running = 0
        """Listed executions whose process has not ended."""

    def __len__(self) -> int:
        return len(self._all)

    def add(self, execution: Execution, *, listed: bool) -> None:
        """Register a started execution."""
        self._all[execution.id] = execution
        if listed:
            self.running += 1
        else:
            self._unlisted.add(execution.id)

    def get(self, execution_id: str) -> Execution:
        """Raises CommandNotFound: there is no such record, or no longer."""
        execution = self._all.get(execution_id)
        if execution is None or execution_id in self._unlisted:
            raise CommandNotFound(execution_id)
        return execution

    def all_running(self) -> list[Execution]:
        """Everything whose process has not ended, unlisted ones included."""
        return [execution for execution in self._all.values() if execution.running]

    def exited(self, execution: Execution) -> None:
        """Its process has ended."""
        if execution.id not in self._unlisted:
            self.running -= 1

    def closed(self, execution: Execution) -> None:
        """It is over: from now on its record can be forgotten."""
        if execution.id in self._unlisted:
            self._unlisted.discard(execution.id)
            self._forget(execution.id)
            return
        self._finished[execution.id] = self._loop.time() + self._retention
        if len(self._finished) > self._limit:
            self._forget_oldest()
        if self._timer is None:
            self._arm()

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
        for execution in list(self._all.values()):
            execution.spool.discard()
        self._all.clear()

    def _arm(self) -> None:
        if self._finished:
            self._timer = self._loop.call_at(next(iter(self._finished.values())), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._finished:
            execution_id, due = next(iter(self._finished.items()))
            if due > now:
                break
            if self._all[execution_id].log.attached:
                del self._finished[execution_id]
                self._finished[execution_id] = now + self._extension
            else:
                self._forget(execution_id)
        self._arm()

    def _forget_oldest(self) -> None:
        for execution_id in self._finished:
            if not self._all[execution_id].log.attached:
                self._forget(execution_id)
                return

    def _forget(self, execution_id: str) -> None:
        self._finished.pop(execution_id, None)
        execution = self._all.pop(execution_id, None)
        if execution is not None:
            execution.spool.discard()
