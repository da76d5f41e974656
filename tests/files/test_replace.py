"""POST /files/replace: bytes for bytes, each file as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from execd.errors import Conflict
from execd.models.files import Replacement
from execd.posix import replacing
from execd.services import replacements
from tests.support.files import Api, as_user, leftovers, ok, open_directory, refused, root_only
from tests.support.live import daemon


def test_every_match_is_replaced_and_the_answer_is_empty(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one two one twoone")
    ok(api.replace(path, "one", "1"))
    assert path.read_text() == "1 two 1 two1"


def test_verbose_counts_by_the_names_that_were_asked_for(api: Api, tmp_path: Path) -> None:
    for name, text in {"a": "x.x.x", "b": "none", "c": ""}.items():
        (tmp_path / name).write_text(text)
    wanted = {f"{tmp_path}/./{name}": {"old": "x", "new": "y"} for name in "abc"}
    answer = api.replace_all(wanted, verbose="true")
    assert answer.json() == {
        f"{tmp_path}/./a": {"replacedCount": 3},
        f"{tmp_path}/./b": {"replacedCount": 0},
        f"{tmp_path}/./c": {"replacedCount": 0},
    }
    assert (tmp_path / "a").read_text() == "y.y.y"
    ok(api.replace_all(wanted, verbose="false"))
    ok(api.replace_all({}))
    assert api.replace_all({}, verbose="true").json() == {}


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        pytest.param(b"\xff\xfe\x00caf\xc3\xa9\xff", "é", "e", id="binary-around-a-match"),
        pytest.param(b"a\r\nb\r\n", "\r\n", "\n", id="line-ends"),
        pytest.param(b"caf\xe9", "é", "e", id="latin-1-is-no-utf8"),
        pytest.param("😀😀".encode(), "😀", "😁", id="emoji"),
        pytest.param(b"aaaaa", "aa", "a", id="overlapping"),
        pytest.param(b"a\0b\0c", "\0", "", id="nul"),
        pytest.param(b"$HOME ~ `id` %s \\1", "\\1", "\\0 \\g<0> $1 &", id="nothing-is-special"),
        pytest.param(b"x", "xx", "y", id="longer-than-the-file"),
        pytest.param(b"\n" * 100_000, "\n\n", "\n", id="many"),
    ],
)
def test_it_is_bytes_replace_of_what_utf8_has(
    api: Api, tmp_path: Path, content: bytes, old: str, new: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    count = content.count(old.encode())
    answer = api.replace_all({path: {"old": old, "new": new}}, verbose="true")
    assert answer.json() == {str(path): {"replacedCount": count}}
    assert path.read_bytes() == content.replace(old.encode(), new.encode())


def test_a_file_keeps_its_mode_and_owner_and_the_link_that_leads_to_it(api: Api, tmp_path: Path) -> None:
    path, link = tmp_path / "real" / "file", tmp_path / "link"
    path.parent.mkdir()
    path.write_text("old")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(0o640)
    link.symlink_to("real/file")
    before = path.stat()
    ok(api.replace(link, "old", "new"))
    after = path.stat()
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert leftovers(tmp_path) == []


def test_other_hard_links_keep_the_old_content(api: Api, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    ok(api.replace(tmp_path / "a", "old", "new"))
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new", "old")


@pytest.mark.parametrize("edit", [("nothing", "new"), ("old", "old")])
def test_a_file_in_which_nothing_changes_is_not_touched(
    api: Api, tmp_path: Path, edit: tuple[str, str]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    before = path.stat()
    answer = api.replace_all({path: {"old": edit[0], "new": edit[1]}}, verbose="true")
    assert answer.json() == {str(path): {"replacedCount": int(edit[0] == "old")}}
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize(("expected", "fits"), [(3, True), (1, False), (0, False), (4, False), (None, True)])
def test_an_expected_count_guards_every_file(
    api: Api, tmp_path: Path, expected: int | None, fits: bool
) -> None:
    first, path = tmp_path / "first", tmp_path / "file"
    first.write_text("old")
    path.write_text("old old old")
    edits = {
        first: {"old": "old", "new": "new"},
        path: {"old": "old", "new": "new", "expected_count": expected},
    }
    answer = api.replace_all(edits)
    if fits:
        ok(answer)
        assert path.read_text() == "new new new"
    else:
        refused(answer, "COUNT_MISMATCH", path=str(path), expected=expected, count=3)
        assert (first.read_text(), path.read_text()) == ("old", "old old old")


def test_none_may_be_what_is_expected(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    ok(api.replace(tmp_path / "file", "old", "new", expected_count=0))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"old": "", "new": "x"}, "old"),
        ({"new": "x"}, "old"),
        ({"old": "x"}, "new"),
        ({"old": None, "new": "x"}, "old"),
        ({"old": "x", "new": None}, "new"),
        ({"old": "x", "new": "y", "expected_count": -1}, "expected_count"),
        ({"old": "x", "new": "y", "expected_count": 1.5}, "expected_count"),
        ({"old": "x", "new": "y", "regex": True}, "regex"),
        ({"old": 1, "new": "y"}, "old"),
    ],
)
def test_a_wrong_field_is_named(api: Api, tmp_path: Path, body: dict[str, Any], field: str) -> None:
    refused(
        api.replace_all({tmp_path / "x": body}), "INVALID_REQUEST_BODY", field=f"{tmp_path / 'x'}.{field}"
    )


def test_all_files_are_checked_before_any_is_changed(api: Api, tmp_path: Path) -> None:
    (tmp_path / "good").write_text("old")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    for bad, code in {
        tmp_path / "missing": "FILE_NOT_FOUND",
        tmp_path / "dangling": "FILE_NOT_FOUND",
        tmp_path / "no" / "parent": "FILE_NOT_FOUND",
        tmp_path: "INVALID_FILE",
        tmp_path / "fifo": "INVALID_FILE",
        "/dev/null": "INVALID_FILE",
        f"{tmp_path}/good/": "INVALID_FILE",
    }.items():
        edit = {"old": "old", "new": "new"}
        refused(api.replace_all({tmp_path / "good": edit, bad: edit}), code, path=str(bad))
        assert (tmp_path / "good").read_text() == "old"


@root_only
def test_what_may_not_be_read_or_written_is_forbidden_and_nothing_changes(user: Api) -> None:
    with open_directory() as top:
        (top / "locked").mkdir()
        for name in ("good", "read-only", "unreadable", "locked/file"):
            (top / name).write_text("old")
            os.chown(top / name, 1000, 1000)
        (top / "read-only").chmod(0o444)
        (top / "unreadable").chmod(0o222)
        for name in ("read-only", "unreadable", "locked/file"):
            edit = {"old": "old", "new": "new"}
            wanted = {top / "good": edit, top / name: edit}
            refused(user.replace_all(wanted), "PERMISSION_DENIED", path=str(top / name))
        assert (top / "good").read_text() == "old"
        assert leftovers(top) == []


@root_only
def test_a_file_whose_owner_cannot_be_kept_is_not_changed(user: Api) -> None:
    with open_directory() as top:
        (top / "theirs").write_text("old")
        (top / "theirs").chmod(0o666)
        refused(user.replace(top / "theirs", "old", "new"), "PERMISSION_DENIED")
        assert (top / "theirs").read_text() == "old"


def test_a_large_file_is_replaced_in_bounded_memory(tmp_path: Path) -> None:
    path, expected = tmp_path / "large", hashlib.sha256()
    block = (b"x" * 1000 + b"needle") * 1000
    with path.open("wb") as file:
        for _ in range(200):
            file.write(block)
            expected.update(block.replace(b"needle", b"pin"))
    with daemon() as running:
        api = Api(running)
        ok(api.replace(tmp_path / "large", "absent", ""))
        before = running.rss_bytes()
        answer = api.replace_all({path: {"old": "needle", "new": "pin"}}, verbose="true")
        assert answer.json() == {str(path): {"replacedCount": 200_000}}
        assert running.rss_bytes() - before < 16_000_000
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == expected.digest()


def test_a_disk_that_is_full_leaves_the_file_and_nothing_else(api: Api, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {small} 2>/dev/null"):
        pytest.skip("a small file system cannot be mounted here")
    try:
        for name in ("a", "b"):
            (small / name).write_text("x" * 50_000)
        edits = {small / "a": {"old": "x", "new": "y"}, small / "b": {"old": "x", "new": "y" * 10}}
        body = refused(api.replace_all(edits), "INSUFFICIENT_STORAGE", path=str(small / "b"))
        assert (body["details"]["done"], body["executed"]) == ([str(small / "a")], "executed")
        assert ((small / "a").read_text(), (small / "b").read_text()) == ("y" * 50_000, "x" * 50_000)
        assert sorted(os.listdir(small)) == ["a", "b"]
        assert os.statvfs(small).f_bfree * 4096 > 100_000
    finally:
        assert os.system(f"umount {small}") == 0


def test_of_many_edits_of_one_file_none_is_lost(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("".join(f"<{number}>" for number in range(16)))
    statuses: dict[int, int] = {}

    def edit(number: int) -> None:
        body = {str(path): {"old": f"<{number}>", "new": f"[{number}]", "expected_count": 1}}
        while statuses.get(number) in (None, Conflict.status):
            statuses[number] = api.daemon.client.post("/files/replace", json=body).status_code

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses.values()) == {200}
    assert path.read_text() == "".join(f"[{number}]" for number in range(16))


def test_small_windows_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "WINDOW", 3)
    path = tmp_path / "file"
    path.write_bytes(b"abcabcab" * 50)
    fd = os.open(path, os.O_RDONLY)
    replacer = replacing.Replacer(b"cab", b"-")
    out: list[bytes] = []
    count = replacer.replace(replacements._chunks(fd, replacer), out.append)
    os.close(fd)
    assert (b"".join(out), count) == (
        (b"abcabcab" * 50).replace(b"cab", b"-"),
        (b"abcabcab" * 50).count(b"cab"),
    )
    assert Replacement(old="a", new="").expected_count is None


def test_a_daemon_that_is_not_root_keeps_its_own_mode_and_ignores_the_umask() -> None:
    with open_directory() as top, as_user(umask=0o077) as api:
        ok(api.mkdir(top / "mine"))
        (top / "file").write_text("old")
        if os.geteuid() == 0:
            os.chown(top / "file", 1000, 1000)
        (top / "file").chmod(0o666)
        ok(api.replace(top / "file", "old", "new"))
        assert (top / "file").stat().st_mode & 0o7777 == 0o666
