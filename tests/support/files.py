"""The file routes as tests call them, and trees for them to work on."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import pytest

from tests.support.contract import assert_documented
from tests.support.live import Daemon, daemon

USER = 1000
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to others")
Path_ = str | bytes | Path


class Api:
    """Every answer is held against the contract."""

    def __init__(self, running: Daemon) -> None:
        self.daemon = running

    def info(self, *paths: Path_) -> httpx.Response:
        return self._query("GET", "/files/info", paths)

    def delete(self, *paths: Path_) -> httpx.Response:
        return self._query("DELETE", "/files", paths)

    def rmdir(self, *paths: Path_) -> httpx.Response:
        return self._query("DELETE", "/directories", paths)

    def chmod(self, *paths: Path_, **fields: Any) -> httpx.Response:
        """The same for all of these paths."""
        return self.post("/files/permissions", {str(path): fields for path in paths})

    def mkdir(self, *paths: Path_, **fields: Any) -> httpx.Response:
        """The same for all of these paths."""
        return self.post("/directories", {str(path): fields for path in paths})

    def move(self, *pairs: tuple[Path_, Path_]) -> httpx.Response:
        return self.post("/files/mv", [{"src": str(source), "dest": str(target)} for source, target in pairs])

    def replace(self, path: Path_, old: str, new: str, **fields: Any) -> httpx.Response:
        return self.replace_all({path: {"old": old, "new": new, **fields}})

    def replace_all(self, wanted: dict[Any, Any], verbose: str | None = None) -> httpx.Response:
        query = {} if verbose is None else {"verbose": verbose}
        return self.post("/files/replace", {str(path): edit for path, edit in wanted.items()}, **query)

    def post(self, path: str, body: Any, **query: str) -> httpx.Response:
        answer = self.daemon.client.post(path, json=body, params=query)
        assert_documented("POST", path, answer)
        return answer

    def _query(self, method: str, path: str, paths: tuple[Path_, ...]) -> httpx.Response:
        query = "&".join(f"path={quoted(item)}" for item in paths)
        answer = self.daemon.client.request(method, f"{path}?{query}")
        assert_documented(method, path, answer)
        return answer


def quoted(path: Path_) -> str:
    """A path's bytes as a query has them."""
    return quote_from_bytes(os.fsencode(path))


def ok(answer: httpx.Response) -> None:
    """Success without data."""
    assert (answer.status_code, answer.content) == (200, b""), answer.text


def refused(answer: httpx.Response, code: str, **details: Any) -> dict[str, Any]:
    """An error with this code and at least these details; its body."""
    body: dict[str, Any] = answer.json()
    assert body["code"] == code, body
    for name, value in details.items():
        assert body["details"][name] == value, body
    done = body.get("details", {}).get("done", [])
    expected = {"executed"} if done else {"not_executed"}
    if answer.request.method == "DELETE" and answer.request.url.path == "/directories" and not done:
        expected.add("unknown")  # some of what was in it may be gone
    assert body["executed"] in expected, body
    return body


@contextlib.contextmanager
def as_user(*flags: str, umask: int | None = None) -> Iterator[Api]:
    """A daemon that is not root (as root itself: uid 1000)."""
    wrapper = AS_USER if os.geteuid() == 0 else ()
    if umask is not None:
        wrapper = ("sh", "-c", f'umask {umask:03o}; exec "$@"', "sh", *wrapper)
    with daemon(*flags, wrapper=wrapper) as running:
        yield Api(running)


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that every user may write to, in one that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="execd-test-") as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


@contextlib.contextmanager
def other_device(path: Path) -> Iterator[Path]:
    """A directory on another file system than `path` is on."""
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == path.stat().st_dev:
        pytest.skip("there is no second file system at /dev/shm")
    with tempfile.TemporaryDirectory(prefix="execd-test-", dir="/dev/shm") as name:
        yield Path(name)


def deep(top: Path, levels: int, name: str = "d") -> int:
    """Make `levels` directories, each in the one before, however long the path becomes; the last one's fd."""
    top.mkdir(exist_ok=True)
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


def depth(top: Path, name: str = "d") -> int:
    """How many directories of that name there are, each in the one before."""
    fd, found = os.open(top, os.O_RDONLY | os.O_DIRECTORY), 0
    with contextlib.suppress(FileNotFoundError):
        while True:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd, found = below, found + 1
    os.close(fd)
    return found


def snapshot(top: Path) -> dict[str, tuple[Any, ...]]:
    """Everything of a tree that can be seen and should last: kinds, modes, owners, sizes, contents, times."""
    found: dict[str, tuple[Any, ...]] = {}
    for directory, directories, names in os.walk(top):
        for path in (Path(directory, name) for name in ["", *names, *directories]):
            info = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[str(path.relative_to(top))] = (
                info.st_mode,
                info.st_uid,
                info.st_gid,
                info.st_mtime_ns,
                content,
            )
    return found


@contextlib.contextmanager
def swapping(a: Path, b: Path) -> Iterator[None]:
    """Let two names change places all the time, with no moment at which one of them is missing."""
    number = {"x86_64": 316, "aarch64": 276}.get(platform.machine())
    if number is None:
        pytest.skip("renameat2 is not known for this machine")
    call = ctypes.CDLL(None, use_errno=True).syscall
    over = threading.Event()
    swapped: list[int] = []

    def swap() -> None:
        while not over.is_set():
            here = ctypes.c_int(-100)  # AT_FDCWD
            found = call(ctypes.c_long(number), here, os.fsencode(a), here, os.fsencode(b), ctypes.c_uint(2))
            swapped.append(found)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        over.set()
        swapper.join()
    assert 0 in swapped, "the two were never swapped"


def leftovers(*directories: Path) -> list[str]:
    """Hidden names that execd uses while it works."""
    return [
        name
        for top in directories
        for _, inner, names in os.walk(top)
        for name in [*inner, *names]
        if ".execd-" in name
    ]
