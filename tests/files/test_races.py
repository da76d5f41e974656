"""Trees that others change while they are removed or looked at: what decides is what was opened."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from execd.posix import libc, trees
from execd.posix.descent import Descent
from execd.posix.ownership import Ownership
from execd.posix.places import NotAllowed, Places
from tests.support.files import snapshot


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").write_bytes(b"kept")
    return path


def _remove(path: Path) -> None:
    with Places().place(str(path)) as place:
        trees.remove_directory(place)


@contextmanager
def _before(patch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[..., None]) -> Iterator[None]:
    """Call `act` with the arguments of each call of `module.name`, before it."""
    real = getattr(module, name)

    def first(*args: Any, **kwargs: Any) -> Any:
        act(*args)
        return real(*args, **kwargs)

    with patch.context() as inner:
        inner.setattr(module, name, first)
        yield


def test_a_directory_swapped_for_a_link_before_it_is_entered_is_not_followed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "tree" / "victim"
    victim.mkdir(parents=True)
    (tmp_path / "tree" / "other").mkdir()
    before = snapshot(outside)

    def swap(_: int, name: str, *__: object) -> None:
        if name == "victim" and not victim.is_symlink():
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside)

    with _before(monkeypatch, libc, "open_on_same_mount", swap):
        _remove(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "moved").is_dir()
    assert snapshot(outside) == before


def test_a_directory_moved_out_while_it_is_emptied_ends_it_before_anything_else_is_touched(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "tree" / "victim"
    (victim / "inner").mkdir(parents=True)
    before = snapshot(outside)

    def move(fd: int, _: list[str]) -> None:
        if victim.exists() and os.path.samestat(os.fstat(fd), (victim / "inner").stat()):
            (victim / "inner").rename(outside / "stolen")

    with _before(monkeypatch, trees, "_refill", move), pytest.raises(OSError, match="moved") as error:
        _remove(tmp_path / "tree")
    assert error.value.errno == errno.EBUSY
    (outside / "stolen").rmdir()
    assert snapshot(outside).keys() == before.keys()
    assert (outside / "inner" / "file").read_bytes() == b"kept"


def test_entries_that_vanish_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    for name in ("a", "b", "c"):
        (tree / name).mkdir(parents=True)
        (tree / f"{name}.txt").touch()

    def take(_: int, names: list[str]) -> None:
        for name in names:
            path = tree / name
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)

    with _before(monkeypatch, trees, "_unlink_all", take):
        _remove(tree)
    assert not tree.exists()


def test_entries_that_appear_go_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    new = iter(range(20))

    def add(_: int, name: str) -> None:
        if name == "inner" and next(new, None) is not None:
            (tree / "inner" / "late").mkdir()

    with _before(monkeypatch, trees, "_remove_empty", add):
        _remove(tree)
    assert not tree.exists()


def test_a_directory_that_fills_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)

    def add(_: int, name: str) -> None:
        if name == "inner":
            (tree / "inner" / "late").touch()

    with _before(monkeypatch, trees, "_remove_empty", add), pytest.raises(OSError, match="all the time"):
        _remove(tree)


def test_a_name_that_is_a_link_and_a_directory_in_turns_leads_nowhere(tmp_path: Path, outside: Path) -> None:
    before = snapshot(outside)
    over = threading.Event()
    failures: set[int | None] = set()
    tree, spare = tmp_path / "tree", tmp_path / "spare"
    (tree / "flip").mkdir(parents=True)
    (spare / "link").mkdir(parents=True)
    (spare / "link").rmdir()
    (spare / "link").symlink_to(outside)

    def flip() -> None:
        while not over.is_set():
            for name in ("link", "directory"):
                try:
                    (tree / "flip").rename(spare / "old")
                    (spare / name).rename(tree / "flip")
                    (spare / "old").rename(spare / ("directory" if name == "link" else "link"))
                except OSError:
                    pass

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        for _ in range(200):
            try:
                _remove(tree)
            except OSError as error:
                failures.add(error.errno)
            (tree / "flip").mkdir(parents=True, exist_ok=True)
    finally:
        over.set()
        flipper.join()
    assert failures <= {errno.EBUSY, errno.ENOTEMPTY}
    assert snapshot(outside) == before


def test_going_up_from_a_directory_that_was_moved_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    with Places().place(str(tmp_path / "a")) as place:
        descent = Descent(place.directory_fd, place.name)
    descent.down("b")
    descent.down("c")
    (tmp_path / "a" / "b" / "c").rename(tmp_path / "c")
    with pytest.raises(OSError, match="moved"):
        descent.up()
    descent.close()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_without_openat2_links_and_other_devices_are_still_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unknown(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(libc, "open_on_same_mount", unknown)
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "link").symlink_to("/")
    _remove(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    with Places().place("/proc") as place, pytest.raises(OSError, match="mounted") as error:
        Descent(place.directory_fd, place.name)
    assert error.value.errno == errno.EXDEV


def test_a_directory_made_by_somebody_else_meanwhile_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def theirs(*_: object) -> None:
        if not (tmp_path / "a").exists():
            (tmp_path / "a").mkdir(mode=0o711)

    with _before(monkeypatch, trees, "_make", theirs):
        trees.make_directories(Places(), str(tmp_path / "a" / "b"), Ownership(0o777))
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o711, 0o777]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_put_in_the_way_meanwhile_is_not_followed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def theirs(*_: object) -> None:
        path = tmp_path / "a"
        if not os.path.lexists(path):
            path.symlink_to(outside) if kind == "link" else path.touch()

    with _before(monkeypatch, trees, "_make", theirs), pytest.raises(FileExistsError):
        trees.make_directories(Places(), str(tmp_path / "a" / "b"), Ownership())
    assert os.listdir(outside) == ["inner"]


def test_a_directory_swapped_before_it_is_opened_is_seen_where_it_leads(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    places = Places([str(root)])

    def swap(*_: object) -> None:
        if not (root / "inner").is_symlink():
            (root / "inner").rename(root / "old")
            (root / "inner").symlink_to(outside / "inner")

    with places.place(str(root / "inner" / "file")):
        pass  # allowed as it is
    with _before(monkeypatch, places, "_found", swap):
        with pytest.raises(NotAllowed), places.place(str(root / "inner" / "file")):
            pass
        with pytest.raises(NotAllowed):
            places.open(str(root / "inner" / "file"), os.O_RDONLY)


def test_a_file_is_opened_for_reading_only_once_it_is_known_to_be_inside(
    tmp_path: Path, outside: Path
) -> None:
    fifo = outside / "fifo"
    os.mkfifo(fifo)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(fifo)
    with pytest.raises(NotAllowed):
        Places([str(root)]).open(str(root / "link"), os.O_RDONLY)
    with pytest.raises(OSError, match="No such device"):  # nobody reads, nobody ever did
        os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
