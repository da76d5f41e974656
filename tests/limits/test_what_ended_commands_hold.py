"""Output of finished commands: little of it in memory, the oldest on disk, none once the record is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support.live import Daemon, daemon, wait_until

KIB, MIB = 1024, 1024 * 1024
TOTAL = 8 * MIB  # of finished commands' output, stays in memory
ONE = 60_000  # bytes, just under what one finished command may keep there


def files(running: Daemon) -> list[str]:
    return [path.name for path in running.state.glob("*.out")]


def test_only_the_oldest_small_outputs_leave_memory() -> None:
    with daemon() as running:
        count = TOTAL // ONE + 25
        ids = [running.background(f"yes | head -c {ONE}") for _ in range(count)]
        for command_id in ids:
            running.wait_ended(command_id)
        wait_until(lambda: running.usage()["open"] == 0 and files(running), what="the oldest on disk")
        wait_until(lambda: running.usage()["output_memory_bytes"] <= TOTAL, what="memory within its bound")
        assert running.usage()["output_memory_bytes"] > TOTAL - 4 * ONE
        assert len(files(running)) < 60
        assert all(len(running.logs(command_id)) == ONE for command_id in ids)


def test_a_record_dropped_while_its_output_is_being_written_leaves_nothing() -> None:
    with daemon("--max-records", "1") as running:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: running.background("yes | head -c 600000"), range(40)))
        wait_until(lambda: running.usage()["open"] == 0, what="all commands over")
        wait_until(lambda: len(files(running)) <= 1, what="one record, at most one file")
        wait_until(lambda: running.usage()["output_memory_bytes"] <= 1 * MIB, what="memory given back")
        assert running.usage()["records"] == 1
        assert running.usage()["output_disk_bytes"] <= 1 * MIB
