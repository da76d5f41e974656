"""`PUT /files/content`: one file, compare-and-swap, append."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from execd.posix.entries import etag
from tests.support.contract import assert_documented
from tests.support.live import Daemon, daemon
from tests.support.uploads import chunks, everything, put

MIB = 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, 100_000, 5 * MIB])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_the_body_is_the_file(live: Daemon, tmp_path: Path, size: int, *, chunked: bool) -> None:
    content = os.urandom(size)
    for status in (201, 200):
        answer = put(live, tmp_path / "a" / "file", chunks(content) if chunked else content)
        assert answer.status_code == status
        assert_documented("PUT", "/files/content", answer)
        tag = etag((tmp_path / "a" / "file").stat())
        assert answer.json() == {"path": str(tmp_path / "a" / "file"), "size": size, "etag": tag}
        assert answer.headers["etag"] == tag
        assert (tmp_path / "a" / "file").read_bytes() == content


def test_mode_and_owner_are_as_asked(live: Daemon, tmp_path: Path) -> None:
    me = str(os.geteuid())
    answer = put(live, tmp_path / "f", query={"mode": "4750", "owner": me, "group": ""})
    assert answer.status_code == 201
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o4750
    assert put(live, tmp_path / "f", query={"mode": "", "owner": ""}).status_code == 200
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o4750
    assert put(live, tmp_path / "f", query={"mode": "0644"}).status_code == 200
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o644


def test_a_name_that_is_no_text_survives(live: Daemon, tmp_path: Path) -> None:
    url = f"/files/content?path={tmp_path}/%ff%0a%27%22"
    answer = live.client.put(url, content=b"x")
    assert answer.status_code == 201
    assert_documented("PUT", "/files/content", answer)
    assert answer.json()["path_encoded"].endswith("/%FF%0A%27%22")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\n'\""]
    refused = live.client.put(f"{url}/below", content=b"x")
    assert refused.status_code == 400
    assert_documented("PUT", "/files/content", refused)


def test_the_path_in_the_answer_is_the_real_one(live: Daemon, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    assert put(live, tmp_path / "link").json()["path"] == str(tmp_path / "file")
    assert put(live, f"{tmp_path}/x/../file").json()["path"] == str(tmp_path / "file")


@pytest.mark.parametrize("query", [{}, {"append": "true"}], ids=["replace", "append"])
def test_if_match_wants_the_file_as_it_is(live: Daemon, tmp_path: Path, query: dict[str, str]) -> None:
    target = tmp_path / "file"
    tag = put(live, target, b"one").headers["etag"]
    for wrong in ('"x"', f"W/{tag}", tag.strip('"'), '"x", "y"', ""):
        answer = put(live, target, b"two", query=query, headers={"If-Match": wrong})
        assert answer.status_code == (200 if not wrong else 412), wrong
        if not wrong:  # an empty list names nothing, and is as if it were not there
            tag = answer.headers["etag"]
    before = target.read_bytes()
    answer = put(live, target, b"+", query=query, headers={"If-Match": f'"x", {tag}'})
    assert answer.status_code == 200
    assert target.read_bytes() == (before + b"+" if query else b"+")
    again = put(live, target, b"-", query=query, headers={"If-Match": tag})
    assert again.status_code == 412
    assert again.json()["details"]["etag"] == answer.headers["etag"]
    assert put(live, target, b"*", query=query, headers={"If-Match": "*"}).status_code == 200
    assert put(live, tmp_path / "none", query=query, headers={"If-Match": "*"}).status_code == 412
    assert everything(tmp_path).keys() == {"file"}


@pytest.mark.parametrize("query", [{}, {"append": "true"}], ids=["replace", "append"])
def test_if_none_match_wants_no_file_or_another(live: Daemon, tmp_path: Path, query: dict[str, str]) -> None:
    target = tmp_path / "file"
    headers = {"If-None-Match": "*"}
    tag = put(live, target, b"one", query=query, headers=headers).headers["etag"]
    assert put(live, target, b"two", query=query, headers=headers).status_code == 412
    assert (
        put(live, target, b"two", query=query, headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 412
    )
    assert target.read_bytes() == b"one"
    assert put(live, target, b"two", query=query, headers={"If-None-Match": '"x"'}).status_code == 200


def test_a_change_from_outside_changes_the_tag(live: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "file"
    tag = put(live, target, b"one").headers["etag"]
    target.write_bytes(b"longer")
    assert put(live, target, headers={"If-Match": tag}).status_code == 412
    tag = etag(target.stat())
    os.utime(target, ns=(0, 0))
    assert put(live, target, headers={"If-Match": tag}).status_code == 412
    tag = etag(target.stat())
    target.rename(tmp_path / "moved")
    assert put(live, target, headers={"If-Match": tag}).status_code == 412


def test_of_many_that_swap_from_the_same_state_one_does(live: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "counter"
    put(live, target, b"0")
    lost = threading.Event()

    def add_one() -> None:
        while True:
            download = live.client.get("/files/download", params={"path": str(target)})
            value = b"%d" % (int(download.content) + 1)
            answer = put(live, target, value, headers={"If-Match": download.headers["etag"]})
            if answer.status_code == 200:
                return
            assert answer.status_code == 412
            lost.set()

    with ThreadPoolExecutor(8) as threads:
        for result in [threads.submit(add_one) for _ in range(60)]:
            result.result()
    assert target.read_bytes() == b"60"
    assert lost.is_set()


def test_of_many_that_create_one_does(live: Daemon, tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(
                lambda n: put(live, tmp_path / "f", b"%d" % n, headers={"If-None-Match": "*"}).status_code,
                range(32),
            )
        )
    assert sorted(answers) == [201] + [412] * 31
    assert int((tmp_path / "f").read_bytes()) == answers.index(201)


def test_append_adds_to_the_same_file(live: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "log"
    made = put(live, target, b"one\n", query={"append": "true", "mode": "600"})
    assert (made.status_code, target.stat().st_mode & 0o7777) == (201, 0o600)
    with target.open("rb") as reader:
        assert reader.read() == b"one\n"
        answer = put(live, target, b"two\n", query={"append": "true"})
        assert (answer.status_code, answer.json()["size"]) == (200, 8)
        assert_documented("PUT", "/files/content", answer)
        assert reader.read() == b"two\n"
    assert put(live, target, b"", query={"append": "true", "mode": "640"}).json()["size"] == 8
    assert (target.stat().st_mode & 0o7777, target.read_bytes()) == (0o640, b"one\ntwo\n")


def test_appends_at_once_are_all_there_and_none_in_another(live: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "log"
    lines = [bytes([65 + number]) * 50_000 + b"\n" for number in range(20)]
    with ThreadPoolExecutor(20) as threads:
        answers = threads.map(
            lambda line: put(live, target, line, query={"append": "true"}).status_code, lines
        )
        assert sorted(answers) == [200] * 19 + [201]
    assert sorted(target.read_bytes().splitlines(keepends=True)) == lines


def test_there_is_nothing_to_get_or_head_here(live: Daemon) -> None:
    for path, allowed in (("/files/content", "PUT"), ("/files/upload", "POST")):
        for method in ("GET", "HEAD", "DELETE"):
            answer = live.client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_a_token_is_wanted(tmp_path: Path) -> None:
    with daemon("--access-token", "right") as running:
        assert put(running, tmp_path / "f").status_code == 401
    assert everything(tmp_path) == {}
