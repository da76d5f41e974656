"""An upload that fails, at whatever moment, leaves the old file as it was and nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.contract.ways_of_downloads import UNPRIVILEGED
from tests.contract.ways_of_uploads import directory
from tests.edge import raw
from tests.support.live import Daemon, daemon, wait_until
from tests.support.uploads import TYPE, body, chunks, everything, new, pair, parts, post, put, upload

MIB = 1024 * 1024
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting and changing user need root")


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A tmpfs at `place`; the test is skipped where the machine lets nobody mount."""
    place.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip(f"no mounts here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def half_sent(running: Daemon, target: Path, existing: Path, size: int) -> raw.Connection:
    """A connection on which half of an upload has been sent and received."""
    whole = pair(new(target, os.urandom(size)))
    conn = raw.Connection(running.port)
    conn.send(
        raw.request("POST", "/files/upload", f"Content-Type: {TYPE}", f"Content-Length: {len(whole) + 99}")
    )
    conn.send(whole[: len(whole) // 2])
    wait_until(lambda: scratch(running, existing), what="the file that is being written")
    return conn


def scratch(running: Daemon, directory: Path) -> list[str]:
    """What the daemon has open below a directory, directories left out."""
    found = []
    for name in os.listdir(f"/proc/{running.pid}/fd"):
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/{running.pid}/fd/{name}")
            if path.startswith(f"{directory}/") and not os.path.isdir(path):
                found.append(path)
    return found


def reset(conn: raw.Connection) -> None:
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


CUTS = {"closed": raw.Connection.close, "half-closed": raw.Connection.half_close, "reset": reset}


@pytest.mark.parametrize("size", [100_000, 8 * MIB])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_cut_connection_leaves_the_old_file_and_nothing_else(
    live: Daemon, tmp_path: Path, cut: Callable[[raw.Connection], None], size: int
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    for target in (tmp_path / "file", tmp_path / "new" / "parents" / "file"):
        conn = half_sent(live, target, tmp_path, size)
        cut(conn)
        wait_until(lambda: not scratch(live, tmp_path), what="the end of the upload")
        conn.close()
        assert everything(tmp_path) == {"file": b"old"}


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_ends_leaves_the_old_file_and_nothing_else(tmp_path: Path, sig: signal.Signals) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with daemon() as running:
        conn = half_sent(running, tmp_path / "file", tmp_path, 4 * MIB)
        running.stop(sig)
        conn.close()
    assert everything(tmp_path) == {"file": b"old"}


def test_a_client_is_told_at_once_what_is_wrong(live: Daemon, tmp_path: Path) -> None:
    with raw.connection(live.port) as conn:
        conn.send(raw.request("POST", "/files/upload", f"Content-Type: {TYPE}", "Content-Length: 999999999"))
        conn.send(pair(new(tmp_path / "f", mode=999))[:-5])  # and then it waits
        assert conn.answer("POST").error()["code"] == "INVALID_FILE_METADATA"
    with raw.connection(live.port) as conn:
        conn.send(raw.request("PUT", "/files/content?path=/etc", "Content-Length: 999999999"))
        assert conn.answer("PUT").error()["code"] == "INVALID_FILE"
    assert everything(tmp_path) == {}


def test_a_hundred_writers_of_one_file_leave_what_one_of_them_sent(live: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file"
    contents = [bytes([number]) * (50_000 + number) for number in range(100)]
    seen: set[bytes] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            with contextlib.suppress(FileNotFoundError):
                seen.add(target.read_bytes())

    def write(number: int) -> int:
        if number % 2:
            return post(live, chunks(body(pair(new(target, contents[number]))))).status_code
        return put(live, target, contents[number]).status_code

    with ThreadPoolExecutor(101) as threads:
        watcher = threads.submit(look)
        answers = list(threads.map(write, range(100)))
        ended.set()
        watcher.result()
    assert set(answers) <= {200, 201}
    assert answers.count(201) <= 1
    assert seen <= set(contents)
    assert everything(tmp_path).keys() == {"deep/", "deep/file"}
    assert target.read_bytes() in contents


STAGES = {
    "first-bytes": ("size=64k", 0),
    "halfway": ("size=2m", 0),
    "last-bytes": ("size=4m", 0),
    "no-inode-for-the-file": ("size=64m,nr_inodes=2", 1),
    "no-inode-for-a-parent": ("size=64m,nr_inodes=4", 1),
}


@needs_root
@pytest.mark.parametrize("kind", ["length", "chunked", "put", "append"])
@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    live: Daemon, tmp_path: Path, stage: tuple[str, int], kind: str
) -> None:
    options, parents = stage
    with mounted(tmp_path / "small", options) as small:
        (small / "old").write_bytes(b"old")
        free = shutil.disk_usage(small).free
        target = small / "a" / "b" / "c" if parents else small / "old"
        content = os.urandom(4 * MIB + 1000)
        answer = {
            "length": lambda: upload(live, new(target, content)),
            "chunked": lambda: post(live, chunks(body(pair(new(target, content))), 65536)),
            "put": lambda: put(live, target, chunks(content, 65536)),
            "append": lambda: put(live, target, chunks(content, 65536), query={"append": "true"}),
        }[kind]()
        assert answer.status_code == 507, answer.text
        assert answer.json()["code"] == "INSUFFICIENT_STORAGE"
        assert everything(small) == {"old": b"old"}
        assert shutil.disk_usage(small).free == free


@needs_root
def test_what_is_announced_larger_than_the_disk_is_refused_unread(live: Daemon, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=1m") as small, raw.connection(live.port) as conn:
        conn.send(raw.request("PUT", f"/files/content?path={small}/f", "Content-Length: 2000000"))
        assert conn.answer("PUT").error()["code"] == "INSUFFICIENT_STORAGE"
    with mounted(tmp_path / "small", "size=1m") as small:
        good, large = new(small / "good"), new(small / "large", bytes(10))
        whole = pair(good) + pair(large).replace(b'name="file"', b'name="file"\r\nContent-Length: 2000000')
        answer = post(live, whole)
        assert answer.status_code == 507
        assert answer.json()["details"]["done"] == [str(good.path)]
        assert everything(small) == {"good": b"new"}


@needs_root
def test_a_full_disk_in_the_middle_of_many_files_says_which_were_written(
    live: Daemon, tmp_path: Path
) -> None:
    with mounted(tmp_path / "small", "size=1m") as small:
        files = [new(small / f"{number}", os.urandom(8192)) for number in range(300)]
        answer = post(live, chunks(body(*map(pair, files)), 65536))
        assert answer.status_code == 507
        done = answer.json()["details"]["done"]
        assert 0 < len(done) < 256
        assert done == [str(file.path) for file in files[: len(done)]]
        assert {small / name for name in everything(small)} == {Path(name) for name in done}
        assert all(Path(file.path).read_bytes() == file.content for file in files[: len(done)])


@needs_root
def test_a_read_only_disk_is_forbidden(live: Daemon, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=1m") as small:
        (small / "old").write_bytes(b"old")
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        for answer in (
            upload(live, new(small / "old")),
            put(live, small / "new"),
            put(live, small / "a" / "b"),
        ):
            assert (answer.status_code, answer.json()["details"]["errno"]) == (403, "EROFS")
        assert everything(small) == {"old": b"old"}


@needs_root
def test_as_another_user_only_what_it_may_write_is_written() -> None:
    with directory() as place:  # pytest's own are closed to others
        place.chmod(0o777)
        _as_another_user(place)


def _as_another_user(place: Path) -> None:
    for name, file_mode, owner in (("root", 0o666, 0), ("locked", 0o444, 65534), ("own", 0o640, 65534)):
        (place / name).write_bytes(b"old")
        (place / name).chmod(file_mode)
        os.chown(place / name, owner, owner)
    with daemon(wrapper=UNPRIVILEGED) as running:
        refused: list[httpx.Response] = [
            put(running, place / "root"),  # it cannot be given to root again
            put(running, place / "locked"),
            put(running, place / "given", query={"owner": "0"}),
            put(running, "/etc/execd-never"),
        ]
        assert [answer.status_code for answer in refused] == [403] * 4
        assert "owner" in refused[0].json()["message"]
        assert put(running, place / "own").status_code == 200
        assert put(running, place / "made").status_code == 201
        answer = put(running, place / "root", b"more", query={"append": "true"})
        assert answer.status_code == 200
    assert everything(place) == {
        "root": b"oldmore",
        "locked": b"old",
        "own": b"new",
        "made": b"new",
    }
    assert (place / "own").stat().st_mode & 0o777 == 0o640


def test_the_next_request_on_a_connection_is_answered_after_a_refusal(live: Daemon, tmp_path: Path) -> None:
    with httpx.Client(base_url=live.url, trust_env=False) as client:
        for _ in range(3):
            answer = client.post("/files/upload", files=parts(new("/etc", os.urandom(3 * MIB))))
            assert answer.status_code == 400
            assert client.put(f"/files/content?path={tmp_path}/f", content=b"x").is_success
