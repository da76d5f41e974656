"""POST /files/mv within one file system: never over anything, never half."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files import Api, ok, open_directory, refused


def _file(path: Path) -> None:
    path.write_bytes(b"content")


def _tree(path: Path) -> None:
    path.mkdir()
    (path / "inner").write_bytes(b"content")


KINDS: dict[str, Callable[[Path], None]] = {
    "file": _file,
    "empty-directory": Path.mkdir,
    "tree": _tree,
    "symlink": lambda path: path.symlink_to("/etc"),
    "dangling-symlink": lambda path: path.symlink_to("nowhere"),
    "fifo": lambda path: os.mkfifo(path),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_moved_is_the_same_under_its_new_name(api: Api, tmp_path: Path, kind: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    KINDS[kind](source)
    before = source.lstat()
    ok(api.move((source, target)))
    assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert not os.path.lexists(source)


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_overwritten(api: Api, tmp_path: Path, kind: str, there: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    KINDS[kind](source)
    KINDS[there](target)
    before = (source.lstat(), target.lstat())
    refused(api.move((source, target)), "ALREADY_EXISTS", field="dest", path=str(target), errno="EEXIST")
    assert (source.lstat(), target.lstat()) == before


def test_a_source_that_is_missing_is_named(api: Api, tmp_path: Path) -> None:
    source = tmp_path / "missing"
    refused(api.move((source, tmp_path / "target")), "FILE_NOT_FOUND", field="src", path=str(source))
    assert os.listdir(tmp_path) == []


def test_missing_directories_above_the_target_are_made(api: Api, tmp_path: Path) -> None:
    _file(tmp_path / "source")
    ok(api.move((tmp_path / "source", tmp_path / "a" / "b" / "target")))
    assert (tmp_path / "a" / "b" / "target").read_bytes() == b"content"
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("target", ["source/inner", "source/a/b", "link/x", "source/../source/x"])
def test_a_directory_does_not_move_into_itself(api: Api, tmp_path: Path, target: str) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "link").symlink_to("source")
    refused(api.move((tmp_path / "source", f"{tmp_path}/{target}")), "INVALID_FILE", field="src")
    assert (tmp_path / "source").is_dir()


@pytest.mark.parametrize("name", ["/", "//", "/..", "/.", "/etc/.."])
def test_the_root_directory_does_not_move(api: Api, tmp_path: Path, name: str) -> None:
    refused(api.move((name, tmp_path / "x")), "INVALID_FILE", field="src", errno="EBUSY")


def test_a_target_below_a_file_is_told_of_the_target(api: Api, tmp_path: Path) -> None:
    _file(tmp_path / "source")
    _file(tmp_path / "file")
    body = refused(api.move((tmp_path / "source", tmp_path / "file" / "x")), "ALREADY_EXISTS", field="dest")
    assert body["details"]["path"] == str(tmp_path / "file" / "x")
    assert (tmp_path / "source").exists()


def test_several_moves_are_done_in_order_and_names_may_change_hands(api: Api, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    a, b, t = tmp_path / "a", tmp_path / "b", tmp_path / "t"
    ok(api.move((a, t), (b, a), (t, b)))
    assert (a.read_text(), b.read_text(), t.exists()) == ("b", "a", False)
    ok(api.move((tmp_path / "a", tmp_path / "d" / "a"), (tmp_path / "d", tmp_path / "e")))
    assert (tmp_path / "e" / "a").read_text() == "b"


def test_all_moves_are_checked_before_the_first(api: Api, tmp_path: Path) -> None:
    for name in ("a", "b", "there"):
        _file(tmp_path / name)
    first = (tmp_path / "a", tmp_path / "a2")
    refused(api.move(first, (tmp_path / "b", tmp_path / "there")), "ALREADY_EXISTS")
    refused(api.move(first, (tmp_path / "missing", tmp_path / "x")), "FILE_NOT_FOUND")
    refused(api.move(first, (tmp_path / "b", tmp_path / "a2")), "ALREADY_EXISTS")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "there"]


def test_a_directory_without_the_right_to_write_is_forbidden_on_either_side(user: Api) -> None:
    with open_directory() as top:
        ok(user.mkdir(top / "mine"))
        _file(top / "file")
        refused(user.move(("/etc/passwd", top / "x")), "PERMISSION_DENIED", field="src")
        refused(user.move((top / "file", "/etc/x")), "PERMISSION_DENIED", field="dest")
        refused(user.move((top / "file", "/etc/x/y")), "PERMISSION_DENIED", field="dest")
        assert sorted(os.listdir(top)) == ["file", "mine"]


def test_of_many_who_want_one_name_one_gets_it(api: Api, tmp_path: Path) -> None:
    sources = [tmp_path / str(number) for number in range(16)]
    for source in sources:
        source.write_text(source.name)
    statuses: list[tuple[int, str]] = []

    def take(source: Path) -> None:
        body = [{"src": str(source), "dest": str(tmp_path / "name")}]
        statuses.append((api.daemon.client.post("/files/mv", json=body).status_code, source.name))

    threads = [threading.Thread(target=take, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [name for status, name in statuses if status == 200]
    assert sorted(status for status, _ in statuses) == [200] + [409] * 15
    assert (tmp_path / "name").read_text() == winners[0]
    assert len(os.listdir(tmp_path)) == 16
