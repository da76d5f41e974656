"""Downloads on their way: large files, slow clients, clients that leave, files that change meanwhile."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.edge import raw
from tests.support.live import Daemon, daemon, wait_until

MIB = 1 << 20


def _request(path: Path, *headers: str, version: str = "1.1", limit: int | None = None) -> bytes:
    query = {"path": str(path)} | ({} if limit is None else {"limit": str(limit)})
    target = httpx.URL("/files/download", params=query).raw_path.decode()
    return raw.request("GET", target, *headers).replace(b" HTTP/1.1\r\n", f" HTTP/{version}\r\n".encode(), 1)


def _file(directory: Path, mib: int, name: str = "large") -> Path:
    path = directory / name
    block = os.urandom(MIB)
    with path.open("wb") as file:
        for number in range(mib):
            file.write(number.to_bytes(4, "big") + block[4:])
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _received(port: int, data: bytes, buffer: int = 0, at_once: int = 1 << 18) -> tuple[int, str]:
    """Length and digest of a body, read to its announced end through a receive buffer of that size."""
    with socket.socket() as sock:
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", port))
        sock.sendall(data)
        file = sock.makefile("rb", 0)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += file.read(1) or b""
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        digest, got = hashlib.sha256(), 0
        while got < length and (piece := sock.recv(min(at_once, length - got))):
            digest.update(piece)
            got += len(piece)
        return got, digest.hexdigest()


def test_300_mib_arriveexactly_and_cost_no_memory(tmp_path: Path) -> None:
    path = _file(tmp_path, 300)
    with daemon() as running:
        _received(running.port, _request(path, "Range: bytes=0-9999999"))
        before = running.rss_bytes()
        assert _received(running.port, _request(path)) == (300 * MIB, _digest(path))
        assert running.rss_bytes() - before < 8 * MIB


def test_where_the_kernel_cannot_send_a_file_it_is_read(tmp_path: Path) -> None:
    path = _file(tmp_path, 40)
    # As of a file system without splice; a fault in the kernel's place, since none is at hand.
    code = (
        "import os, sys, errno; sys.argv = ['execd', *sys.argv[4:]]\n"
        "def refuse(*_): raise OSError(errno.EINVAL, 'no')\n"
        "os.sendfile = refuse\n"
        "from execd.cli import main\n"
        "main()"
    )
    with daemon(wrapper=(sys.executable, "-c", code)) as running:
        before = running.rss_bytes()
        assert _received(running.port, _request(path)) == (40 * MIB, _digest(path))
        assert running.rss_bytes() - before < 16 * MIB
        with raw.connection(running.port) as conn:
            for _ in range(3):
                conn.send(_request(path, "Range: bytes=7-3000000"))
                assert conn.answer().body == path.read_bytes()[7:3000001]
        descriptors = running.descriptors()
        _leave(running, path, 5)
        wait_until(lambda: running.descriptors() <= descriptors, what="the descriptors' return")


def test_a_connection_can_be_used_again_after_the_kernel_sent_a_file(live: Daemon, tmp_path: Path) -> None:
    path = _file(tmp_path, 5)
    content = path.read_bytes()
    with raw.connection(live.port) as conn:
        for start in range(3):
            conn.send(_request(path, f"Range: bytes={start}-"))
            answer = conn.answer()
            assert (answer.status, answer.body) == (206, content[start:])
            conn.send(raw.request("GET", "/ping"))
            assert conn.answer().status == 200
        conn.send(raw.request("HEAD", _request(path).split()[1].decode()))
        assert conn.answer("HEAD").header("content-length") == str(5 * MIB)


def test_requests_sent_at_once_are_answered_in_order(live: Daemon, tmp_path: Path) -> None:
    large, small = _file(tmp_path, 5), _file(tmp_path, 1, "small")
    requests = [
        _request(small),
        _request(large),
        raw.request("GET", "/ping"),
        _request(large),
        _request(small),
    ]
    with raw.connection(live.port) as conn:
        conn.send(b"".join(requests))
        bodies = [conn.answer().body for _ in requests]
    assert bodies == [small.read_bytes(), large.read_bytes(), b"", large.read_bytes(), small.read_bytes()]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_that_has_stopped_sending_gets_all_of_its_file(
    live: Daemon, tmp_path: Path, version: str
) -> None:
    path = _file(tmp_path, 20)
    for _ in range(3):
        with raw.connection(live.port) as conn:
            conn.send(_request(path, version=version))
            conn.half_close()
            assert conn.answer().body == path.read_bytes()
            assert conn.closed()


def test_one_that_stops_sending_in_mid_transfer_gets_all_of_its_file(live: Daemon, tmp_path: Path) -> None:
    path = _file(tmp_path, 30)
    with raw.connection(live.port) as conn:
        conn.send(_request(path))
        _, headers = conn.head()
        conn.half_close()
        assert conn.exactly(int(dict(headers)["content-length"])) == path.read_bytes()
        assert conn.closed()


def test_slow_readers_hold_up_nobody(tmp_path: Path) -> None:
    path = _file(tmp_path, 30)
    with daemon() as running, ThreadPoolExecutor(1) as pool:
        running.client.get("/ping")
        threads, memory = running.threads(), running.rss_bytes()
        stalled = [raw.Connection(running.port) for _ in range(20)]
        for conn in stalled:
            conn.send(_request(path))
            assert conn.head()[0] == 200
        # More of them than there are file threads, and yet others are served.
        slow = pool.submit(_received, running.port, _request(path), 4096, 1 << 14)
        for _ in range(5):
            assert _received(running.port, _request(path)) == (30 * MIB, _digest(path))
        assert slow.result(60) == (30 * MIB, _digest(path))
        assert running.threads() - threads <= 8
        assert running.rss_bytes() - memory < 24 * MIB
        for conn in stalled:
            assert conn.exactly(30 * MIB) == path.read_bytes()
            conn.close()


def test_twenty_downloads_at_once_are_all_exact(live: Daemon, tmp_path: Path) -> None:
    paths = [_file(tmp_path, 6, f"file-{number}") for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda path: _received(live.port, _request(path)), paths))
    assert found == [(6 * MIB, _digest(path)) for path in paths]


def _leave(running: Daemon, path: Path, count: int, limit: int | None = None) -> None:
    """Clients that leave in mid-transfer, half of them without a word (RST)."""
    for number in range(count):
        with raw.connection(running.port) as conn:
            conn.send(_request(path, limit=limit))
            assert conn.head()[0] == 200
            if number % 2:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def test_clients_that_leave_take_their_files_and_connections_with_them(tmp_path: Path) -> None:
    path = _file(tmp_path, 50)
    with daemon() as running:
        assert _received(running.port, _request(path))[0] == 50 * MIB
        descriptors = running.descriptors()
        _leave(running, path, 20)
        _leave(running, path, 10, limit=10**9)
        wait_until(lambda: running.descriptors() <= descriptors, what="the descriptors' return")
        assert "broken_off" not in running.log_text()
        assert '"error"' not in running.log_text()
        assert running.client.get("/ping").status_code == 200


def test_a_stop_in_mid_transfer_is_not_held_up(tmp_path: Path) -> None:
    path = _file(tmp_path, 50)
    with daemon() as running, raw.connection(running.port) as conn:
        conn.send(_request(path))
        assert conn.head()[0] == 200
        assert running.stop() == 0


def test_a_file_that_grows_is_sent_as_long_as_it_was(live: Daemon, tmp_path: Path) -> None:
    path = _file(tmp_path, 20)
    content = path.read_bytes()
    with raw.connection(live.port) as conn:
        conn.send(_request(path))
        _, headers = conn.head()
        with path.open("ab") as file:
            file.write(b"more" * MIB)
        assert conn.exactly(int(dict(headers)["content-length"])) == content
        conn.send(raw.request("GET", "/ping"))  # nothing of the rest came after it
        assert conn.answer().status == 200


@pytest.mark.parametrize("limit", [None, 10**9], ids=["bytes", "lines"])
def test_a_file_that_becomes_shorter_breaks_the_connection(tmp_path: Path, limit: int | None) -> None:
    path = _file(tmp_path, 50)
    with daemon() as running, raw.connection(running.port) as conn:
        conn.send(_request(path, limit=limit))
        _, headers = conn.head()
        os.truncate(path, MIB)
        length = int(dict(headers)["content-length"])
        assert length > 49 * MIB
        with pytest.raises(AssertionError, match="bytes came"):
            conn.exactly(length)
        wait_until(lambda: "answer_broken_off" in running.log_text(), what="the log's word about it")
        assert running.client.get("/ping").status_code == 200
