"""GET /files/info: what lstat says of each path, by the path as it was asked for."""

from __future__ import annotations

import os
import pwd
import socket
import stat
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.files import Api, open_directory, refused, root_only


def test_no_path_is_no_entry(api: Api) -> None:
    assert api.info().json() == {}


def test_every_path_is_answered_by_the_name_that_was_asked_for(api: Api, tmp_path: Path) -> None:
    file, directory = tmp_path / "file", tmp_path / "directory"
    file.write_bytes(b"12345")
    file.chmod(0o4750)
    directory.mkdir()
    asked = [str(file), str(directory), f"{tmp_path}/./file", f"{tmp_path}//directory/"]
    found = api.info(*asked).json()
    assert list(found) == asked
    info = file.stat()
    assert found[str(file)] == {
        "path": str(file),
        "type": "file",
        "size": 5,
        "modified_at": found[str(file)]["modified_at"],
        "created_at": found[str(file)]["created_at"],
        "owner": pwd.getpwuid(info.st_uid).pw_name,
        "group": found[str(file)]["group"],
        "mode": 4750,
    }
    shown = datetime.fromisoformat(found[str(file)]["modified_at"][:26] + "+00:00")
    assert abs(shown.timestamp() - info.st_mtime) < 0.001
    assert found[asked[2]]["size"] == 5
    assert {found[name]["type"] for name in (asked[1], asked[3])} == {"directory"}


def test_every_kind_of_file_is_told_and_no_link_is_followed(api: Api, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, target in {"dangling": "nowhere", "loop": "loop", "link": "/etc"}.items():
        (tmp_path / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "socket"))
    names = ["fifo", "socket", "dangling", "loop", "link"]
    found = api.info(*(tmp_path / name for name in names), "/dev/null").json()
    kinds = [entry["type"] for entry in found.values()]
    assert kinds == ["other", "other", "symlink", "symlink", "symlink", "other"]
    assert found[str(tmp_path / "link")]["size"] == len("/etc")


@pytest.mark.parametrize("root", ["/", "//", "/..", "/.", "/etc/..", "/nowhere/.."])
def test_the_root_directory_has_info_whatever_it_is_called(api: Api, root: str) -> None:
    assert api.info(root).json()[root]["type"] == "directory"


def test_a_directory_that_is_called_by_dots_is_itself(api: Api, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("inner")
    for name in ("inner/.", "inner/../inner", "link/../inner", "link/."):
        found = api.info(f"{tmp_path}/{name}").json()[f"{tmp_path}/{name}"]
        assert (found["type"], found["mode"]) == ("directory", 700)


def test_dots_after_a_link_go_where_the_kernel_goes(api: Api, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "here").write_bytes(b"")
    (tmp_path / "link").symlink_to("a/b")
    assert api.info(f"{tmp_path}/link/../here").status_code == 200
    refused(api.info(f"{tmp_path}/link/../a"), "FILE_NOT_FOUND")


def test_what_is_not_there_is_named(api: Api, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    refused(api.info("/etc", missing, "/tmp"), "FILE_NOT_FOUND", path=missing, errno="ENOENT")


def test_names_that_are_no_utf8_survive_the_round_trip(api: Api, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9 %41\xff"
    Path(os.fsdecode(name)).write_bytes(b"x")
    found = api.info(name).json()
    ((key, entry),) = found.items()
    assert key == entry["path_encoded"]
    assert entry["path"].endswith("caf� %41�")
    again = api.daemon.client.get(f"/files/info?path={entry['path_encoded']}").json()
    assert again == found
    assert api.daemon.client.delete(f"/files?path={entry['path_encoded']}").status_code == 200
    gone = refused(api.info(name), "FILE_NOT_FOUND")
    assert gone["details"]["path_encoded"] == key


def test_hundreds_of_paths_are_one_call(api: Api, tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / str(number)).touch()
    found = api.info(*(tmp_path / str(number) for number in range(400))).json()
    assert [Path(name).name for name in found] == [str(number) for number in range(400)]


@root_only
def test_an_owner_without_a_name_is_a_number(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 54321, 54322)
    found = api.info(tmp_path / "file").json()[str(tmp_path / "file")]
    assert (found["owner"], found["group"]) == ("54321", "54322")


def test_a_directory_that_may_not_be_entered_is_forbidden_to_look_into(user: Api) -> None:
    with open_directory() as top:
        (top / "locked").mkdir()
        (top / "locked" / "file").touch()
        (top / "locked").chmod(stat.S_IRUSR)
        refused(user.info(top / "locked" / "file"), "PERMISSION_DENIED", errno="EACCES")
        assert user.info(top / "locked").status_code == 200
        (top / "locked").chmod(0o700)
