"""OutputStore: one budget for the kept output of all executions, the oldest goes first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from execd.services import store
from tests.services.keeping import MEMORY, fill, keeper

KIB = 1024


def test_beyond_the_total_what_ended_first_goes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path, output_total=3 * MEMORY) as keep:
            logs, spools = zip(*(keep.kept() for _ in range(4)), strict=True)
            for log, spool in zip(logs, spools, strict=True):
                fill(log, MEMORY)
                spool.finish()
                await keep.settled(*spools)
            assert keep.files() == ["id2.out", "id3.out", "id4.out"]
            assert [spool.fault for spool in spools[1:]] == [None] * 3
            assert "make room" in str(spools[0].fault)
            assert keep.store.disk_bytes == 3 * MEMORY

    asyncio.run(scenario())


def test_what_somebody_reads_or_is_being_written_is_not_dropped_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path, output_total=3 * MEMORY) as keep:
            (read_log, read), (written_log, written), (log, spool) = (keep.kept() for _ in range(3))
            for other_log, other in ((read_log, read), (written_log, written)):
                fill(other_log, MEMORY)
                await keep.written(other)
            with read_log.reader():
                read.finish()
                fill(written_log, MEMORY)
                written.finish()
                assert written.being_written
                fill(log, MEMORY)
                spool.relieve(0)
                await keep.settled(read, written, spool)
                assert (read.fault, written.fault) == (None, None)
                assert "budget" in str(spool.fault)
                assert keep.files() == ["id1.out", "id2.out"]

    asyncio.run(scenario())


def test_small_output_stays_in_memory_until_all_of_it_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SMALL_TOTAL", 20 * KIB)

    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            kept = [keep.kept() for _ in range(8)]
            for number, (log, spool) in enumerate(kept):
                fill(log, 4 * KIB, b"%d" % number)
                spool.finish()
            await keep.settled(*(spool for _, spool in kept))
            assert keep.files() == ["id1.out", "id2.out", "id3.out", "id4.out"]
            assert keep.store.small_bytes == sum(log.memory_bytes for log, _ in kept) <= 20 * KIB
            assert await kept[0][1].load(0, 4) == b"0000"
            for _, spool in kept:
                spool.discard()
            assert (keep.store.small_bytes, keep.store.disk_bytes, keep.files()) == (0, 0, [])

    asyncio.run(scenario())


def test_finishing_twice_counts_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            log, spool = keep.kept()
            fill(log, 100)
            spool.finish()
            spool.finish()
            assert keep.store.small_bytes == log.memory_bytes
            spool.discard()
            spool.discard()
            assert keep.store.small_bytes == 0

    asyncio.run(scenario())


def test_large_output_leaves_memory_at_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with keeper(tmp_path) as keep:
            log, spool = keep.kept()
            fill(log, MEMORY + 1)
            spool.finish()
            await keep.settled(spool)
            assert (log.memory_bytes, keep.store.small_bytes) == (0, 0)

    asyncio.run(scenario())
