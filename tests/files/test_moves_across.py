"""POST /files/mv from one file system to another: all is kept, and the target is whole or not there."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from execd.posix import moves
from execd.posix.places import Places
from tests.support.files import (
    Api,
    as_user,
    deep,
    depth,
    leftovers,
    ok,
    open_directory,
    other_device,
    refused,
    root_only,
    snapshot,
)
from tests.support.live import daemon

YEAR_2001 = 1_000_000_000_123_456_789


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    with other_device(tmp_path) as path:
        yield path


def _dress(path: Path, mode: int, owner: int = 0) -> None:
    """Mode, owner (if we may) and a time of long ago."""
    if os.geteuid() == 0:
        os.chown(path, owner, owner, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)
    os.utime(path, ns=(YEAR_2001, YEAR_2001), follow_symlinks=False)


def test_a_file_keeps_mode_owner_and_time(api: Api, tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "source", elsewhere / "target"
    source.write_bytes(b"x" * 3_000_000)
    _dress(source, 0o4751, owner=1234)
    before = snapshot(source.parent)["source"]
    ok(api.move((source, target)))
    assert snapshot(elsewhere)["target"] == before
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("pointing", ["nowhere", "/etc", "."])
def test_a_symlink_is_moved_itself(api: Api, tmp_path: Path, elsewhere: Path, pointing: str) -> None:
    source = tmp_path / "link"
    source.symlink_to(pointing)
    _dress(source, 0o777, owner=1234)
    before = snapshot(tmp_path)["link"]
    ok(api.move((source, elsewhere / "link")))
    assert snapshot(elsewhere)["link"] == before


def test_a_tree_keeps_everything_in_it(api: Api, tmp_path: Path, elsewhere: Path) -> None:
    top = tmp_path / "tree"
    (top / "a" / "b").mkdir(parents=True)
    (top / os.fsdecode(b"\xff\n")).write_bytes(b"odd name")
    (top / "a" / "file").write_bytes(b"content")
    (top / "a" / "link").symlink_to("../..")
    os.mkfifo(top / "a" / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(top / "socket"))
    for name, mode in {"a/file": 0o600, "a/b": 0o1777, "a": 0o500, "a/fifo": 0o622}.items():
        _dress(top / name, mode, owner=1234)
    _dress(top / "a" / "link", 0, owner=1234)
    _dress(top, 0o2755)
    before = snapshot(top)
    ok(api.move((top, elsewhere / "new" / "tree")))
    assert snapshot(elsewhere / "new" / "tree") == before
    assert not top.exists()
    assert leftovers(elsewhere) == []


def test_holes_stay_holes_and_extended_attributes_stay(api: Api, tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "sparse", elsewhere / "sparse"
    with source.open("wb") as file:
        file.seek(50_000_000)
        file.write(b"middle")
        file.truncate(100_000_000)
    try:
        os.setxattr(source, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")
    ok(api.move((source, target)))
    assert target.stat().st_size == 100_000_000
    assert target.stat().st_blocks * 512 < 1_000_000
    with target.open("rb") as file:
        file.seek(50_000_000)
        assert file.read(7) == b"middle\0"


def test_a_tree_of_any_depth_moves_with_few_descriptors(tmp_path: Path, elsewhere: Path) -> None:
    fd = deep(tmp_path / "tree", 2100)
    with open(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd), "wb") as leaf:
        leaf.write(b"deep")
    os.close(fd)
    with daemon(wrapper=("prlimit", "--nofile=64")) as running:
        api = Api(running)
        ok(api.move((tmp_path / "tree", elsewhere / "tree")))
        assert depth(elsewhere / "tree") == 2100
        assert not (tmp_path / "tree").exists()
        ok(api.rmdir(elsewhere / "tree"))
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("there", ["file", "directory", "dangling"])
def test_nothing_is_overwritten_across(api: Api, tmp_path: Path, elsewhere: Path, there: str) -> None:
    target = elsewhere / "target"
    make: dict[str, Callable[[Path], None]] = {
        "file": Path.touch,
        "directory": Path.mkdir,
        "dangling": lambda path: path.symlink_to("nowhere"),
    }
    make[there](target)
    (tmp_path / "source").write_bytes(b"x")
    before = target.lstat()
    refused(api.move((tmp_path / "source", target)), "ALREADY_EXISTS", field="dest")
    assert (tmp_path / "source").read_bytes() == b"x"
    assert target.lstat() == before


def test_a_target_that_appears_during_the_copy_is_not_overwritten(tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "source", elsewhere / "target"
    source.write_bytes(b"source")
    places = Places()
    copy = moves._copy

    def slow(*args: object) -> None:
        copy(*args)  # type: ignore[arg-type]
        target.write_bytes(b"theirs")

    with (
        pytest.MonkeyPatch.context() as patch,
        places.place(str(source)) as a,
        places.place(str(target)) as b,
    ):
        patch.setattr(moves, "_copy", slow)
        with pytest.raises(FileExistsError):
            moves.move(a, b)
    assert (source.read_bytes(), target.read_bytes()) == (b"source", b"theirs")
    assert os.listdir(elsewhere) == ["target"]


@root_only
def test_a_copy_that_fails_half_way_leaves_the_source_whole_and_nothing_else(elsewhere: Path) -> None:
    with open_directory() as top, as_user() as api:
        elsewhere.chmod(0o777)
        ok(api.mkdir(top / "tree" / "inner"))
        for number in range(20):
            (top / "tree" / "inner" / str(number)).write_bytes(b"x")
        (top / "tree" / "inner" / "7").chmod(0)
        before = snapshot(top)
        refused(api.move((top / "tree", elsewhere / "tree")), "PERMISSION_DENIED", errno="EACCES", done=[])
        assert snapshot(top) == before
        assert os.listdir(elsewhere) == []


@root_only
def test_a_source_that_cannot_be_removed_is_said_to_remain(elsewhere: Path) -> None:
    with open_directory() as top, as_user() as api:
        elsewhere.chmod(0o777)
        (top / "tree" / "locked").mkdir(parents=True)
        (top / "tree" / "locked" / "file").write_bytes(b"x")
        body = refused(api.move((top / "tree", elsewhere / "tree")), "PERMISSION_DENIED", field="src")
        assert body["executed"] == "executed"
        assert body["details"]["done"] == [str(top / "tree")]
        assert (elsewhere / "tree" / "locked" / "file").read_bytes() == b"x"
        assert (top / "tree" / "locked" / "file").read_bytes() == b"x"


@root_only
def test_who_may_not_give_files_away_gets_copies_of_its_own_without_set_user_id(elsewhere: Path) -> None:
    with open_directory() as top, as_user() as api:
        elsewhere.chmod(0o777)
        (top / "file").write_bytes(b"x")
        (top / "file").chmod(0o6755)
        ok(api.move((top / "file", elsewhere / "file")))
        info = (elsewhere / "file").stat()
        assert (info.st_uid, info.st_mode & 0o7777) == (1000, 0o755)


def test_a_full_disk_leaves_the_source_and_nothing_at_the_target(api: Api, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {small} 2>/dev/null"):
        pytest.skip("a small file system cannot be mounted here")
    try:
        tree = tmp_path / "tree"
        tree.mkdir()
        for number in range(8):
            (tree / str(number)).write_bytes(b"x" * 100_000)
        before = snapshot(tree)
        refused(api.move((tree, small / "tree")), "INSUFFICIENT_STORAGE", field="dest", errno="ENOSPC")
        assert snapshot(tree) == before
        assert os.listdir(small) == []
        assert shutil.disk_usage(small).used < 50_000
    finally:
        assert os.system(f"umount {small}") == 0


def test_a_tree_in_which_something_is_mounted_does_not_move(
    api: Api, tmp_path: Path, elsewhere: Path
) -> None:
    inner = tmp_path / "tree" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "file").touch()
    if os.system(f"mount --bind {tmp_path} {inner} 2>/dev/null"):
        pytest.skip("nothing can be mounted here")
    try:
        refused(api.move((tmp_path / "tree", elsewhere / "tree")), "INVALID_FILE", field="src", errno="EXDEV")
        refused(api.move((inner, elsewhere / "inner")), "INVALID_FILE")
        assert os.listdir(elsewhere) == []
        assert sorted(os.listdir(tmp_path / "tree")) == ["file", "inner"]
    finally:
        assert os.system(f"umount {inner}") == 0


def test_a_reader_sees_the_whole_tree_or_none(api: Api, tmp_path: Path, elsewhere: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(300):
        (tmp_path / "tree" / str(number)).write_bytes(b"x" * 1000)
    seen: set[int] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            try:
                seen.add(len(os.listdir(elsewhere / "tree")))
            except FileNotFoundError:
                seen.add(-1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        ok(api.move((tmp_path / "tree", elsewhere / "tree")))
    finally:
        over.set()
        watcher.join()
    assert seen <= {-1, 300}
    assert not (tmp_path / "tree").exists()
