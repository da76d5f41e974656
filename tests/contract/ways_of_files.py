"""Ways in which an error can leave a live daemon: files that cannot be looked at or changed."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.contract.ways import sent, way
from tests.contract.ways_of_downloads import UNPRIVILEGED, file
from tests.contract.ways_of_limits import starved
from tests.edge import raw
from tests.support.live import Daemon, daemon

INFO, FILES, DIRECTORIES = "/files/info", "/files", "/directories"
PERMISSIONS, REPLACE, MOVE = "/files/permissions", "/files/replace", "/files/mv"
Ask = Callable[[Daemon, str], httpx.Response]
EDIT = {"old": "0", "new": "1"}

ROUTES: dict[tuple[str, str], Ask] = {
    ("GET", INFO): lambda running, path: running.client.get(INFO, params={"path": path}),
    ("DELETE", FILES): lambda running, path: running.client.delete(FILES, params={"path": path}),
    ("DELETE", DIRECTORIES): lambda running, path: running.client.delete(DIRECTORIES, params={"path": path}),
    ("POST", PERMISSIONS): lambda running, path: running.client.post(PERMISSIONS, json={path: {"mode": 644}}),
    ("POST", REPLACE): lambda running, path: running.client.post(REPLACE, json={path: EDIT}),
    ("POST", DIRECTORIES): lambda running, path: running.client.post(DIRECTORIES, json={path: {}}),
    ("POST", MOVE): lambda running, path: running.client.post(
        MOVE, json=[{"src": path, "dest": path + ".new"}]
    ),
}
"""Each route asked for one path."""


def _each(name: str, code: str, path: str, *, but: tuple[str, ...] = ()) -> None:
    """Every route but those answers with this code."""
    for (method, route), ask in ROUTES.items():
        if f"{method} {route}" not in but:

            def provoke(running: Daemon, ask: Ask = ask) -> httpx.Response:
                return ask(running, path)

            provoke.__name__ = f"{name}_{method}_{route}"
            way(code, method, route)(provoke)


MISSING_IS_FINE = (f"DELETE {FILES}", f"DELETE {DIRECTORIES}", f"POST {DIRECTORIES}")
_each("nothing_there", "FILE_NOT_FOUND", "/nowhere/at/all", but=MISSING_IS_FINE)
_each("through_a_file", "INVALID_FILE", "/etc/passwd/x", but=(f"POST {DIRECTORIES}",))
_each("name_too_long", "INVALID_FILE", "/" + "x" * 256)
_each("path_too_long", "INVALID_FILE", "/x" * 2500)
_each("undefined_variable", "INVALID_FILE", "$NOT_DEFINED_HERE/x")


def _body(name: str, code: str, path: str, body: Any) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return running.client.post(path, json=body)

    provoke.__name__ = f"{name}_{path}"
    way(code, "POST", path)(provoke)


for _path in (PERMISSIONS, DIRECTORIES):
    _body("empty_path", "INVALID_REQUEST_BODY", _path, {"": {}})
    _body("nul", "INVALID_REQUEST_BODY", _path, {"/tmp/a\0b": {}})
    _body("array", "INVALID_REQUEST_BODY", _path, [])
    _body("mode_that_is_no_octal", "INVALID_REQUEST_BODY", _path, {"/tmp": {"mode": 489}})
    _body("mode_beyond_the_last", "INVALID_REQUEST_BODY", _path, {"/tmp": {"mode": 10000}})
    _body("mode_as_text", "INVALID_REQUEST_BODY", _path, {"/tmp": {"mode": "644"}})
    _body("unknown_owner", "INVALID_REQUEST_BODY", _path, {"/tmp": {"owner": "nosuch"}})
    _body("unknown_group", "INVALID_REQUEST_BODY", _path, {"/tmp": {"group": "nosuch"}})
_body("object", "INVALID_REQUEST_BODY", MOVE, {})
_body("no_destination", "INVALID_REQUEST_BODY", MOVE, [{"src": "/tmp"}])
_body("the_root", "INVALID_FILE", MOVE, [{"src": "/", "dest": "/tmp/root"}])
_body("onto_what_is_there", "ALREADY_EXISTS", MOVE, [{"src": "/etc/passwd", "dest": "/etc/group"}])
_body("onto_a_directory", "ALREADY_EXISTS", MOVE, [{"src": "/etc/passwd", "dest": "/tmp"}])
_body("over_a_file", "ALREADY_EXISTS", DIRECTORIES, {"/etc/passwd": {}})
_body("below_a_file", "ALREADY_EXISTS", DIRECTORIES, {"/etc/passwd/x": {}})
_body("nothing_to_look_for", "INVALID_REQUEST_BODY", REPLACE, {"/etc/passwd": {"old": "", "new": "x"}})
_body("negative_count", "INVALID_REQUEST_BODY", REPLACE, {"/etc/passwd": {**EDIT, "expected_count": -1}})
_body("in_a_directory", "INVALID_FILE", REPLACE, {"/etc": EDIT})
_body("in_a_device", "INVALID_FILE", REPLACE, {"/dev/null": EDIT})
del _path


@way("MISSING_QUERY", "DELETE", FILES)
def delete_of_nothing(running: Daemon) -> httpx.Response:
    return running.client.delete(FILES)


@way("MISSING_QUERY", "DELETE", DIRECTORIES)
def removal_of_nothing(running: Daemon) -> httpx.Response:
    return running.client.delete(DIRECTORIES)


@way("INVALID_FILE", "DELETE", FILES)
def delete_of_a_directory(running: Daemon) -> httpx.Response:
    return running.client.delete(FILES, params={"path": "/etc"})


@way("INVALID_FILE", "DELETE", DIRECTORIES)
def removal_of_a_file(running: Daemon) -> httpx.Response:
    return running.client.delete(DIRECTORIES, params={"path": "/etc/passwd"})


@way("INVALID_QUERY", "GET", INFO)
def info_of_more_than_may_be_asked(running: Daemon) -> httpx.Response:
    return running.client.get(INFO + "?" + "path&" * 10_001)


@way("INVALID_QUERY", "POST", REPLACE)
def verbose_perhaps(running: Daemon) -> httpx.Response:
    return running.client.post(REPLACE, params={"verbose": "perhaps"}, json={})


@way("COUNT_MISMATCH", "POST", REPLACE)
def other_count_than_expected(running: Daemon) -> httpx.Response:
    with file(b"a a a") as path:
        edit = {"old": "a", "new": "b", "expected_count": 1}
        return running.client.post(REPLACE, json={str(path): edit})


@way("CONFLICT", "POST", REPLACE)
def file_that_never_stays_the_same(running: Daemon) -> httpx.Response:
    with file(b"0" * 100_000) as path, _written_all_the_time(path):
        return running.client.post(REPLACE, json={str(path): EDIT})


@contextlib.contextmanager
def _written_all_the_time(path: Path) -> Iterator[None]:
    stop, running = threading.Event(), threading.Event()

    def write() -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        while not stop.is_set():
            os.write(fd, b"0")
            os.ftruncate(fd, 100_000)
            running.set()
        os.close(fd)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert running.wait(10)
        yield
    finally:
        stop.set()
        writer.join()


def _guarded(method: str, route: str, ask: Ask) -> None:
    @way("PATH_NOT_ALLOWED", method, route)
    def outside_of_the_roots(_: Daemon) -> httpx.Response:
        with file() as path, daemon("--roots", str(path.parent)) as running:
            path.with_name("link").symlink_to("/etc")
            return ask(running, str(path.with_name("link") / "passwd"))

    @way("PERMISSION_DENIED", method, route)
    def without_the_right(_: Daemon) -> httpx.Response:
        with file() as path:
            path.parent.chmod(0)
            with daemon(wrapper=UNPRIVILEGED if os.geteuid() == 0 else ()) as running:
                return ask(running, str(path))


@way("RESOURCE_EXHAUSTED", "DELETE", FILES)
def delete_without_descriptors(_: Daemon) -> httpx.Response:
    with file() as path, daemon() as running, starved(running):
        return ROUTES["DELETE", FILES](running, str(path))


for (_method, _route), _ask in ROUTES.items():
    _guarded(_method, _route, _ask)


@way("REQUEST_TIMEOUT", "POST", MOVE)
def list_of_moves_that_stops_halfway(_: Daemon) -> httpx.Response:
    from tests.contract.ways_of_limits import _IMPATIENT

    with daemon(wrapper=(sys.executable, "-c", _IMPATIENT)) as running:
        return sent(running, raw.request("POST", MOVE, "Content-Length: 99") + b"[", "POST")
