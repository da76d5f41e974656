"""Ending an execution by force: TERM to the group, grace, KILL, then whatever escaped the group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from concurrent.futures import Executor
from typing import Final

from execd.logs import WARNING, log
from execd.posix import proc, process
from execd.posix.poller import Poller
from execd.posix.process import Process
from execd.services.executions import Execution

MAX_ROUNDS: Final = 50
"""Rounds of looking for survivors and killing them: a program that forks faster is given up on, loudly."""
_BLIND_SECONDS: Final = 0.05  # until it is tried again to look for survivors
_ROUND_SECONDS: Final = 1.0  # longest wait for the killed of one round to be gone


async def end(
    execution: Execution, leader: Process, grace: float, executor: Executor, poller: Poller
) -> None:
    """Everything the execution started is gone when this returns; then its outcome is decided.

    `leader` comes from `Execution.force`. TERM has been sent when this first waits.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    pipes = execution.pipe_names()
    leader.signal_group(signal.SIGTERM)
    leader.signal_group(signal.SIGCONT)  # a stopped process acts on TERM only once it is continued
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            await execution.wait_leader_ended()
    rest: list[tuple[int, int]] = []
    blind = False
    for round_number in range(MAX_ROUNDS):
        leader_had_ended = execution.leader_ended
        try:
            rest = await loop.run_in_executor(executor, process.members, leader.pid, execution.id, pipes)
        except OSError as error:  # no /proc, or no descriptor left: the group can be ended without
            if not blind:
                blind = True
                log.write(WARNING, "tree_unreadable", id=execution.id, error=str(error))
            leader.signal_group(signal.SIGKILL)
            await execution.wait_leader_ended()
            if error.errno not in proc.BLIND:
                break
            await asyncio.sleep(_BLIND_SECONDS)
            continue
        try:
            if leader_had_ended and not rest:
                break
            if round_number == 0:
                for pid, pidfd in rest:
                    if not process.in_group(pid, leader.pid):  # these have not been asked yet
                        process.send(pidfd, signal.SIGTERM)
                        process.send(pidfd, signal.SIGCONT)
                await _wait_ended([pidfd for _, pidfd in rest], deadline, poller)
            leader.signal_group(signal.SIGKILL)
            killed = [pidfd for _, pidfd in rest if process.send(pidfd, signal.SIGKILL)]
            await execution.wait_leader_ended()
            await _wait_ended(killed, loop.time() + _ROUND_SECONDS, poller)
        finally:
            for _, pidfd in rest:
                os.close(pidfd)
    else:
        log.write(WARNING, "survivors", id=execution.id, pids=[pid for pid, _ in rest][:20])
    execution.settle_forced()


async def _wait_ended(pidfds: list[int], deadline: float, poller: Poller) -> None:
    """Wait until all of the processes have ended, or until `deadline` (loop time)."""
    ended = asyncio.Event()
    waiting = set(pidfds)

    def one_ended(pidfd: int) -> None:
        poller.unwatch(pidfd)
        waiting.discard(pidfd)
        if not waiting:
            ended.set()

    for pidfd in pidfds:
        poller.watch(pidfd, one_ended, pidfd)
    try:
        if waiting:
            async with asyncio.timeout_at(deadline):
                await ended.wait()
    except TimeoutError:
        return
    finally:
        for pidfd in waiting:
            poller.unwatch(pidfd)
