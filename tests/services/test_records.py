"""Records: what can be found, and for how long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from execd.errors import CommandNotFound
from execd.services.executions import Execution
from execd.services.records import Records
from tests.services.executing import Runner, runner, until
from tests.services.keeping import keeper


class Book(Records):
    """Records with a runner: every command is registered when it starts and closed when it is over."""

    def __init__(self, run: Runner, retention: float, max_records: int) -> None:
        settings = replace(run.settings, retention=retention, max_records=max_records)
        super().__init__(settings, asyncio.get_running_loop())
        self._run = run

    async def run(self, command: str = "true", *, listed: bool = True) -> Execution:
        execution = self._run.prepared(command)
        self.add(execution, listed=listed)
        self._run.begin(execution, self._over)
        await until(lambda: execution in self._run.closed)
        return execution

    def _over(self, execution: Execution) -> None:
        self.exited(execution)
        self.closed(execution)

    def found(self, *executions: Execution) -> list[bool]:
        return [self._all.get(execution.id) is execution for execution in executions]


@asynccontextmanager
async def book(tmp_path: Path, retention: float = 100, max_records: int = 100) -> AsyncIterator[Book]:
    async with keeper(tmp_path) as keep:
        with runner(keep) as run:
            made = Book(run, retention, max_records)
            yield made
            made.close()
            assert len(made) == 0


def test_what_runs_and_what_has_ended_is_found_by_its_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path) as records:
            execution = records._run.prepared("read line")
            records.add(execution, listed=True)
            assert records.get(execution.id) is execution
            assert (records.running, records.all_running()) == (1, [execution])
            records._run.begin(execution, records._over)
            await until(lambda: execution in records._run.closed)
            assert records.get(execution.id) is execution
            assert (records.running, records.all_running()) == (0, [])
            with pytest.raises(CommandNotFound, match="nobody"):
                records.get("nobody")

    asyncio.run(scenario())


def test_a_check_of_our_own_is_not_found_and_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path) as records:
            execution = records._run.prepared("true")
            records.add(execution, listed=False)
            assert records.running == 0
            assert records.all_running() == [execution]
            with pytest.raises(CommandNotFound):
                records.get(execution.id)
            records._run.begin(execution, records._over)
            await until(lambda: execution in records._run.closed)
            assert (len(records), records.running) == (0, 0)

    asyncio.run(scenario())


def test_beyond_the_limit_the_oldest_goes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path, max_records=2) as records:
            ended = [await records.run() for _ in range(4)]
            assert records.found(*ended) == [False, False, True, True]

    asyncio.run(scenario())


def test_one_that_is_read_is_passed_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path, max_records=2) as records:
            ended = [await records.run("echo x")]
            with ended[0].log.reader() as reader:
                ended += [await records.run() for _ in range(3)]
                assert records.found(*ended) == [True, False, False, True]
                assert [piece.data for piece in reader.take(10)] == [b"x\n"]

    asyncio.run(scenario())


def test_a_record_goes_after_its_time_and_its_output_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path, retention=0.2) as records:
            execution = await records.run("head -c 100000 /dev/zero")
            assert records.found(execution) == [True]
            await until(lambda: len(records) == 0)
            await until(lambda: not execution.spool.being_written)
            assert list(tmp_path.glob("*.out")) == []
            late = await records.run()
            await until(lambda: records.found(late) == [False])

    asyncio.run(scenario())


def test_one_that_is_read_when_its_time_has_come_stays_a_while(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path, retention=0.01) as records:
            execution = records._run.prepared("echo x")
            with execution.log.reader():
                records.add(execution, listed=True)
                records._run.begin(execution, records._over)
                await until(lambda: execution in records._run.closed)
                other = await records.run()
                await until(lambda: records.found(other) == [False])
                assert records.found(execution) == [True]

    asyncio.run(scenario())


def test_one_whose_pipes_are_held_is_not_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with book(tmp_path, max_records=1) as records:
            gate = tmp_path / "gate"
            os.mkfifo(gate)
            held = records._run.prepared(f"read line < {gate} & echo started")
            records.add(held, listed=True)
            records._run.begin(held, records._over)
            ended = [await records.run() for _ in range(3)]
            assert records.found(held, *ended) == [True, False, False, True]
            gate.write_text("\n")
            await until(lambda: held in records._run.closed)
            assert records.found(held, *ended) == [True, False, False, False]

    asyncio.run(scenario())
