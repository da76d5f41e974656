"""POST /files/permissions: mode, owner and group of what a path names."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.files import Api, ok, open_directory, refused, root_only
from tests.support.live import daemon

NOBODY = pwd.getpwuid(65534)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("digits", "mode"), [(644, 0o644), (1777, 0o1777), (4755, 0o4755), (7, 0o7)])
def test_a_mode_is_octal_digits(api: Api, tmp_path: Path, digits: int, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    ok(api.chmod(path, mode=digits))
    assert _mode(path) == mode


@pytest.mark.parametrize("fields", [{"mode": 0}, {"mode": None}, {}, {"owner": None, "group": ""}])
def test_what_is_not_said_stays_as_it_is(api: Api, tmp_path: Path, fields: dict[str, object]) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o640)
    before = path.stat()
    ok(api.chmod(path, **fields))
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.parametrize("mode", [489, 420 + 9, 8, 99, 7778, 10000, -1, 6.5, "644", True])
def test_what_is_no_octal_mode_is_refused_and_named(api: Api, tmp_path: Path, mode: object) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o640)
    body = refused(api.chmod(path, mode=mode), "INVALID_REQUEST_BODY", field=f"{path}.mode")
    assert "mode" in body["message"]
    assert _mode(path) == 0o640


def test_every_mode_comes_back_as_it_was_set(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "directory"
    path.mkdir()

    @given(mode=st.integers(1, 0o7777))
    @settings(max_examples=100, deadline=None, database=None)
    def round_trip(mode: int) -> None:
        digits = int(f"{mode:o}")
        ok(api.chmod(path, mode=digits))
        assert _mode(path) == mode
        assert api.info(path).json()[str(path)]["mode"] == digits

    round_trip()


@root_only
@pytest.mark.parametrize(("owner", "uid"), [(NOBODY.pw_name, 65534), ("0", 0), ("54321", 54321)])
def test_an_owner_and_a_group_are_a_name_or_a_number(api: Api, tmp_path: Path, owner: str, uid: int) -> None:
    path = tmp_path / "file"
    path.touch()
    group = grp.getgrgid(uid).gr_name if uid != 54321 else "54322"
    ok(api.chmod(path, owner=owner, group=group))
    info = path.stat()
    assert (info.st_uid, info.st_gid) == (uid, 54322 if uid == 54321 else uid)
    ok(api.chmod(path, group="7"))
    assert (path.stat().st_uid, path.stat().st_gid) == (uid, 7)


@root_only
def test_a_mode_with_set_user_id_survives_a_new_owner(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    ok(api.chmod(path, mode=6755, owner="65534", group="65534"))
    assert (_mode(path), path.stat().st_uid) == (0o6755, 65534)


@pytest.mark.parametrize("field", ["owner", "group"])
@pytest.mark.parametrize("name", ["nosuch", "-1", "4294967295", "1.5", "root root", "ünknown", "٣"])
def test_an_unknown_name_is_refused_and_told(api: Api, tmp_path: Path, field: str, name: str) -> None:
    path = tmp_path / "file"
    path.touch()
    body = refused(api.chmod(path, **{field: name}), "INVALID_REQUEST_BODY", field=f"{path}.{field}")
    assert repr(name) in body["message"]


def test_a_symlink_means_what_it_points_at(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    ok(api.chmod(tmp_path / "link", mode=604))
    assert _mode(tmp_path / "file") == 0o604
    refused(api.chmod(tmp_path / "dangling", mode=604), "FILE_NOT_FOUND")


def test_files_of_any_kind_have_permissions_and_none_is_opened(api: Api, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "secret").touch(mode=0)
    for name in ("fifo", "secret"):
        ok(api.chmod(tmp_path / name, mode=222))
        assert _mode(tmp_path / name) == 0o222


def test_what_belongs_to_another_is_forbidden(user: Api) -> None:
    refused(user.chmod("/etc/passwd", mode=644), "PERMISSION_DENIED", errno="EPERM", done=[])
    with open_directory() as top:
        ok(user.mkdir(top / "mine"))
        refused(user.chmod(top / "mine", owner="root"), "PERMISSION_DENIED", errno="EPERM")
        ok(user.chmod(top / "mine", mode=700))
        assert _mode(top / "mine") == 0o700


def test_no_umask_takes_anything_from_a_mode(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with daemon(wrapper=("sh", "-c", 'umask 077; exec "$@"', "sh")) as running:
        ok(Api(running).chmod(tmp_path / "file", mode=777))
    assert _mode(tmp_path / "file") == 0o777
