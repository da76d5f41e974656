"""The state directory: private, one daemon's alone, emptied of an earlier one's output."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from execd.services.statedir import StateDirectory


@contextmanager
def opened(path: Path) -> Iterator[StateDirectory]:
    state = StateDirectory(str(path))
    try:
        yield state
    finally:
        state.close()


def test_it_is_made_with_its_parents_and_is_private(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "b") as state:
        assert state.problem is None
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
        state.probe()
        assert os.listdir(state.path) == ["lock"]


def test_one_that_is_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with opened(tmp_path) as state:
        assert state.problem is None
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_only_output_of_an_earlier_daemon_is_removed(tmp_path: Path) -> None:
    for name in ("old.out", "a.probe", "notes.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "directory.out").mkdir()
    (tmp_path / "link.out").symlink_to(tmp_path / "notes.txt")
    with opened(tmp_path):
        assert sorted(os.listdir(tmp_path)) == ["directory.out", "link.out", "lock", "notes.txt"]
        assert (tmp_path / "notes.txt").read_text() == "x"


def test_it_belongs_to_one_daemon_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        (tmp_path / "kept.out").write_text("x")
        with opened(tmp_path) as second:
            assert second.fd == -1
            assert "in use by another execd" in str(second.problem)
            with pytest.raises(OSError, match="in use by another execd"):
                second.probe()
        assert (tmp_path / "kept.out").exists()
        first.probe()
    with opened(tmp_path) as third:
        assert third.problem is None


@pytest.mark.parametrize("kind", ["file", "link", "foreign"])
def test_what_is_no_directory_of_ours_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "state"
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept.out").write_text("x")
    if kind == "file":
        path.write_text("x")
    elif kind == "link":
        path.symlink_to(other)
    else:
        path = other
        if os.geteuid() != 0:
            pytest.skip("only root can give a directory away")
        os.chown(other, 12345, 12345)
    with opened(path) as state:
        assert state.fd == -1
        assert state.problem is not None
        assert state.problem.startswith(f"{path}: ")
    assert (other / "kept.out").exists()


def test_a_directory_that_vanished_is_made_again_behind_the_same_descriptor(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as state:
        fd = state.fd
        (tmp_path / "state" / "lock").unlink()
        (tmp_path / "state").rmdir()
        state.probe()
        assert state.fd == fd
        assert (tmp_path / "state" / "lock").exists()
        assert os.stat(tmp_path / "state").st_ino == os.fstat(fd).st_ino


def test_a_directory_that_cannot_be_made_again_fails_the_probe(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as state:
        (tmp_path / "state" / "lock").unlink()
        (tmp_path / "state").rmdir()
        (tmp_path / "state").write_text("in the way")
        with pytest.raises(OSError, match="state"):
            state.probe()
