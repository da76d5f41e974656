"""POST /directories: made with all above, as asked for; what is there stays as it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.support.files import Api, as_user, ok, open_directory, refused, root_only
from tests.support.live import daemon

WAYS_TO_BE_IN_THE_WAY = ["file", "dangling", "fifo"]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _put(path: Path, kind: str) -> None:
    if kind == "file":
        path.touch()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("digits", "mode"), [(755, 0o755), (777, 0o777), (1777, 0o1777), (700, 0o700), (0, 0o755), (None, 0o755)]
)
def test_a_new_directory_has_the_mode_and_those_above_have_0755(
    api: Api, tmp_path: Path, digits: int | None, mode: int
) -> None:
    ok(api.mkdir(tmp_path / "a" / "b" / "c", mode=digits))
    assert _mode(tmp_path / "a" / "b" / "c") == mode
    assert (_mode(tmp_path / "a"), _mode(tmp_path / "a" / "b")) == (0o755, 0o755)


@pytest.mark.parametrize("umask", ["000", "022", "077", "777"])
def test_no_umask_has_a_say(tmp_path: Path, umask: str) -> None:
    with daemon(wrapper=("sh", "-c", f'umask {umask}; exec "$@"', "sh")) as running:
        ok(Api(running).mkdir(tmp_path / "a" / "b", mode=777))
        ok(Api(running).mkdir(tmp_path / "a" / "c", mode=1777))
    assert [_mode(tmp_path / name) for name in ("a", "a/b", "a/c")] == [0o755, 0o777, 0o1777]


@root_only
def test_all_new_directories_have_the_owner_and_the_old_ones_keep_theirs(api: Api, tmp_path: Path) -> None:
    ok(api.mkdir(tmp_path / "a" / "b", owner="65534", group="1234"))
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 1234)
    assert tmp_path.stat().st_uid == 0


def test_a_directory_that_is_there_stays_exactly_as_it_is(api: Api, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o701)
    (tmp_path / "link").symlink_to("there")
    before = there.stat()
    ok(
        api.mkdir(
            there, tmp_path / "link", f"{there}/.", f"{tmp_path}/link/../there", mode=777, owner="65534"
        )
    )
    assert there.stat() == before


def test_not_even_root_owned_ones_are_a_problem_for_others(user: Api) -> None:
    before = os.stat("/tmp")
    ok(user.mkdir("/tmp", "/", "/usr", mode=755))
    assert os.stat("/tmp").st_mode == before.st_mode


def test_the_set_group_id_of_a_directory_is_passed_on_unless_a_mode_is_asked(
    api: Api, tmp_path: Path
) -> None:
    tmp_path.chmod(0o2755)
    ok(api.mkdir(tmp_path / "a"))
    ok(api.mkdir(tmp_path / "b", mode=750))
    assert (_mode(tmp_path / "a"), _mode(tmp_path / "b")) == (0o2755, 0o750)


@pytest.mark.parametrize("kind", WAYS_TO_BE_IN_THE_WAY)
@pytest.mark.parametrize("below", ["", "/x", "/x/y"])
def test_what_is_no_directory_is_in_the_way(api: Api, tmp_path: Path, kind: str, below: str) -> None:
    _put(tmp_path / "thing", kind)
    path = f"{tmp_path}/thing{below}"
    refused(api.mkdir(tmp_path / "first", path), "ALREADY_EXISTS", path=path, errno="EEXIST")
    assert os.listdir(tmp_path) == ["thing"]


def test_unknown_owners_are_found_before_anything_is_made(api: Api, tmp_path: Path) -> None:
    wanted = {str(tmp_path / "a"): {}, str(tmp_path / "b"): {"owner": "nosuch"}}
    refused(api.post("/directories", wanted), "INVALID_REQUEST_BODY", field=f"{tmp_path}/b.owner")
    assert os.listdir(tmp_path) == []


def test_without_the_right_nothing_is_made(user: Api) -> None:
    with open_directory() as top:
        refused(user.mkdir(top / "a", "/usr/x/y"), "PERMISSION_DENIED", path="/usr/x/y")
        assert os.listdir(top) == []
        refused(user.mkdir(top / "a" / "b", owner="root"), "PERMISSION_DENIED", errno="EPERM")
        assert os.listdir(top) == []


def test_of_many_who_make_the_same_tree_all_succeed(api: Api, tmp_path: Path) -> None:
    statuses: list[int] = []

    def make(number: int) -> None:
        body = {f"{tmp_path}/a/b/c/d/{number % 4}": {"mode": 700}}
        statuses.append(api.daemon.client.post("/directories", json=body).status_code)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 16
    assert sorted(os.listdir(tmp_path / "a" / "b" / "c" / "d")) == ["0", "1", "2", "3"]
    assert _mode(tmp_path / "a" / "b" / "c" / "d" / "0") == 0o700
    assert _mode(tmp_path / "a" / "b" / "c") == 0o755


def test_as_deep_as_a_path_can_be(api: Api, tmp_path: Path) -> None:
    path = str(tmp_path) + "/d" * ((4095 - len(str(tmp_path))) // 2)
    ok(api.mkdir(path))
    ok(api.rmdir(tmp_path / "d"))
    assert os.listdir(tmp_path) == []


def test_one_s_own_are_made_by_a_daemon_that_is_not_root(tmp_path: Path) -> None:
    with open_directory() as top, as_user(umask=0o077) as api:
        ok(api.mkdir(top / "a" / "b", mode=1777))
        assert (_mode(top / "a"), _mode(top / "a" / "b")) == (0o755, 0o1777)
        assert (top / "a").stat().st_uid == (1000 if os.geteuid() == 0 else os.geteuid())
