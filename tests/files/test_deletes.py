"""DELETE /files: files and links go, what they point at stays."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.files import Api, as_user, ok, open_directory, refused, root_only


def test_many_files_of_every_kind_go_in_one_call(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "secret").touch(mode=0)
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "socket"))
    names = [tmp_path / name for name in ("file", "secret", "fifo", "socket")]
    ok(api.delete(*names))
    assert os.listdir(tmp_path) == []


def test_what_is_not_there_is_no_error(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ok(api.delete(tmp_path / "missing", tmp_path / "file", tmp_path / "no" / "parent", tmp_path / "file"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("target", ["nowhere", "kept", "directory", "link"])
def test_a_link_goes_and_what_it_points_at_stays(api: Api, tmp_path: Path, target: str) -> None:
    (tmp_path / "kept").write_bytes(b"x")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "inner").touch()
    (tmp_path / "link").symlink_to(target)
    ok(api.delete(tmp_path / "link"))
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept").read_bytes() == b"x"
    assert (tmp_path / "directory" / "inner").exists()


def test_a_file_behind_a_link_to_a_directory_is_reached(api: Api, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "inner").touch()
    (tmp_path / "link").symlink_to("directory")
    ok(api.delete(tmp_path / "link" / "inner"))
    assert os.listdir(tmp_path / "directory") == []


def test_a_directory_is_refused_and_then_nothing_goes(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    asked = (tmp_path / "file", tmp_path / "directory")
    refused(api.delete(*asked), "INVALID_FILE", path=str(asked[1]), errno="EISDIR")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


@pytest.mark.parametrize("name", ["/", "//", "/..", "/etc/../..", "."])
def test_a_name_of_a_directory_is_refused_however_it_is_written(api: Api, name: str) -> None:
    refused(api.delete(name), "INVALID_FILE")


@root_only
def test_without_the_right_nothing_goes_and_the_file_is_named(user: Api) -> None:
    with open_directory() as top:
        (top / "locked").mkdir()
        (top / "locked" / "file").touch()
        (top / "free").touch()
        body = refused(
            user.delete(top / "free", top / "locked" / "file"), "PERMISSION_DENIED", errno="EACCES"
        )
        assert body["details"]["path"] == str(top / "locked" / "file")
        assert (top / "free").exists()
        ok(user.delete(top / "locked" / "missing"))


@root_only
def test_what_only_shows_when_it_is_done_says_which_were_done(user: Api) -> None:
    with open_directory() as top:
        (top / "sticky").mkdir()
        (top / "sticky").chmod(0o1777)
        for name in ("a", "b", "sticky/theirs", "c"):
            (top / name).touch()
        asked = [top / name for name in ("a", "b", "sticky/theirs", "c")]
        body = refused(user.delete(*asked), "PERMISSION_DENIED", errno="EPERM", path=str(asked[2]))
        assert body["details"]["done"] == [str(asked[0]), str(asked[1])]
        assert (body["executed"], body["retryable"]) == ("executed", False)
        assert [path.exists() for path in asked] == [False, False, True, True]


def test_a_file_system_that_is_read_only_is_forbidden(tmp_path: Path) -> None:
    if not os.statvfs("/sys").f_flag & os.ST_RDONLY:
        locked = tmp_path / "locked"
        locked.mkdir()
        (locked / "file").touch()
        if os.system(f"mount --bind {locked} {locked} 2>/dev/null"):
            pytest.skip("nothing can be mounted here")
        try:
            if os.system(f"mount -o remount,ro,bind {locked} 2>/dev/null"):
                pytest.skip("nothing can be made read-only here")
            with as_user() as api:
                tmp_path.chmod(0o755)
                refused(api.delete(locked / "file"), "PERMISSION_DENIED")
        finally:
            assert os.system(f"umount {locked}") == 0
