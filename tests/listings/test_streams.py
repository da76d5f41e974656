"""Listings as streams: entries as they are found, and clients that leave or do not read."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.edge import raw
from tests.support.listings import LIST, SEARCH, ask
from tests.support.live import Daemon, daemon, wait_until

FILES = 15_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose listing fills any socket: some 8 MB of JSON."""
    root = tmp_path_factory.mktemp("many")
    directories = [os.path.join(root, f"{number:03}") for number in range(30)]
    for directory in directories:
        os.mkdir(directory)
        fd = os.open(directory, os.O_RDONLY)
        for number in range(FILES // 30):
            os.mknod(f"{number:05}" + "x" * 230, dir_fd=fd)
        os.close(fd)
    return root


def unread(running: Daemon, path: Path) -> socket.socket:
    """A client that asked for a stream and reads nothing of it."""
    sock = socket.create_connection(("127.0.0.1", running.port))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    target = f"{LIST}?path={path}&depth=9&limit=100000"
    sock.sendall(raw.request("GET", target, "Accept: application/x-ndjson"))
    assert sock.recv(12) == b"HTTP/1.1 200"
    return sock


def open_directories(running: Daemon, path: Path) -> int:
    found = 0
    for fd in os.listdir(f"/proc/{running.pid}/fd"):
        try:
            found += os.readlink(f"/proc/{running.pid}/fd/{fd}").startswith(str(path))
        except OSError:
            continue  # closed meanwhile
    return found


def test_a_stream_has_the_same_entries_as_the_array(live: Daemon, many: Path) -> None:
    query = {"path": str(many), "depth": 2, "limit": 100_000, "fields": ["path", "size"]}
    stream, array = ask(live, LIST, "stream", **query), ask(live, LIST, "array", **query)
    assert len(stream.entries) == FILES + 30
    assert stream.entries == array.entries


def test_entries_come_before_the_walk_is_over(live: Daemon, many: Path) -> None:
    query = {"path": str(many), "depth": "2", "limit": "100000"}
    with live.client.stream("GET", LIST, params=query, headers={"Accept": "application/x-ndjson"}) as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        lines = answer.iter_lines()
        assert json.loads(next(lines))["path"] == f"{many}/000"
        assert open_directories(live, many) > 0
    wait_until(lambda: open_directories(live, many) == 0, what="the end of a walk without a client")


def test_a_client_that_leaves_ends_its_walk(many: Path) -> None:
    with daemon() as running:
        ask(running, LIST, path="/etc")
        before = running.descriptors()
        clients = [unread(running, many) for _ in range(20)]
        for client in clients:
            client.close()
        wait_until(lambda: running.descriptors() <= before, what="as few descriptors as before")
        assert len(ask(running, SEARCH, path=str(many), pattern="00001x*").paths) == 30
        assert "answer_broken_off" not in running.log_text()


def test_a_client_that_leaves_while_a_page_is_made_ends_its_walk(many: Path) -> None:
    with daemon() as running:
        ask(running, LIST, path="/etc")
        before = running.descriptors()
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", running.port)) as sock:
                sock.sendall(raw.request("GET", f"{LIST}?path={many}&depth=2&limit=100000"))
        wait_until(lambda: running.descriptors() <= before, what="as few descriptors as before")
        assert "request_failed" not in running.log_text()


def test_clients_that_do_not_read_hold_up_nobody_and_memory_stays(many: Path) -> None:
    with daemon() as running:
        ask(running, LIST, path=str(many))
        before = running.rss_bytes()
        clients = [unread(running, many) for _ in range(8)]  # more than there are threads for walks
        assert len(ask(running, SEARCH, path=str(many), pattern="00001x*").paths) == 30
        assert running.rss_bytes() - before < 32 * 1024 * 1024
        for client in clients:
            client.close()


def test_a_walk_rests_while_its_client_does_not_read_and_goes_on_from_there(live: Daemon, many: Path) -> None:
    client = unread(live, many)
    assert open_directories(live, many) > 0
    wait_until(lambda: open_directories(live, many) == 0, what="the rest")
    with client, client.makefile("rb") as rest:
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += rest.read1(65536)
    assert body.count(b'"mode":') == FILES + 30
    last = json.loads(body.removesuffix(b"\r\n0\r\n\r\n").splitlines()[-1])
    assert last == {"truncated": False, "reason": None, "next_cursor": None, "skipped": 0}


def test_walks_that_rest_leave_room_for_others(many: Path) -> None:
    with daemon() as running:
        clients = [unread(running, many) for _ in range(40)]  # more than may be open at once
        wait_until(lambda: open_directories(running, many) == 0, what="the rest of all")
        assert ask(running, LIST, path=str(many)).paths
        for client in clients:
            client.close()


def test_stopping_ends_streams_in_order(many: Path) -> None:
    with daemon("--graceful-shutdown-timeout", "2s") as running:
        client = unread(running, many)
        assert running.stop() == 0
        client.close()
