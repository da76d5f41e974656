"""The C programs of this directory in Python, for a machine without a compiler. Same names, arguments and
output; slower, so that what is measured against them looks better than it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable

ANSWER_END = b"0\r\n\r\n"


def main() -> None:
    """`fallback.py TOOL ARGUMENT...`"""
    tool, *arguments = sys.argv[1:]
    if tool in _SERVERS:
        _SERVERS[tool](*arguments)
    else:
        print(json.dumps(_MEASURES[tool](*arguments)))


def spawn(count: str, *argv: str) -> dict[str, float]:
    """A bare spawn-read-reap loop."""
    took, begun = [], time.perf_counter()
    for _ in range(int(count)):
        started = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.PIPE, check=True, process_group=0)
        took.append(time.perf_counter() - started)
    seconds = time.perf_counter() - begun
    return {
        **_times(took),
        "rate": len(took) / seconds,
        "child_cpu_ms": _cpu(resource.RUSAGE_CHILDREN) / len(took) * 1e3,
        "own_cpu_ms": _cpu(resource.RUSAGE_SELF) / len(took) * 1e3,
    }


def ticker(count: str, gap: str) -> None:
    """Lines that say when they were written."""
    for _ in range(int(count)):
        os.write(1, b"T%d\n" % time.monotonic_ns())
        time.sleep(int(gap) / 1e6)


def arrival(address: str, port: str = "", request: str = "") -> dict[str, float]:
    """How old ticker's lines are when they arrive."""
    sock = None if address == "-" else _connect(address, port)
    if sock:
        sock.sendall(_file(request))
    took: list[float] = []
    rest = b""
    while data := sock.recv(65536) if sock else os.read(0, 65536):
        now = time.monotonic_ns()
        first, *others = (rest + data).split(b"T")
        complete = others[:-1]
        rest = b"T" + others[-1] if others else first[-4:]
        if others and not others[-1].isdigit():  # its number has ended
            complete, rest = others, others[-1][-4:]
        for part in complete:
            digits = part[: len(part) - len(part.lstrip(b"0123456789"))]
            if digits:
                took.append((now - int(digits)) / 1e9)
        if sock and data.endswith(ANSWER_END):
            break
    return {**_times(took), "count": len(took)}


def stream(address: str, port: str, request: str, rate: str, stay: str) -> dict[str, float]:
    """Read one answer: at full speed, at `rate` bytes a second, or (-1) not at all."""
    sock = _connect(address, port)
    limit, seconds, begun = float(rate), float(stay), time.perf_counter()
    size = newlines = escapes = 0
    first, tail, ended = 0.0, b"", False
    sock.sendall(_file(request))
    while data := sock.recv(int(limit / 20) + 1 if 0 < limit < 1 << 18 else 1 << 18):
        first = first or time.perf_counter()
        size += len(data)
        newlines += data.count(b"\n")
        escapes += data.count(b"\\n") + (tail[-1:] == b"\\" and data[:1] == b"n")
        tail = (tail + data)[-1024:]
        if tail.endswith(ANSWER_END):
            ended = True
            break
        elapsed = time.perf_counter() - begun
        time.sleep(max(0.0, seconds - elapsed if limit < 0 else size / limit - elapsed if limit else 0.0))
        if seconds and time.perf_counter() - begun >= seconds:
            break
    return {
        "bytes": size,
        "newlines": newlines,
        "escapes": escapes,
        "seconds": time.perf_counter() - begun,
        "first_ms": (first - begun) * 1e3,
        "ended": int(ended),
        "complete": int(b"execution_complete" in tail),
        "cpu_seconds": _cpu(resource.RUSAGE_SELF),
    }


class Connection:
    """One of load's connections: what it sent when, and what it has of the answer."""

    def __init__(self, address: str, port: str, selector: selectors.BaseSelector) -> None:
        self.sock = _connect(address, port)
        self.sent = 0.0
        self.data = b""
        selector.register(self.sock, selectors.EVENT_READ, self)

    def ask(self, raw: bytes) -> None:
        self.sent, self.data = time.perf_counter(), b""
        self.sock.sendall(raw)

    def take(self) -> tuple[bool, bool]:
        """Read; whether some of the body is there, and whether the answer has ended."""
        self.data += self.sock.recv(65536)
        head, found, body = self.data.partition(b"\r\n\r\n")
        lowered = head.lower()
        if not found:
            return False, False
        if b"chunked" in lowered:
            return bool(body), body.endswith(ANSWER_END)
        length = lowered.partition(b"content-length:")[2].split(b"\r", 1)[0]
        return bool(body), len(body) >= int(length or 0)


def load(
    address: str, port: str, request: str, at_once: str, count: str, limit: str, gap: str, leave: str
) -> dict[str, float]:
    """One request again and again over kept connections."""
    raw, most, leaves = _file(request), int(count), leave == "1"
    selector = selectors.DefaultSelector()
    took: list[float] = []
    asked = refused = left = 0
    begun = time.perf_counter()
    for _ in range(min(int(at_once), most)):
        Connection(address, port, selector).ask(raw)
        asked += 1
    while len(took) < asked:
        for key, _ in selector.select(60):
            connection: Connection = key.data
            some, ended = connection.take()
            if not ended and not (leaves and some):
                continue
            took.append(time.perf_counter() - connection.sent)
            refused += connection.data[9:12] != b"200"
            if leaves:
                selector.unregister(connection.sock)
                connection.sock.close()
                left += 1
            if asked >= most or time.perf_counter() - begun >= float(limit):
                continue
            time.sleep(int(gap) / 1e6)
            (Connection(address, port, selector) if leaves else connection).ask(raw)
            asked += 1
    seconds = time.perf_counter() - begun
    rate = len(took) / seconds
    return {
        **_times(took),
        "rate": rate,
        "count": len(took),
        "refused": refused,
        "left": left,
        "seconds": seconds,
    }


def writer() -> None:
    """Answers every request with an empty 200; ends with its stdin."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listening, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                return
            if key.fileobj is listening:
                selector.register(listening.accept()[0], selectors.EVENT_READ)
                continue
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            with contextlib.suppress(OSError):
                if sock.recv(65536):
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    continue
            selector.unregister(sock)
            sock.close()


def files(path: str) -> None:
    """A file server with ranges: one thread, sendfile."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listening.getsockname()[1], flush=True)
    selector = selectors.DefaultSelector()
    selector.register(listening, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listening:
                selector.register(listening.accept()[0], selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket) and not _send_file(key.fileobj, path):
                selector.unregister(key.fileobj)
                key.fileobj.close()


def _send_file(sock: socket.socket, path: str) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        asked = sock.recv(65536)
        if not asked:
            return False
        first, last = 0, os.fstat(file.fileno()).st_size - 1
        if b"Range: bytes=" in asked:
            numbers = asked.split(b"Range: bytes=")[1].split(b"\r\n")[0]
            first, last = map(int, numbers.split(b"-"))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (last + 1 - first))
        sock.sendfile(file, first, last + 1 - first)
        return True
    return False


def send(address: str, port: str, request: str, tail: str, size: str) -> dict[str, float]:
    """A request, made-up content and a tail; then the head of the answer."""
    before, after, content = _file(request), _file(tail), os.urandom(1 << 20)
    sock = _connect(address, port)
    begun = time.perf_counter()
    sock.sendall(before)
    for left in range(int(size), 0, -len(content)):
        sock.sendall(content[:left])
    sock.sendall(after)
    status = int(sock.recv(4096)[9:12])
    return {
        "seconds": time.perf_counter() - begun,
        "status": status,
        "cpu_seconds": _cpu(resource.RUSAGE_SELF),
    }


def sink(path: str) -> None:
    """Writes the body of every request to one file."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=16)
    print(listening.getsockname()[1], flush=True)
    while True:
        with listening.accept()[0] as sock, open(path, "wb") as file:
            head, _, data = sock.recv(1 << 18).partition(b"\r\n\r\n")
            left = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            while (left := left - file.write(data)) > 0 and data:
                data = sock.recv(1 << 18)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def walk(what: str, root: str, count: str = "0", per_directory: str = "0") -> dict[str, float]:
    """Makes a tree, or walks one: names only, or with lstat and JSON."""
    began, seen = time.monotonic(), 0
    if what == "make":
        for number in range(int(count)):
            directory = os.path.join(
                root, f"d{number // int(per_directory):06}" if int(per_directory) else ""
            )
            os.makedirs(directory, exist_ok=True)
            os.mknod(os.path.join(directory, f"file{number * 7919 % int(count):07}.txt"))
    todo = [root] if what != "make" else []
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                seen += 1
                if what == "full":
                    info = entry.stat(follow_symlinks=False)
                    json.dumps({"path": entry.path, "size": info.st_size, "modified_at": info.st_mtime_ns})
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
    return {"count": seen, "seconds": time.monotonic() - began, "cpu_seconds": _cpu(resource.RUSAGE_SELF)}


def _connect(address: str, port: str) -> socket.socket:
    sock = socket.create_connection((address, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _times(took: list[float]) -> dict[str, float]:
    took.sort()
    last = len(took) - 1
    parts = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
    return {
        name: took[min(last, int(len(took) * part))] * 1e3 if took else -1.0 for name, part in parts.items()
    }


_SERVERS: dict[str, Callable[..., None]] = {"ticker": ticker, "writer": writer, "files": files, "sink": sink}
_MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "send": send,
    "spawn": spawn,
    "arrival": arrival,
    "stream": stream,
    "load": load,
    "walk": walk,
}

if __name__ == "__main__":
    main()
