"""Spool: a log's overflow goes to disk and comes back, or the log says why not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from execd.services.blocks import STDOUT
from tests.services.keeping import MEMORY, fill, keeper

MIB = 1024 * 1024
FULL = {"min_free_disk": 99}  # no disk is that empty


def test_output_goes_to_disk_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            log, spool = keep.kept()
            assert keep.files() == []
            log.append(STDOUT, b"first")
            fill(log, MEMORY)
            await keep.written(spool)
            assert keep.files() == ["id1.out"]
            assert await spool.load(0, 5) == b"first"
            assert (keep.store.disk_bytes, spool.accounted) == (MEMORY + 5, MEMORY + 5)
            spool.discard()
            assert keep.files() == []
            assert keep.store.disk_bytes == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        pytest.param({"output_disk": 0}, "limit 0", id="no-disk-is-to-be-used"),
        pytest.param({"output_total": MIB // 64}, "budget", id="budget-used-up"),
        pytest.param(FULL, "less than 99% of the disk is free", id="disk-full"),
        pytest.param({"state_dir": "/proc/execd"}, "/proc/execd", id="no-state-directory"),
    ],
)
def test_without_a_disk_the_oldest_output_goes_and_the_reason_is_told(
    tmp_path: Path, settings: dict[str, int | str], why: str
) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path, **settings) as keep:
            log, spool = keep.kept()
            fill(log, MEMORY)
            log.append(1, b"last")
            await keep.written(spool, keep=1000)
            assert (log.start, log.end) == (MEMORY, MEMORY + 4)
            assert spool.fault is not None
            assert why in spool.fault
            assert keep.store.disk_bytes == 0
            assert keep.files() == []

    asyncio.run(scenario())


@pytest.mark.parametrize("settings", [{"output_disk": 0}, {"output_total": 0}, FULL])
def test_without_a_disk_a_reader_still_gets_every_byte(tmp_path: Path, settings: dict[str, int]) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path, **settings) as keep:
            log, spool = keep.kept()
            with log.reader() as reader:
                fill(log, MEMORY)
                await keep.written(spool)
                assert log.start == 0
                assert [len(piece.data) for piece in reader.take(MEMORY)] == [MEMORY]
                await keep.written(spool)
                assert log.memory_bytes == 0

    asyncio.run(scenario())


def test_a_disk_that_refuses_is_asked_again_only_when_something_has_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path, **FULL) as keep:
            log, spool = keep.kept()
            attempts = []

            def paused_owner() -> None:
                attempts.append(1)
                if log.full:
                    spool.relieve(MEMORY // 2)

            log.on_progress = paused_owner
            with log.reader() as reader:
                fill(log, MEMORY)
                spool.relieve(MEMORY // 2)
                for _ in range(100):
                    await keep.settled(spool)
                    await asyncio.sleep(0)
                assert len(attempts) <= 2
                reader.take(MEMORY)
                await keep.settled(spool)
                assert not log.full

    asyncio.run(scenario())


def test_output_lost_on_disk_is_an_error_and_not_something_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            log, spool = keep.kept()
            fill(log, MEMORY)
            await keep.written(spool)
            (tmp_path / "id1.out").write_bytes(b"")
            with pytest.raises(OSError, match="truncated"):
                await spool.load(0, 100)
            spool.drop_disk("lost on disk")
            assert (log.start, spool.fault) == (MEMORY, "lost on disk")
            with pytest.raises(FileNotFoundError):
                await spool.load(0, 100)
            fill(log, MEMORY, b"y")
            await keep.written(spool)
            assert await spool.load(MEMORY, 3) == b"yyy"

    asyncio.run(scenario())


def test_a_record_that_goes_while_its_output_is_written_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            log, spool = keep.kept()
            fill(log, MEMORY)
            spool.relieve(0)
            spool.discard()
            await keep.settled(spool)
            assert keep.files() == []
            assert (keep.store.disk_bytes, keep.store.small_bytes) == (0, 0)
            spool.relieve(0)
            assert not spool.being_written

    asyncio.run(scenario())


def test_the_end_during_a_read_from_disk_does_not_break_the_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            for _ in range(20):
                log, spool = keep.kept()
                fill(log, 4 * MIB)
                await keep.written(spool)
                reading = asyncio.ensure_future(spool.load(0, 4 * MIB))
                await asyncio.sleep(0)
                spool.finish()
                assert len(await reading) == 4 * MIB
                spool.discard()

    asyncio.run(scenario())
