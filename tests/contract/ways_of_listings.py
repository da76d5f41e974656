"""Ways in which an error can leave a live daemon: directories that cannot be listed or searched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.contract.ways import way
from tests.contract.ways_of_limits import starved
from tests.support.live import Daemon, daemon

LIST, SEARCH = "/directories/list", "/files/search"
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def _asked(name: str, code: str, path: str, query: str) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return running.client.get(f"{path}?{query}")

    provoke.__name__ = name
    way(code, "GET", path)(provoke)


def _sent(name: str, code: str, path: str, body: dict[str, object]) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return running.client.post(path, json=body)

    provoke.__name__ = name
    way(code, "POST", path)(provoke)


for _path in (LIST, SEARCH):
    _what = _path.rpartition("/")[2]
    _asked(f"{_what}_without_path", "MISSING_QUERY", _path, "")
    _asked(f"{_what}_with_an_empty_path", "MISSING_QUERY", _path, "path=")
    _asked(f"{_what}_of_what_is_not_there", "FILE_NOT_FOUND", _path, "path=/nowhere/at/all")
    _asked(f"{_what}_of_a_file", "INVALID_FILE", _path, "path=/etc/passwd")
    _asked(f"{_what}_of_a_symlink", "INVALID_FILE", _path, "path=/proc/self/cwd")
    _asked(f"{_what}_of_a_path_with_a_nul", "INVALID_FILE", _path, "path=/etc%00")
    _asked(f"{_what}_of_a_name_that_is_too_long", "INVALID_FILE", _path, f"path=/{'x' * 300}")
    _asked(f"{_what}_of_a_path_that_is_too_long", "INVALID_FILE", _path, f"path=/{'x/' * 3000}")
    _asked(f"{_what}_of_an_undefined_variable", "INVALID_FILE", _path, "path=$NOT_DEFINED_HERE")
    _asked(f"{_what}_with_limit_0", "INVALID_QUERY", _path, "path=/etc&limit=0")
    _asked(f"{_what}_with_a_limit_that_is_no_number", "INVALID_QUERY", _path, "path=/etc&limit=many")
    _asked(f"{_what}_with_a_cursor_that_is_none", "INVALID_QUERY", _path, "path=/etc&cursor=%ff")
    _asked(f"{_what}_with_a_field_that_is_none", "INVALID_QUERY", _path, "path=/etc&fields=path,inode")
    _sent(f"{_what}_page_of_nothing", "INVALID_REQUEST_BODY", _path, {})
    _sent(f"{_what}_page_with_a_wrong_field", "INVALID_REQUEST_BODY", _path, {"path": "/etc", "dept": 1})
    _sent(f"{_what}_page_with_a_wrong_cursor", "INVALID_REQUEST_BODY", _path, {"path": "/etc", "cursor": "x"})
    _sent(f"{_what}_page_of_a_file", "INVALID_FILE", _path, {"path": "/etc/passwd"})
    _sent(f"{_what}_page_of_what_is_not_there", "FILE_NOT_FOUND", _path, {"path": "/nowhere/at/all"})

_asked("negative_depth", "INVALID_QUERY", LIST, "path=/etc&depth=-1")
_asked("depth_that_is_no_number", "INVALID_QUERY", LIST, "path=/etc&depth=1.5")
_asked("class_that_is_not_closed", "INVALID_QUERY", SEARCH, "path=/etc&pattern=[")
_asked("pattern_that_leads_elsewhere", "INVALID_QUERY", SEARCH, "path=/etc&pattern=/srv/*")
_sent("page_with_braces_that_are_not_closed", "INVALID_REQUEST_BODY", SEARCH, {"path": "/", "pattern": "{"})


def _elsewhere(path: str) -> Callable[[Daemon], httpx.Response]:
    def provoke(_: Daemon) -> httpx.Response:
        with tempfile.TemporaryDirectory() as root, daemon("--roots", root) as running:
            Path(root, "link").symlink_to("/etc")
            assert running.client.get(path, params={"path": f"{root}/link"}).status_code == 400
            return running.client.get(path, params={"path": f"{root}/link/../etc"})

    provoke.__name__ = f"{path.rpartition('/')[2]}_outside_of_the_roots"
    return provoke


def _unreadable(path: str) -> Callable[[Daemon], httpx.Response]:
    def provoke(_: Daemon) -> httpx.Response:
        if os.geteuid() != 0:
            pytest.skip("needs root, to start a daemon that is not")
        with tempfile.TemporaryDirectory() as root, daemon(wrapper=UNPRIVILEGED) as running:
            return running.client.get(path, params={"path": root})

    provoke.__name__ = f"{path.rpartition('/')[2]}_of_what_may_not_be_read"
    return provoke


def _exhausted(path: str) -> Callable[[Daemon], httpx.Response]:
    def provoke(_: Daemon) -> httpx.Response:
        with daemon() as running, starved(running):
            return running.client.get(path, params={"path": "/etc"})

    provoke.__name__ = f"{path.rpartition('/')[2]}_without_descriptors"
    return provoke


for _path in (LIST, SEARCH):
    way("PATH_NOT_ALLOWED", "GET", _path)(_elsewhere(_path))
    way("PERMISSION_DENIED", "GET", _path)(_unreadable(_path))
    way("RESOURCE_EXHAUSTED", "GET", _path)(_exhausted(_path))
