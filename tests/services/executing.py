"""Executions of real processes, watched by the running loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from execd.posix import spawn
from execd.posix.poller import Poller
from execd.services.executions import Execution
from tests.services.keeping import Keeper


class Runner:
    """Starts executions. `closed` are those that are over, in that order."""

    def __init__(self, keep: Keeper) -> None:
        self._keep = keep
        self.settings = keep.settings
        self._loop = asyncio.get_running_loop()
        self.poller = Poller(self._loop)
        self.exited: list[Execution] = []
        self.closed: list[Execution] = []

    def prepared(self, command: str) -> Execution:
        """A process that runs and that nobody watches yet."""
        request = spawn.Request(command, (), dict(os.environ), None, None)
        process = spawn.spawn(request)
        log, spool = self._keep.kept()
        return Execution(
            f"id{self._keep.made}",
            command,
            process,
            log,
            spool,
            self._keep.settings,
            self._loop,
            self.poller,
            background=False,
            oom_count=lambda: 0,
            oom_before=0,
        )

    def begin(self, execution: Execution, on_closed: Callable[[Execution], None] | None = None) -> None:
        """Watch it. `on_closed` is called when it is over."""

        def closed(over: Execution) -> None:
            self.closed.append(over)
            if on_closed is not None:
                on_closed(over)

        execution.begin(None, lambda _: None, lambda over, _: self.exited.append(over), closed)

    async def run(self, command: str, on_closed: Callable[[Execution], None] | None = None) -> Execution:
        """Run a command until it is over."""
        execution = self.prepared(command)
        self.begin(execution, on_closed)
        await until(lambda: execution in self.closed)
        return execution


@contextmanager
def runner(keep: Keeper) -> Iterator[Runner]:
    """Leaving the block ends the watch, not the processes."""
    made = Runner(keep)
    try:
        yield made
    finally:
        assert len(made.poller) == 0, "descriptors are still watched"
        made.poller.close()


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Return when `condition()` is true; fail after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (nothing announces it)
            await asyncio.sleep(0.001)
