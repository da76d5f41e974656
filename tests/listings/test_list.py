"""GET and POST /directories/list: what is in a directory."""

from __future__ import annotations

import grp
import json
import os
import pwd
import socket
from datetime import datetime
from pathlib import Path

import pytest

from tests.support import trees
from tests.support.listings import FORMS, LIST, ask, asked
from tests.support.live import Daemon, daemon

ODD = [
    b"x\ny",
    b"-rf",
    b"%2e",
    b"a:1:b",
    b" ",
    b'"q\\',
    "\U0001f600".encode(),
    "数据".encode(),
    b"\xff",
    b"a\xc3",
]


def _named(path: Path) -> list[bytes]:
    return sorted(os.listdir(os.fsencode(path)))


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_entry_is_described_as_lstat_sees_it(live: Daemon, tmp_path: Path, form: str) -> None:
    trees.make(tmp_path, "directory/", "file", "owned", "set-uid")
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "set-uid").chmod(0o4751)
    (tmp_path / "directory").chmod(0o1777)
    os.utime(tmp_path / "file", ns=(1, 1_600_000_000_000_000_007))
    if os.geteuid() == 0:
        os.chown(tmp_path / "owned", 54321, 54322)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "socket"))
        entries = ask(live, LIST, form, path=str(tmp_path)).entries
    kinds = {"directory": "directory", "link": "symlink", "dangling": "symlink", "fifo": "other"}
    for name, entry in zip(sorted(os.listdir(tmp_path)), entries, strict=True):
        info = os.lstat(tmp_path / name)
        assert entry["path"] == f"{tmp_path}/{name}"
        assert entry["type"] == {**kinds, "socket": "other"}.get(name, "file")
        assert (entry["size"], entry["mode"]) == (info.st_size, int(f"{info.st_mode & 0o7777:o}"))
        for field, nanoseconds in (("modified_at", info.st_mtime_ns), ("created_at", info.st_ctime_ns)):
            second, _, rest = entry[field].removesuffix("Z").partition(".")
            seconds = int(datetime.fromisoformat(second + "+00:00").timestamp())
            assert (seconds * 10**9 + int(rest), len(rest)) == (nanoseconds, 9)
        unknown = name == "owned" and os.geteuid() == 0
        assert entry["owner"] == ("54321" if unknown else pwd.getpwuid(info.st_uid).pw_name)
        assert entry["group"] == ("54322" if unknown else grp.getgrgid(info.st_gid).gr_name)


def test_descendants_come_right_after_their_directory_down_to_the_depth(live: Daemon, tmp_path: Path) -> None:
    trees.make(tmp_path, "a/b/c/d", "a-", "a.", "b/", "B")
    expected = [os.fsdecode(path) for path in trees.everything(tmp_path)]
    assert expected == ["B", "a", "a/b", "a/b/c", "a/b/c/d", "a-", "a.", "b"]
    for depth in range(6):
        wanted = [f"{tmp_path}/{path}" for path in expected if path.count("/") < depth]
        listed = ask(live, LIST, path=str(tmp_path), depth=depth)
        assert (listed.paths, listed.truncated, listed.skipped) == (wanted, False, 0)
    assert ask(live, LIST, path=str(tmp_path)).paths == ask(live, LIST, path=str(tmp_path), depth=1).paths
    assert ask(live, LIST, path=str(tmp_path), depth=2**63 - 1).paths[-1] == f"{tmp_path}/b"


@pytest.mark.parametrize("form", FORMS)
def test_odd_names_come_back_whole_and_work_in_the_next_call(live: Daemon, tmp_path: Path, form: str) -> None:
    trees.make(tmp_path, *(name + b"/in\xfe" for name in ODD))
    entries = ask(live, LIST, form, path=str(tmp_path)).entries
    for name, entry in zip(_named(tmp_path), entries, strict=True):
        whole = os.fsencode(tmp_path) + b"/" + name
        assert entry["path"] == whole.decode("utf-8", "replace")
        query = entry.get("path_encoded")
        assert (query is None) == (whole.decode("utf-8", "ignore").encode() == whole)
        below = (
            live.client.get(f"{LIST}?path={query}")
            if query
            else live.client.get(LIST, params={"path": entry["path"]})
        )
        [inner] = below.json()
        assert inner["path_encoded"].endswith("/in%FE")
        assert live.client.delete(f"/files?path={inner['path_encoded']}").status_code == 200
        assert os.listdir(whole) == []


def test_names_are_ordered_by_their_bytes(live: Daemon, tmp_path: Path) -> None:
    trees.make(tmp_path, *ODD, "\ue000", "\uffff", "é", "z")
    found = ask(live, LIST, path=str(tmp_path)).entries
    assert [os.fsencode(entry["path"]) for entry in found if "path_encoded" not in entry] == [
        os.fsencode(tmp_path) + b"/" + name
        for name in _named(tmp_path)
        if name.decode("utf-8", "ignore").encode() == name
    ]


@pytest.mark.parametrize("form", FORMS)
def test_only_the_fields_asked_for_are_there(live: Daemon, tmp_path: Path, form: str) -> None:
    trees.make(tmp_path, b"a\xff")
    whole = ask(live, LIST, form, path=str(tmp_path)).entries[0]
    for fields in (
        ["path"],
        ["type"],
        ["path", "type"],
        ["mode", "path"],
        ["size", "owner"],
        list(whole)[:8],
    ):
        entry = ask(live, LIST, form, path=str(tmp_path), fields=fields).entries[0]
        shown = {*fields, *(["path_encoded"] if "path" in fields else [])}
        assert entry == {name: value for name, value in whole.items() if name in shown}


def test_fields_that_a_directory_tells_need_no_right_to_look_at_its_files(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to start a daemon that is not")
    trees.make(tmp_path, "shut/a", "shut/b")
    for directory in (tmp_path, *list(tmp_path.parents)[:-2]):
        directory.chmod(directory.stat().st_mode | 0o055)
    (tmp_path / "shut").chmod(0o444)
    with daemon(wrapper=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")) as running:
        names = ask(running, LIST, path=f"{tmp_path}/shut", fields=["path", "type"])
        assert [(e["path"][-1], e["type"]) for e in names.entries] == [("a", "file"), ("b", "file")]
        full = ask(running, LIST, path=f"{tmp_path}/shut")
        assert (full.entries, full.skipped) == ([], 2)


def test_a_symlink_as_the_root_is_refused_however_it_is_written(live: Daemon, tmp_path: Path) -> None:
    trees.make(tmp_path, "real/x", "file")
    (tmp_path / "link").symlink_to("real")
    for path in ("link", "link/", "link//", "real/../link", "file", "file/"):
        for form in FORMS:
            answer = asked(live, LIST, form, path=f"{tmp_path}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_FILE"), path
    assert ask(live, LIST, path=f"{tmp_path}/link/..").paths == [
        f"{tmp_path}/{name}" for name in ("file", "link", "real")
    ]
    for path in ("real", "real/", "./real/.", "/real//"):
        assert ask(live, LIST, path=f"{tmp_path}/{path}").paths == [f"{tmp_path}/real/x"]


def test_variables_and_home_in_the_path_are_replaced(tmp_path: Path) -> None:
    trees.make(tmp_path, "home/project/x")
    with daemon(env={"HOME": f"{tmp_path}/home", "WHERE": "project"}) as running:
        for path in ("~/project", "~/$WHERE", "$HOME/${WHERE}"):
            assert ask(running, LIST, path=path).paths == [f"{tmp_path}/home/project/x"]


def test_only_what_is_below_the_roots_can_be_listed(tmp_path: Path) -> None:
    trees.make(tmp_path, "in/a/b", "out/c")
    (tmp_path / "in/link").symlink_to(tmp_path / "out")
    with daemon("--roots", f"{tmp_path}/in") as running:
        assert len(ask(running, LIST, path=f"{tmp_path}/in", depth=5).entries) == 3
        assert ask(running, LIST, path=f"{tmp_path}/in/a").paths == [f"{tmp_path}/in/a/b"]
        for path in ("out", "in/../out", ".", "in/link/../out"):
            answer = asked(running, LIST, path=f"{tmp_path}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (403, "PATH_NOT_ALLOWED"), path


def test_head_says_the_same_as_get_without_the_body(live: Daemon, tmp_path: Path) -> None:
    trees.make(tmp_path, "a", "b")
    query = {"path": str(tmp_path), "limit": "1"}
    changing = ("x-request-id", "date")
    get, head = live.client.get(LIST, params=query), live.client.head(LIST, params=query)
    assert head.content == b""
    assert [h for h in head.headers.items() if h[0] not in changing] == [
        h for h in get.headers.items() if h[0] not in changing
    ]
    stream = live.client.head(LIST, params=query, headers={"Accept": "application/x-ndjson"})
    assert (stream.status_code, stream.headers["content-type"]) == (200, "application/x-ndjson")


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", "application/json"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("application/json, application/x-ndjson;q=0.5", "application/json"),
        ("application/x-ndjson, application/json;q=0.9", "application/x-ndjson"),
        ("text/event-stream", "application/json"),
        ("application/x-ndjson;q=0", "application/json"),
    ],
)
def test_the_accept_header_chooses_array_or_stream(live: Daemon, accept: str, media: str) -> None:
    answer = live.client.get(LIST, params={"path": "/etc", "fields": "path"}, headers={"Accept": accept})
    assert answer.headers["content-type"] == media
    first = answer.text.splitlines()[0]
    assert isinstance(json.loads(first), list if media == "application/json" else dict)
