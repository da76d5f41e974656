"""Streams read as they arrive, connections that are not read, and requests in parallel."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tests.support.live import Daemon

T = TypeVar("T")
R = TypeVar("R")


@contextlib.contextmanager
def following(daemon: Daemon, command: str, **fields: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """Run a command; its events, pings included, each as soon as it is there. Leaving hangs up."""
    body = {"command": command, **fields}
    headers = {"Accept": "application/x-ndjson"}
    with daemon.client.stream("POST", "/command", json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        yield (json.loads(line) for line in answer.iter_lines())


def first(events: Iterator[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The next event of that type."""
    return next(event for event in events if event["type"] == kind)


def printed_pids(events: Iterator[dict[str, Any]], count: int) -> list[int]:
    """The first `count` numbers that the command prints."""
    pids: list[int] = []
    while len(pids) < count:
        pids += map(int, first(events, "stdout")["text"].split())
    return pids


def request(daemon: Daemon, **body: Any) -> bytes:
    """`POST /command` as bytes."""
    content = json.dumps(body).encode()
    return (
        b"POST /command HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)
    )


@contextlib.contextmanager
def connection(daemon: Daemon, **body: Any) -> Iterator[socket.socket]:
    """A raw connection on which a command was asked for. Nothing is read from it."""
    with socket.create_connection(("127.0.0.1", daemon.port), 20) as sock:
        if body:
            sock.sendall(request(daemon, **body))
        yield sock


def read_until(sock: socket.socket, end: bytes, limit: int = 1 << 30) -> bytes:
    """What arrives up to `end`, or to the end of the connection."""
    got = bytearray()
    while end not in got[-len(end) - 65536 :] and len(got) < limit:
        part = sock.recv(65536)
        if not part:
            break
        got += part
    return bytes(got)


def command_id(head: bytes) -> str:
    """The id in the head of a raw answer."""
    return head.lower().split(b"x-execd-command-id: ", 1)[1].split(b"\r\n", 1)[0].decode()


def parallel(call: Callable[[T], R], arguments: Iterable[T], at_once: int) -> list[R]:
    """`call` of each argument, `at_once` at a time; the results in order."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(call, arguments))


def terminals(events: list[dict[str, Any]]) -> list[int]:
    """Where the terminal events are."""
    return [n for n, event in enumerate(events) if event["type"] in ("error", "execution_complete")]
