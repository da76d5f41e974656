"""What the machine has left."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from execd.posix import resources
from execd.posix.resources import Amount, OomCounter


def test_free_disk_and_inodes_are_what_statvfs_says(tmp_path: Path) -> None:
    space, inodes = resources.disk(str(tmp_path))
    stat = os.statvfs(tmp_path)
    assert space.total == stat.f_blocks * stat.f_frsize
    assert 0 <= space.free <= space.total
    assert inodes.total == stat.f_files
    with pytest.raises(FileNotFoundError):
        resources.disk(str(tmp_path / "missing"))


def test_free_descriptors_go_down_with_every_open_one() -> None:
    before = resources.descriptors()
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    assert resources.descriptors() == Amount(before.free - 5, before.total)
    assert before.total == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for fd in held:
        os.close(fd)


@pytest.mark.parametrize(
    ("current", "maximum", "amount"),
    [("7", "10", Amount(3, 10)), ("7", "max", None), ("x", "10", None), (None, None, None)],
)
def test_free_pids_are_those_of_our_cgroup(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    current: str | None,
    maximum: str | None,
    amount: Amount | None,
) -> None:
    monkeypatch.setattr(resources, "_cgroup_directories", lambda _: [str(tmp_path)])
    if current is not None and maximum is not None:
        (tmp_path / "pids.current").write_text(f"{current}\n")
        (tmp_path / "pids.max").write_text(f"{maximum}\n")
    assert resources.pids() == amount


def test_this_machine_has_an_answer_or_none() -> None:
    found = resources.pids()
    assert found is None or (found.total is not None and found.free <= found.total)
    for directory in resources._cgroup_directories("memory"):
        assert os.path.isdir(directory)


def test_kills_by_the_kernel_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_cgroup_directories", lambda _: [str(tmp_path)])
    missing = OomCounter()
    assert missing.read() == 0
    missing.close()
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 5\noom_kill 2\noom_group_kill 9\n")
    counter = OomCounter()
    assert counter.read() == 2
    events.write_text("low 0\noom 5\noom_kill 3\noom_group_kill 9\n")
    assert counter.read() == 3
    counter.close()
    assert counter.read() == 0
