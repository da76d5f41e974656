"""`POST /files/upload`: what is sent is what is there, whole, with the mode and owner that were asked for."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.contract import assert_documented
from tests.support.live import Daemon, daemon
from tests.support.uploads import body, chunks, everything, new, pair, part, parts, post, upload

MIB = 1024 * 1024
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="changing owners needs root")


def random_bytes(size: int) -> bytes:
    return os.urandom(min(size, MIB)) * (size // MIB or 1)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("size", [0, 1, 17 * 1024, 19 * 1024, MIB, 64 * MIB])
def test_a_file_of_any_size_arrives_as_it_is(
    live: Daemon, tmp_path: Path, size: int, *, chunked: bool
) -> None:
    content = random_bytes(size)
    target = tmp_path / "file"
    whole = body(pair(new(target, content)))
    answer = post(live, chunks(whole, 65536) if chunked else whole)
    assert (answer.status_code, answer.content) == (200, b"")
    assert_documented("POST", "/files/upload", answer)
    assert target.stat().st_size == size
    assert digest(target) == hashlib.sha256(content).hexdigest()
    assert list(tmp_path.iterdir()) == [target]


def test_eight_at_once_do_not_mix(live: Daemon, tmp_path: Path) -> None:
    contents = [os.urandom(3 * MIB + number) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda n: upload(live, new(tmp_path / f"{n}", contents[n])).status_code, range(8))
        )
    assert answers == [200] * 8
    assert [(tmp_path / f"{number}").read_bytes() for number in range(8)] == contents


def test_two_thousand_files_in_one_request_take_little_memory(live: Daemon, tmp_path: Path) -> None:
    files = [new(tmp_path / f"{number % 7}" / f"{number}", b"%d" % number) for number in range(2000)]
    before = live.rss_bytes()
    answer = post(live, chunks(body(*map(pair, files)), 65536))
    assert answer.status_code == 200, answer.text
    assert live.rss_bytes() - before < 50 * MIB
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*/*")} == {
        f"{number}": b"%d" % number for number in range(2000)
    }


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_a_body_that_drips_is_the_same_body(live: Daemon, tmp_path: Path, size: int) -> None:
    target = tmp_path / "file"
    assert post(live, chunks(body(pair(new(target, b"\r\n--execd\r\n"))), size)).status_code == 200
    assert target.read_bytes() == b"\r\n--execd\r\n"


def test_the_same_file_twice_is_what_came_last(live: Daemon, tmp_path: Path) -> None:
    assert upload(live, *(new(tmp_path / "f", b"%d" % n) for n in range(50))).status_code == 200
    assert (tmp_path / "f").read_bytes() == b"49"


def test_a_preamble_an_epilogue_and_headers_of_no_interest_are_passed_over(
    live: Daemon, tmp_path: Path
) -> None:
    metadata = part(
        "metadata", new(tmp_path / "f").metadata, "Content-Type: application/json", filename="metadata"
    )
    file = part("file", b"new", "Content-Length: 3", "X-Other: 1", filename="../../ignored; name=x")
    assert post(live, b"preamble\r\n" + body(metadata, file) + b"epilogue").status_code == 200
    assert everything(tmp_path) == {"f": b"new"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(644, "644"), (600, "600"), (1777, "1777"), (4755, "4755"), (2750, "2750"), (None, "644"), (0, "644")],
)
def test_the_mode_is_the_one_asked_for_whatever_the_umask(
    masked: Daemon, tmp_path: Path, asked: int | None, expected: str
) -> None:
    path = tmp_path / "a" / "b" / "file"
    assert upload(masked, new(path, mode=asked, owner=None, group=None)).status_code == 200
    assert mode(path) == expected
    assert [mode(parent) for parent in path.parents[:2]] == ["755", "755"]


def test_without_a_mode_a_new_file_has_644(masked: Daemon, tmp_path: Path) -> None:
    assert upload(masked, new(tmp_path / "file")).status_code == 200
    assert mode(tmp_path / "file") == "644"


@pytest.fixture(scope="module")
def masked() -> Iterator[Daemon]:
    """A daemon with umask 077."""
    with daemon(wrapper=("sh", "-c", 'umask 077; exec "$@"', "sh")) as running:
        yield running


@pytest.mark.parametrize("old", [0o600, 0o4755, 0o1644, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(live: Daemon, tmp_path: Path, old: int) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    target.chmod(old)
    answer = upload(live, new(target))
    assert answer.status_code == (200 if ROOT or old & 0o200 else 403)
    assert mode(target) == f"{old:o}"
    if answer.status_code == 200:
        assert upload(live, new(target, mode=640)).status_code == 200
        assert mode(target) == "640"


@needs_root
def test_a_file_that_is_replaced_keeps_its_owner_as_far_as_no_other_is_named(
    live: Daemon, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    cases: list[tuple[dict[str, Any], tuple[int, int]]] = [
        ({}, (1234, 2345)),
        ({"owner": "0"}, (0, 2345)),
        ({"group": "77"}, (0, 77)),
        ({"owner": "nobody", "group": ""}, (65534, 77)),
    ]
    for fields, expected in cases:
        if not target.exists():
            target.write_bytes(b"old")
            os.chown(target, 1234, 2345)
        assert upload(live, new(target, **fields)).status_code == 200
        assert (target.stat().st_uid, target.stat().st_gid) == expected


@needs_root
def test_missing_parents_get_the_owner_and_those_that_exist_stay(live: Daemon, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(0o700)
    target = there / "a" / "b" / "file"
    assert upload(live, new(target, owner="1000", group="1001", mode=600)).status_code == 200
    owners = [(path.stat().st_uid, path.stat().st_gid) for path in (target, *target.parents[:3])]
    assert owners == [(1000, 1001)] * 3 + [(0, 0)]
    assert [mode(path) for path in target.parents[:3]] == ["755", "755", "700"]


@pytest.mark.parametrize(
    "name", ["a'b", 'a"b', "a\nb", "a b;touch x", "數據🌍", "-rf", "%2e%2e", "a\\b", ".hidden"]
)
def test_any_name_is_a_name(live: Daemon, tmp_path: Path, name: str) -> None:
    assert upload(live, new(tmp_path / name, b"x")).status_code == 200
    assert everything(tmp_path) == {name: b"x"}


def test_variables_and_the_home_directory_are_expanded(tmp_path: Path) -> None:
    with daemon(env={"HOME": str(tmp_path), "WORK": str(tmp_path / "work")}) as running:
        files = [new("~/a"), new("$WORK/b"), new("${WORK}/c/d")]
        assert upload(running, *files).status_code == 200
    assert everything(tmp_path) == {
        "a": b"new",
        "work/": b"",
        "work/b": b"new",
        "work/c/": b"",
        "work/c/d": b"new",
    }


def test_a_symlink_leads_to_the_file_that_is_written(live: Daemon, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"old")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "dir" / ".." / "real" / "file")
    (tmp_path / "dir").symlink_to("real")  # its `..` is tmp_path, as the kernel sees it
    (tmp_path / "dangling").symlink_to("real/new")
    assert upload(live, new(tmp_path / "one", b"1"), new(tmp_path / "dangling", b"2")).status_code == 200
    assert everything(tmp_path / "real") == {"file": b"1", "new": b"2"}
    assert os.readlink(tmp_path / "one") == "two"


def test_files_before_the_one_that_is_refused_are_written_and_named(live: Daemon, tmp_path: Path) -> None:
    good = [new(tmp_path / f"{number}") for number in range(40)]
    for bad in (new(tmp_path / "bad", mode=489), new(tmp_path), new(tmp_path / "bad", owner="nosuch")):
        answer = upload(live, *good, bad, new(tmp_path / "after"))
        error = answer.json()
        assert answer.status_code == 400
        assert (error["executed"], error["retryable"]) == ("executed", False)
        assert error["details"]["done"] == [str(file.path) for file in good]
        assert_documented("POST", "/files/upload", answer)
        assert sorted(everything(tmp_path)) == sorted(f"{number}" for number in range(40))


def test_a_pair_that_is_not_complete_is_not_written(live: Daemon, tmp_path: Path) -> None:
    one, two = new(tmp_path / "1"), new(tmp_path / "2")
    answer = post(live, body(pair(one), part("metadata", two.metadata)))
    assert answer.status_code == 400
    assert answer.json()["details"]["done"] == [str(one.path)]
    answer = post(live, body(pair(two), part("file", b"alone")))
    assert answer.status_code == 400
    assert answer.json()["details"]["done"] == [str(two.path)]
    assert everything(tmp_path) == {"1": b"new", "2": b"new"}


def test_the_size_of_a_json_body_is_no_limit_here(tmp_path: Path) -> None:
    with daemon("--max-body", "1KiB") as running:
        answer = running.client.post("/files/upload", files=parts(new(tmp_path / "f", bytes(100_000))))
        assert answer.status_code == 200
        answer = running.client.put(f"/files/content?path={tmp_path}/g", content=bytes(100_000))
        assert answer.status_code == 201
    assert (tmp_path / "f").stat().st_size == (tmp_path / "g").stat().st_size == 100_000


def test_a_token_is_wanted_before_anything_is_read(tmp_path: Path) -> None:
    with daemon("--access-token", "right") as running:
        assert upload(running, new(tmp_path / "f")).status_code == 401
        answer = upload(running, new(tmp_path / "f"), headers={"X-EXECD-ACCESS-TOKEN": "right"})
        assert answer.status_code == 200
    assert everything(tmp_path) == {"f": b"new"}
