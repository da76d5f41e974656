"""Whom a command may run as."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from execd.posix import identity, users
from execd.posix.identity import Identity, missing_capabilities, resolve
from tests.posix.children import finished, request
from tests.support.apart import apart

UNKNOWN = 54321
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("passwd", "group"):
        monkeypatch.setattr(users, f"_{name}", users._Table(str(tmp_path / name)))
    (tmp_path / "passwd").write_text("me:x:7001:7002::/home/me:/bin/sh\nbare:x:7003:7003:::\n")
    (tmp_path / "group").write_text("a:x:7004:me\nb:x:7005:bare,me\nown:x:7002:me\n")
    return tmp_path


def test_who_we_are_already_is_no_switch() -> None:
    assert resolve(os.geteuid(), None) is None
    assert resolve(os.geteuid(), os.getegid()) is None
    assert resolve(os.geteuid(), UNKNOWN) is not None


def test_a_user_comes_with_groups_home_and_name(files: Path) -> None:
    assert resolve(7001, None) == Identity(7001, 7002, (7002, 7004, 7005), "/home/me", "me")
    assert resolve(7001, 9) == Identity(7001, 9, (9, 7004, 7005, 7002), "/home/me", "me")
    assert resolve(7003, None) == Identity(7003, 7003, (7003, 7005), "/", "bare")


def test_a_uid_that_nobody_has_is_allowed_and_has_no_groups(files: Path) -> None:
    unknown = resolve(UNKNOWN, None)
    assert unknown == Identity(UNKNOWN, UNKNOWN, (), "/", str(UNKNOWN))
    assert resolve(UNKNOWN, 0) == Identity(UNKNOWN, 0, (), "/", str(UNKNOWN))
    assert unknown.environment == {"HOME": "/", "USER": str(UNKNOWN), "LOGNAME": str(UNKNOWN)}


@needs_root
def test_a_process_runs_as_it_with_nothing_of_ours_left(files: Path) -> None:
    command = "id -u; id -g; id -G; grep -E 'Cap(Prm|Eff)' /proc/self/status; cat /proc/self/stat"
    out, err, _ = finished(request(command, identity=resolve(7001, None), cwd="/"))
    uid, gid, groups, permitted, effective, stat = out.decode().splitlines()
    assert (uid, gid, groups) == ("7001", "7002", "7002 7004 7005"), err
    assert {permitted.split()[1], effective.split()[1]} == {"0" * 16}
    parent, group, session = stat.rsplit(")", 1)[1].split()[1:4]
    assert group == session != parent


def nothing_missing() -> None:
    assert missing_capabilities(Identity(UNKNOWN, UNKNOWN, (), "/", "x")) == []


def both_missing() -> None:
    assert missing_capabilities(Identity(UNKNOWN, UNKNOWN, (), "/", "x")) == ["CAP_SETUID", "CAP_SETGID"]
    assert missing_capabilities(Identity(os.geteuid(), UNKNOWN, (), "/", "x")) == ["CAP_SETGID"]


def setgid_missing() -> None:
    assert missing_capabilities(Identity(UNKNOWN, UNKNOWN, (), "/", "x")) == ["CAP_SETGID"]


@needs_root
def test_what_is_missing_is_named() -> None:
    apart(nothing_missing)
    apart(both_missing, "setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-all")
    apart(setgid_missing, "setpriv", "--bounding-set=-setgid", "--inh-caps=-all")


@needs_root
def test_file_access_is_checked_as_that_user_and_as_us_again_afterwards(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    groups = os.getgroups()
    with identity.file_access_as(Identity(UNKNOWN, UNKNOWN, (), "/", "x")):
        with pytest.raises(PermissionError):
            secret.read_text()
    assert secret.read_text() == "x"
    assert os.getgroups() == groups
    with identity.file_access_as(None):
        assert secret.read_text() == "x"
