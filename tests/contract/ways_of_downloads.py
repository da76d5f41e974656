"""Ways in which an error can leave a live daemon: files that cannot be downloaded."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from tests.contract.ways import way
from tests.support.live import Daemon, daemon

PATH = "/files/download"
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@contextlib.contextmanager
def file(content: bytes = b"0123456789") -> Iterator[Path]:
    """A file in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="execd-ways-") as directory:
        path = Path(directory, "file")
        path.write_bytes(content)
        yield path


def download(running: Daemon, path: str | Path, *headers: tuple[str, str], **query: str) -> httpx.Response:
    """The answer to one `GET /files/download`."""
    return running.client.get(PATH, params={"path": str(path), **query}, headers=list(headers))


def _refused(name: str, code: str, path: str, **query: str) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return download(running, path, **query)

    provoke.__name__ = name
    way(code, "GET", PATH)(provoke)


_refused("download_of_nothing", "MISSING_QUERY", "")
_refused("download_of_what_is_not_there", "FILE_NOT_FOUND", "/nowhere/at/all")
_refused("download_of_a_directory", "INVALID_FILE", "/etc")
_refused("download_of_a_device", "INVALID_FILE", "/dev/zero")
_refused("download_through_a_file", "INVALID_FILE", "/etc/passwd/x")
_refused("download_of_a_name_that_is_too_long", "INVALID_FILE", "/" + "x" * 300)
_refused("download_of_a_path_that_is_too_long", "INVALID_FILE", "/x" * 3000)
_refused("download_of_a_nul", "INVALID_FILE", "/etc/pass\0wd")
_refused("download_of_an_undefined_variable", "INVALID_FILE", "$NOT_DEFINED_HERE/x")
_refused("lines_from_before_the_first", "INVALID_QUERY", "/etc/passwd", offset="0")
_refused("no_lines_at_all", "INVALID_QUERY", "/etc/passwd", limit="0")
_refused("lines_of_no_number", "INVALID_QUERY", "/etc/passwd", offset="two")


@way("INVALID_FILE", "GET", PATH)
def download_of_a_fifo(running: Daemon) -> httpx.Response:
    with file() as path:
        os.mkfifo(path.with_name("fifo"))
        return download(running, path.with_name("fifo"))


@way("INVALID_FILE", "GET", PATH)
def download_of_a_socket(running: Daemon) -> httpx.Response:
    with file() as path, socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path.with_name("socket")))
        return download(running, path.with_name("socket"))


@way("INVALID_FILE", "GET", PATH)
def download_of_a_symlink_to_itself(running: Daemon) -> httpx.Response:
    with file() as path:
        path.with_name("loop").symlink_to("loop")
        return download(running, path.with_name("loop"))


@way("INVALID_QUERY", "GET", PATH)
def lines_with_a_range(running: Daemon) -> httpx.Response:
    return download(running, "/etc/passwd", ("Range", "bytes=0-1"), limit="1")


@way("RANGE_NOT_SATISFIABLE", "GET", PATH)
def range_beyond_the_end(running: Daemon) -> httpx.Response:
    with file() as path:
        answer = download(running, path, ("Range", "bytes=10-"))
        assert answer.headers["content-range"] == "bytes */10"
        return answer


@way("PATH_NOT_ALLOWED", "GET", PATH)
def download_from_outside_of_the_roots(_: Daemon) -> httpx.Response:
    with file() as path, daemon("--roots", str(path.parent)) as running:
        path.with_name("link").symlink_to("/etc/passwd")
        return download(running, path.with_name("link"))


@way("RESOURCE_EXHAUSTED", "GET", PATH)
def download_without_descriptors(_: Daemon) -> httpx.Response:
    from tests.contract.ways_of_limits import starved

    with daemon() as running, starved(running):
        return download(running, "/etc/passwd")


def _as_nobody(make_unreadable: Callable[[Path], Path]) -> Callable[[Daemon], httpx.Response]:
    def provoke(_: Daemon) -> httpx.Response:
        with file() as path:
            unreadable = make_unreadable(path)
            with daemon(wrapper=UNPRIVILEGED if os.geteuid() == 0 else ()) as running:
                return download(running, unreadable)

    return provoke


@way("PERMISSION_DENIED", "GET", PATH)
def download_of_what_may_not_be_read(running: Daemon) -> httpx.Response:
    def unreadable(path: Path) -> Path:
        path.parent.chmod(0o755)
        path.chmod(0)
        return path

    return _as_nobody(unreadable)(running)


@way("PERMISSION_DENIED", "GET", PATH)
def download_from_a_directory_that_may_not_be_entered(running: Daemon) -> httpx.Response:
    def locked(path: Path) -> Path:
        path.parent.chmod(0)
        return path

    return _as_nobody(locked)(running)
