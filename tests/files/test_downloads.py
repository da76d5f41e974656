"""Downloads of files of every kind and name, and what is refused."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.ways_of_downloads import UNPRIVILEGED
from tests.support.contract import assert_canonical_error, assert_documented
from tests.support.live import Daemon, daemon, wait_until

MIB = 1 << 20
NAMES = [
    b"plain.txt",
    b"with space",
    '数据 "q".txt'.encode(),
    b"new\nline\r\nSet-Cookie: a=b",
    b"back\\slash",
    b"per%41cent",
    b"semi;colon=,'*",
    b"\xff\xfe.bin",
    b"caf\xc3\xa9 \xff",
    b"\x01\x7f\t",
    b"-rf",
    b"x" * 255,
    "漢".encode() * 85,
]


def _get(running: Daemon, path: str | bytes | Path, **headers: str) -> httpx.Response:
    query = urllib.parse.quote_from_bytes(os.fsencode(path))
    answer = running.client.get(f"/files/download?path={query}", headers=headers)
    assert_documented("GET", "/files/download", answer)
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_sent_under_a_name_that_is_safe(
    live: Daemon, tmp_path: Path, name: bytes
) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
    answer = _get(live, os.fsencode(tmp_path) + b"/" + name)
    assert (answer.status_code, answer.content) == (200, name)
    assert "set-cookie" not in answer.headers
    disposition = answer.headers["content-disposition"]
    found = re.fullmatch(
        r"attachment; filename=\"([ -!#-\[\]-~]*)\"(?:; filename\*=UTF-8''(\S*))?", disposition
    )
    assert found, disposition
    plain, extended = found.groups()
    text = name.decode(errors="replace")
    assert len(plain) == len(os.fsdecode(name))
    assert (plain if extended is None else urllib.parse.unquote(extended, errors="strict")) == text


def test_the_answer_has_all_that_a_client_needs_to_go_on_later(live: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"hello")
    os.utime(path, (10**9, 10**9))
    answer = _get(live, path)
    assert answer.content == b"hello"
    kept = ("content-type", "content-length", "accept-ranges", "last-modified", "content-disposition")
    assert {name: answer.headers[name] for name in kept} == {
        "content-type": "application/octet-stream",
        "content-length": "5",
        "accept-ranges": "bytes",
        "last-modified": "Sun, 09 Sep 2001 01:46:40 GMT",
        "content-disposition": 'attachment; filename="file"',
    }
    assert answer.headers["etag"].startswith('"')


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 5])
def test_head_says_what_get_would(live: Daemon, tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    get = _get(live, path)
    assert get.content == path.read_bytes()
    head = live.client.head("/files/download", params={"path": str(path)})
    for name in set(get.headers) - {"x-request-id", "date"}:
        assert head.headers[name] == get.headers[name]
    assert head.content == b""


def test_a_symlink_is_followed_and_the_name_is_the_one_asked_for(live: Daemon, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"content")
    (tmp_path / "link").symlink_to("target")
    answer = _get(live, tmp_path / "link")
    assert answer.content == b"content"
    assert answer.headers["content-disposition"] == 'attachment; filename="link"'
    (tmp_path / "dangling").symlink_to("nothing")
    assert_canonical_error(_get(live, tmp_path / "dangling"), "FILE_NOT_FOUND")


def test_variables_and_the_home_directory_are_known(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with daemon(env={"HOME": str(tmp_path), "WHERE": str(tmp_path)}) as running:
        for path in ("~/file", "$WHERE/file", "${WHERE}/file", f"{tmp_path}/../{tmp_path.name}/./file"):
            assert _get(running, path).content == b"content"


@pytest.fixture
def kinds(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """One of each kind that is no regular file, by what it is called."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "socket"))
        yield {
            "a directory": tmp_path,
            "a FIFO": tmp_path / "fifo",
            "a socket": tmp_path / "socket",
            "a character device": Path("/dev/zero"),
        }


def test_what_is_no_regular_file_is_refused_by_its_kind(live: Daemon, kinds: dict[str, Path]) -> None:
    for kind, path in kinds.items():
        link = kinds["a directory"] / f"link to {kind.split()[-1]}"
        link.symlink_to(path)
        for asked in (path, link):
            error = assert_canonical_error(_get(live, asked), "INVALID_FILE")
            assert error["message"].endswith(f"is {kind}")
            assert error["details"] == {"field": "path", "path": str(asked)}


def test_who_waits_to_write_to_a_fifo_is_not_disturbed(live: Daemon, kinds: dict[str, Path]) -> None:
    fifo = kinds["a FIFO"]
    code = "import sys; print('up', flush=True); open(sys.argv[1], 'wb', buffering=0).write(b'word')"
    with subprocess.Popen([sys.executable, "-c", code, fifo], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"up\n"
        wchan = Path(f"/proc/{writer.pid}/syscall")
        wait_until(lambda: wchan.read_text().startswith("257 "), what="the writer's open")  # openat(2)
        assert _get(live, fifo).status_code == 400
        assert fifo.read_bytes() == b"word"
    assert writer.returncode == 0


def test_files_that_the_kernel_makes_up_are_sent_whole(live: Daemon) -> None:
    status = _get(live, f"/proc/{live.pid}/status")
    assert b"Name:\t" in status.content
    assert status.headers["content-length"] == str(len(status.content))
    assert status.headers["accept-ranges"] == "none"
    assert "etag" not in status.headers
    assert _get(live, "/proc/version", Range="bytes=0-3").content == Path("/proc/version").read_bytes()
    head = live.client.head("/files/download", params={"path": "/proc/version"})
    assert head.headers["content-length"] == str(len(Path("/proc/version").read_bytes()))


def test_files_that_the_kernel_says_are_larger_than_they_are_are_sent_whole(live: Daemon) -> None:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not path.exists() or path.stat().st_size <= len(path.read_bytes()):
        pytest.skip("no such file in /sys here")
    for header in ({}, {"Range": "bytes=2-"}, {"Range": "bytes=1000-2000"}):
        answer = _get(live, path, **header)
        assert (answer.status_code, answer.content) == (200, path.read_bytes())
        assert "etag" not in answer.headers


def test_large_files_that_the_kernel_makes_up_come_in_chunks(live: Daemon) -> None:
    path = Path("/proc/kallsyms")
    if not path.exists() or len(path.read_bytes()) <= MIB:
        pytest.skip("no large file in /proc here")
    answer = _get(live, path)
    assert answer.content == path.read_bytes()
    assert answer.headers["transfer-encoding"] == "chunked"
    lines = path.read_bytes().split(b"\n")
    query = {"path": str(path), "offset": "70", "limit": "20000"}
    found = live.client.get("/files/download", params=query)
    assert found.content == b"\n".join(lines[69:20069])


def test_a_file_of_a_process_that_is_gone_is_not_found(live: Daemon) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert_canonical_error(_get(live, f"/proc/{gone.pid}/status"), "FILE_NOT_FOUND")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_what_the_daemon_may_not_read_is_forbidden_not_broken(tmp_path: Path) -> None:
    for directory in (tmp_path, *list(tmp_path.parents)[:-1][:2]):
        directory.chmod(0o755)
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "open").write_bytes(b"x")
    (tmp_path / "locked").mkdir(mode=0o700)
    with daemon(wrapper=UNPRIVILEGED) as running:
        assert _get(running, tmp_path / "open").content == b"x"
        for path in (tmp_path / "secret", tmp_path / "locked" / "any"):
            error = assert_canonical_error(_get(running, path), "PERMISSION_DENIED")
            assert error["details"]["errno"] == "EACCES"


def test_with_roots_only_what_is_below_them_is_sent_wherever_a_path_leads(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "rootless"
    root.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(b"secret")
    os.mkfifo(outside / "fifo")
    (root / "file").write_bytes(b"content")
    (root / "in").symlink_to(root / "file")
    (root / "out").symlink_to(outside / "file")
    (root / "away").symlink_to("..")
    with daemon("--roots", str(root)) as running:
        for path in (root / "file", root / "in", f"{root}/../root/file", f"{root}/away/root/file"):
            assert _get(running, path).content == b"content"
        for path in (
            outside / "file",
            root / "out",
            f"{root}/../rootless/file",
            f"{root}/away/rootless/file",
            outside / "fifo",
            "/proc/self/status",
            f"/proc/self/root{outside}/file",
        ):
            assert_canonical_error(_get(running, path), "PATH_NOT_ALLOWED")
