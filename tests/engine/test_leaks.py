"""After anything, the daemon holds what it held before: descriptors, threads, children, tasks, files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.following import parallel
from tests.support.live import Daemon, daemon, text, wait_until


@pytest.fixture(scope="module")
def own() -> Iterator[Daemon]:
    """A daemon that has run a bit of everything."""
    with daemon("--max-records", "100") as running:
        parallel(lambda _: running.run("echo warm; seq 1 5000"), range(20), 8)
        running.logs(running.background("echo"))
        yield running


def _held(own: Daemon) -> dict[str, int]:
    usage = own.usage()
    return {
        "descriptors": own.descriptors(),
        "threads": own.threads(),
        "children": len(own.children()),
        "tasks": usage["tasks"],
        "watched": usage["watched_descriptors"],
        "open": usage["open"],
        "files": len(list(own.state.iterdir())),
    }


def _as_before(own: Daemon, before: dict[str, int]) -> None:
    # pooled connections of the test's own client come and go: a few descriptors and tasks of slack
    slack = {"descriptors": 5, "threads": 5, "tasks": 2}
    wait_until(
        lambda: all(_held(own)[name] <= before[name] + slack.get(name, 0) for name in before),
        10,
        f"what was held before ({before})",
    )


def test_failing_starts_leave_nothing(own: Daemon, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0garbage")
    (tmp_path / "x").chmod(0o755)
    before = _held(own)
    bodies = [{"argv": ["/no/such"]}, {"argv": [str(tmp_path / "x")]}, {"command": "true", "cwd": "/nope"}]
    statuses = parallel(lambda n: own.client.post("/command", json=bodies[n % 3]).status_code, range(500), 8)
    assert set(statuses) == {400}
    _as_before(own, before)


def test_commands_leave_nothing(own: Daemon) -> None:
    before = _held(own)
    parallel(lambda n: own.run(f"echo {n}; exit {n % 3}"), range(300), 8)
    _as_before(own, before)


def test_commands_that_were_ended_by_force_leave_nothing(own: Daemon) -> None:
    before = _held(own)
    parallel(lambda n: own.run("sleep 300 & setsid sleep 300 & wait", timeout=50 + n), range(40), 8)
    _as_before(own, before)


def test_orphans_leave_no_zombies(own: Daemon) -> None:
    before = _held(own)
    parallel(lambda _: own.run("( (sleep 0.2 & ) & ); setsid sleep 0.2 & (exit 3) &"), range(200), 8)
    wait_until(lambda: own.usage()["open"] == 0, 10, "the orphans' end")
    _as_before(own, before)
    assert own.children() == []
    assert own.usage()["orphans_reaped"] >= 200


def test_output_that_was_kept_is_deleted_with_its_record(own: Daemon) -> None:
    parallel(lambda n: own.run(f"yes {n} | head -c 200000"), range(150), 4)
    wait_until(lambda: len(list(own.state.glob("*.out"))) <= 100, 10, "files of forgotten records deleted")
    kept = sum(file.stat().st_size for file in own.state.glob("*.out"))
    assert own.usage()["output_disk_bytes"] == kept
    parallel(lambda _: own.run("true"), range(100), 8)
    wait_until(lambda: not list(own.state.glob("*.out")), 10, "all files deleted")
    assert own.usage()["output_disk_bytes"] == 0


def test_commands_leave_no_files_in_the_temporary_directory(own: Daemon) -> None:
    directory = text(own.run("echo ${TMPDIR:-/tmp}")).strip()
    before = set(os.listdir(directory))
    parallel(lambda _: own.run("#" + "x" * 200_000 + "\ntrue"), range(20), 4)
    ours = [name for name in set(os.listdir(directory)) - before if "execd" in name and "test" not in name]
    assert ours == []


def test_an_idle_daemon_uses_no_cpu_after_many_starts(own: Daemon) -> None:
    parallel(lambda _: own.run("true"), range(400), 8)

    def ticks() -> int:
        fields = Path(f"/proc/{own.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def idle() -> bool:
        before = ticks()
        own.run("sleep 0.5")  # the only thing that goes on
        return ticks() - before <= os.sysconf("SC_CLK_TCK") // 20

    wait_until(idle, 10, "half a second with at most 50 ms of CPU")
