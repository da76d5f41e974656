"""AtomicFile: whichever step fails, the old file stays, nothing is left, and no descriptor leaks."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from execd.posix import atomic, targets
from execd.posix.atomic import AtomicFile
from execd.posix.ownership import Ownership
from execd.posix.places import Places
from tests.support.uploads import everything

CALLS = ["mkdir", "open", "write", "fsync", "link", "rename", "fchmod", "fstat", "pread"]
Finish = Callable[[AtomicFile], os.stat_result]
FINISHES: list[Finish] = [AtomicFile.commit, AtomicFile.append]


@pytest.fixture(params=["nameless", "hidden", "no-link"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system that has files without names, one that has not, and one that will not name them."""
    if request.param == "hidden":
        monkeypatch.setattr(atomic, "_scratch", atomic._named_scratch)
    if request.param == "no-link":

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "link", refuse)
    return str(request.param)


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == before


def write(
    path: Path, *pieces: bytes, finish: Finish = AtomicFile.commit, ownership: Ownership | None = None
) -> Any:
    with closing(AtomicFile(Places(), str(path), ownership)) as file:
        for piece in pieces:
            file.write(piece)
        return finish(file)


@pytest.mark.usefixtures("kind")
def test_a_file_is_made_replaced_and_added_to(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "file"
    info = write(target, b"one", b"two", ownership=Ownership(0o640))
    assert (info.st_size, info.st_ino, info.st_mode & 0o7777) == (6, target.stat().st_ino, 0o640)
    assert write(target, b"three").st_mode & 0o7777 == 0o640
    assert write(target, b"four", finish=AtomicFile.append).st_size == 9
    write(target.with_name("log"), b"one", finish=AtomicFile.append)
    assert everything(tmp_path / "a" / "b") == {"file": b"threefour", "log": b"one"}
    assert target.with_name("log").stat().st_mode & 0o7777 == 0o644


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("path", ["old", "a/b/new"])
def test_what_is_given_up_leaves_nothing(tmp_path: Path, path: str) -> None:
    (tmp_path / "old").write_bytes(b"old")
    file = AtomicFile(Places(), str(tmp_path / path))
    file.write(b"x" * 10_000_000)
    file.close()
    file.close()
    assert everything(tmp_path) == {"old": b"old"}


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("path", ["old", "a/b/new"])
def test_a_check_that_fails_leaves_all_as_it_is(tmp_path: Path, path: str, finish: Any) -> None:
    (tmp_path / "old").write_bytes(b"old")

    def refuse(current: os.stat_result | None) -> None:
        assert (current is None) == (path != "old")
        raise LookupError

    with closing(AtomicFile(Places(), str(tmp_path / path))) as file:
        file.write(b"new")
        with pytest.raises(LookupError):
            finish(file, refuse)
    assert everything(tmp_path) == {"old": b"old"}


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("path", ["old", "new", "a/b/new"])
@pytest.mark.parametrize("call", CALLS)
def test_whichever_call_fails_the_file_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: str, path: str, finish: Finish
) -> None:
    """The Nth call of one kind fails, for every N until there is no Nth call."""
    old = {"old": b"old"}
    failures = 0
    for number in range(100):
        place = tmp_path / f"{number}"
        place.mkdir()
        (place / "old").write_bytes(b"old")
        with monkeypatch.context() as patch:
            failed = _failing(patch, call, number)
            with contextlib.suppress(Full):
                write(place / path, b"new", b"er", finish=finish)
        if not failed:
            break
        failures += 1
        found = everything(place)
        whole = {name: data for name, data in found.items() if not name.endswith("/")}
        added = b"oldnewer" if finish is AtomicFile.append and path == "old" else b"newer"
        assert whole in (old, old | {path: added}), (kind, number)
        assert found == whole or path in whole
    else:
        pytest.fail(f"{call} is called without end")
    assert failures or call in ("mkdir", "link", "rename", "fchmod", "pread")


class Full(OSError):
    """What a test makes fail."""


def _failing(patch: pytest.MonkeyPatch, call: str, number: int) -> list[None]:
    real = getattr(os, call)
    seen: list[None] = []
    failed: list[None] = []

    def once(*arguments: Any, **named: Any) -> Any:
        seen.append(None)
        if len(seen) == number + 1:
            failed.append(None)
            raise Full(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    patch.setattr(os, call, once)
    return failed


def test_one_that_appears_meanwhile_is_seen_by_the_check_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "file"
    seen: list[bool] = []

    def check(current: os.stat_result | None) -> None:
        seen.append(current is not None)
        if current is None:
            target.write_bytes(b"theirs")

    with closing(AtomicFile(Places(), str(target))) as file:
        file.write(b"ours")
        file.commit(check)
    assert seen == [False, True]
    assert everything(tmp_path) == {"file": b"ours"}


def test_a_link_without_end_and_a_link_to_a_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dir").symlink_to(".")
    (tmp_path / "slash").symlink_to("new/")
    for name, number in (("loop", errno.ELOOP), ("dir", errno.EISDIR), ("slash", errno.EISDIR)):
        with pytest.raises(OSError) as raised:  # noqa: PT011  # its number is looked at
            AtomicFile(Places(), str(tmp_path / name))
        assert raised.value.errno in (number, errno.ENOENT), name


def test_parents_that_cannot_all_be_made_are_removed_again(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = targets.Target(Places(), f"{tmp_path}/there/a/b/{'c/' * 20}file")
    (tmp_path / "there" / "a").mkdir()
    (tmp_path / "there" / "a" / "b").symlink_to(tmp_path)
    with closing(target):
        with pytest.raises(OSError, match="a directory"):
            target.make_parents(Ownership())
        target.take_back()
    assert everything(tmp_path / "there").keys() == {"a/", "a/b/"}


def test_a_program_that_runs_can_be_replaced(tmp_path: Path) -> None:
    program = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as running:
        write(program, b"#!/bin/sh\n")
        running.kill()
    assert program.read_bytes() == b"#!/bin/sh\n"
