"""Clients that go at every point of a stream: the command runs on, and nothing of the client stays."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from tests.support.following import parallel, read_until, request
from tests.support.live import Daemon, daemon, wait_until


def _abort(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def _ended(own: Daemon, path: str) -> None:
    """The command said in a file that it came to its end."""
    events = own.run(f"until [ -e {path} ]; do sleep 0.02; done; rm {path}", timeout=10_000)
    assert events[-1]["type"] == "execution_complete"


@contextlib.contextmanager
def _asked(own: Daemon, command: str) -> Iterator[socket.socket]:
    sock = socket.create_connection(("127.0.0.1", own.port), 10)
    sock.sendall(request(own, command=command))
    try:
        yield sock
    finally:
        sock.close()


MOMENTS = {
    "before init": b"",
    "after init": b'"init"',
    "after the first output": b'"first\\n"',
    "before the terminal event": b'"last\\n"',
    "after the terminal event": b'"execution_complete"',
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("leave", [socket.socket.close, _abort], ids=["closes", "aborts"])
def test_a_client_may_go_at_any_moment(
    live: Daemon, tmp_path: object, moment: str, leave: Callable[[socket.socket], None]
) -> None:
    done = f"{tmp_path}/done"
    with _asked(live, f"echo first; sleep 0.1; echo last; sleep 0.1; touch {done}") as sock:
        if MOMENTS[moment]:
            assert MOMENTS[moment] in read_until(sock, MOMENTS[moment])
        leave(sock)
    _ended(live, done)


def test_a_client_that_closes_only_its_sending_side_gets_its_answer(live: Daemon) -> None:
    with _asked(live, "echo out; exit 3") as sock:
        sock.shutdown(socket.SHUT_WR)
        rest = read_until(sock, b"0\r\n\r\n")
    assert b'"exit_code":3' in rest or rest == b""  # a stream that has begun may also end with its client


def test_nothing_stays_of_clients_that_left_mid_stream() -> None:
    with daemon() as own:
        own.run("seq 1 1000")
        before = (own.usage()["tasks"], own.usage()["watched_descriptors"], own.threads())
        descriptors = own.descriptors()

        def leave(n: int) -> None:
            with _asked(own, "echo first; sleep 0.5; seq 1 20000") as sock:
                read_until(sock, b'"first\\n"')
                if n % 2:
                    _abort(sock)

        parallel(leave, range(200), 25)
        wait_until(lambda: own.usage()["open"] == 0, 20, "their commands to end")
        wait_until(
            lambda: own.usage()["tasks"] <= before[0] and own.descriptors() <= descriptors, 10, "no trace"
        )
        assert own.usage()["watched_descriptors"] == before[1]
        assert own.threads() <= before[2] + 4  # file threads are made as they are needed
        assert own.children() == []
        own.stop()
        streams = [line for line in own.log_lines() if line.get("path") == "/command"]
        assert len(streams) == 201
        assert "error" not in {line["level"] for line in own.log_lines()}


def test_a_request_that_is_cut_short_runs_nothing(live: Daemon, tmp_path: object) -> None:
    whole = request(live, command=f"touch {tmp_path}/ran")
    before = live.usage()["records"]
    for size in (10, len(whole) // 2, len(whole) - 1):
        with socket.create_connection(("127.0.0.1", live.port), 10) as sock:
            sock.sendall(whole[:size])
    assert live.run(f"test -e {tmp_path}/ran")[-1]["exit_code"] == 1
    assert live.usage()["records"] == before + 1
