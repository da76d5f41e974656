"""DELETE /directories: whole trees, and never anything that is not in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.files import Api, deep, ok, open_directory, refused, root_only, snapshot
from tests.support.live import daemon


def test_a_tree_goes_and_what_its_links_point_at_stays(api: Api, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "inner" / "file").write_bytes(b"kept")
    top = tmp_path / "tree"
    (top / "a" / "b").mkdir(parents=True)
    targets = [str(outside), f"{outside}/inner/file", "../../..", "/", ".", "nowhere"]
    for number, target in enumerate(targets):
        (top / "a" / str(number)).symlink_to(target)
    (top / "a" / "b" / os.fsdecode(b"\xff\n-rf")).touch()
    os.mkfifo(top / "fifo")
    before = snapshot(outside)
    ok(api.rmdir(top, tmp_path / "missing", tmp_path / "no" / "parent"))
    assert os.listdir(tmp_path) == ["outside"]
    assert snapshot(outside) == before


@pytest.mark.parametrize("name", ["/", "//", "///", "/.", "/..", "/../..", "/etc/..", "/nowhere/.."])
def test_the_root_directory_is_refused_by_every_name(api: Api, tmp_path: Path, name: str) -> None:
    (tmp_path / "tree").mkdir()
    refused(api.rmdir(tmp_path / "tree", name), "INVALID_FILE", path=name, errno="EBUSY")
    assert (tmp_path / "tree").exists()


def test_a_link_to_the_root_directory_leads_nowhere_but_dots_behind_it_are_refused(
    api: Api, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/")
    refused(api.rmdir(f"{tmp_path}/link/."), "INVALID_FILE")
    refused(api.rmdir(f"{tmp_path}/link/tmp/.."), "INVALID_FILE")
    ok(api.rmdir(tmp_path / "link"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_symlink_as_the_path_goes_itself(api: Api, tmp_path: Path, slash: str) -> None:
    (tmp_path / "kept" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("kept")
    ok(api.rmdir(f"{tmp_path}/link{slash}"))
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == ["inner"]


def test_a_file_is_refused_and_then_nothing_goes(api: Api, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tree").mkdir()
    refused(api.rmdir(tmp_path / "tree", tmp_path / "file"), "INVALID_FILE", errno="ENOTDIR")
    assert sorted(os.listdir(tmp_path)) == ["file", "tree"]


def test_dots_name_the_directory_that_they_lead_to(api: Api, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    ok(api.rmdir(f"{tmp_path}/a/b/.", f"{tmp_path}/a/../c"))
    assert os.listdir(tmp_path) == ["a"]
    ok(api.rmdir(f"{tmp_path}/a/."))
    assert os.listdir(tmp_path) == []


def test_thousands_of_levels_go_with_few_descriptors(fast: Path) -> None:
    fd = deep(fast / "tree", 3000)
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.symlink("/", "link", dir_fd=fd)
    os.close(fd)
    with daemon(wrapper=("prlimit", "--nofile=64")) as running:
        ok(Api(running).rmdir(fast / "tree"))
    assert os.listdir(fast) == []


def test_fifty_thousand_files_go_in_bounded_memory(fast: Path) -> None:
    (fast / "tree").mkdir()
    for number in range(50_000):
        os.close(os.open(f"{fast}/tree/{number:0100}", os.O_CREAT | os.O_WRONLY))
    with daemon() as running:
        before = running.rss_bytes()
        ok(Api(running).rmdir(fast / "tree"))
        assert running.rss_bytes() - before < 8_000_000
    assert os.listdir(fast) == []


def test_what_is_mounted_below_is_not_entered(api: Api, tmp_path: Path) -> None:
    volume, mounted = tmp_path / "volume", tmp_path / "tree" / "mounted"
    mounted.mkdir(parents=True)
    volume.mkdir()
    (volume / "precious").write_bytes(b"kept")
    if os.system(f"mount --bind {volume} {mounted} 2>/dev/null"):
        pytest.skip("nothing can be mounted here")
    try:
        refused(api.rmdir(tmp_path / "tree"), "INVALID_FILE", errno="EXDEV")
        refused(api.rmdir(mounted), "INVALID_FILE", errno="EXDEV")
        assert (volume / "precious").read_bytes() == b"kept"
    finally:
        assert os.system(f"umount {mounted}") == 0
    ok(api.rmdir(tmp_path / "tree"))


def test_the_machine_s_own_directories_are_not_emptied(api: Api) -> None:
    before = os.listdir("/proc/self")
    refused(api.rmdir("/proc"), "INVALID_FILE", errno="EXDEV")
    assert os.listdir("/proc/self") == before


@root_only
def test_without_the_right_it_is_told_and_what_went_before_is_told(user: Api) -> None:
    with open_directory() as top:
        ok(user.mkdir(top / "mine" / "inner"))
        (top / "theirs" / "inner").mkdir(parents=True)
        (top / "theirs" / "inner" / "file").touch()
        (top / "locked").mkdir()
        (top / "locked" / "inner").mkdir()
        asked = (top / "mine", top / "locked" / "inner")
        refused(user.rmdir(*asked), "PERMISSION_DENIED", errno="EACCES", path=str(asked[1]))
        assert (top / "mine" / "inner").exists()
        body = refused(user.rmdir(top / "mine", top / "theirs"), "PERMISSION_DENIED", errno="EACCES")
        assert body["details"]["done"] == [str(top / "mine")]
        assert (top / "theirs" / "inner" / "file").exists()
        assert not (top / "mine").exists()
        ok(user.rmdir(top / "locked" / "missing"))
