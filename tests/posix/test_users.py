"""Users and groups from their files."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from execd.posix import users
from execd.posix.users import User, groups_of, user_by_id


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("passwd", "group"):
        monkeypatch.setattr(users, f"_{name}", users._Table(str(tmp_path / name)))
    return tmp_path


def test_this_machine_is_read_as_libc_reads_it() -> None:
    for entry in pwd.getpwall():
        first = pwd.getpwuid(entry.pw_uid)
        assert user_by_id(entry.pw_uid) == User(first.pw_name, first.pw_uid, first.pw_gid, first.pw_dir)
        assert groups_of(entry.pw_name) == [g.gr_gid for g in grp.getgrall() if entry.pw_name in g.gr_mem]


def test_the_first_line_counts_and_broken_ones_do_not(files: Path) -> None:
    (files / "passwd").write_text(
        "# comment:x:7:7::/comment:\n\nshort:x:7\nno-gid:x:7:x:::\n"
        "me:x:7:8:Me \u2028 Myself\x85:/home/me:/bin/sh\nother:x:7:9::/other:/bin/sh\n+::::::\n"
    )
    assert user_by_id(7) == User("me", 7, 8, "/home/me")
    assert user_by_id(8) is None


def test_groups_are_those_that_list_the_name(files: Path) -> None:
    (files / "group").write_text("a:x:1:me\nb:x:2:you,me\nc:x:3:\nd:x:4:meme\nbroken\ne:x:x:me\n#f:x:6:me\n")
    assert groups_of("me") == [1, 2]
    assert groups_of("nobody") == []


def test_missing_files_have_no_users(files: Path) -> None:
    assert user_by_id(0) is None
    assert groups_of("root") == []


def test_a_change_is_seen(files: Path) -> None:
    (files / "passwd").write_text("a:x:7:7::/a:\n")
    assert user_by_id(7) == User("a", 7, 7, "/a")
    (files / "new").write_text("b:x:7:7::/b:\n")
    os.replace(files / "new", files / "passwd")
    assert user_by_id(7) == User("b", 7, 7, "/b")
    (files / "passwd").unlink()
    assert user_by_id(7) is None


def test_a_name_that_is_no_utf_8_is_not_in_the_way(files: Path) -> None:
    (files / "passwd").write_bytes(b"\xff:x:7:7::/\xfe:\nb:x:8:8::/b:\n")
    assert user_by_id(8) == User("b", 8, 8, "/b")
    found = user_by_id(7)
    assert found is not None
    assert os.fsencode(found.home) == b"/\xfe"


def test_no_more_groups_than_a_process_can_have(files: Path) -> None:
    (files / "group").write_text("".join(f"g{n}:x:{n}:me\n" for n in range(3000)))
    assert groups_of("me") == list(range(1024))
