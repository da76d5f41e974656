"""An HTTP/1.1 client of a few lines that sends exactly what it is told to, and reads answers strictly."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HOST = b"Host: sandbox\r\n"


@dataclass(frozen=True)
class Answer:
    """One answer: `headers` in their order, names in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Its only value, or None; a header that comes twice is an error."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1, self.headers
        return values[0] if values else None

    def error(self) -> dict[str, Any]:
        """The body, which must be an error in the one shape."""
        assert self.header("content-type") == "application/json"
        body: dict[str, Any] = json.loads(self.body)
        assert set(body) - {"details"} == {"code", "message", "retryable", "executed"}
        assert body["code"]
        assert body["message"]
        return body


class Connection:
    """One TCP connection. Reading fails after `timeout` seconds without a byte."""

    def __init__(self, port: int, timeout: float = 20.0) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self._file = self.sock.makefile("rb")

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._file.close()
        self.sock.close()

    def answer(self, method: str = "GET") -> Answer:
        """The next answer, interim (1xx) ones included; the body as its framing says."""
        status, headers = self.head()
        fields = dict(headers)
        body = b""
        if method == "HEAD" or status < 200 or status in (204, 304):
            pass
        elif "transfer-encoding" in fields:
            assert "content-length" not in fields
            body = b"".join(self.chunks())
        elif "content-length" in fields:
            body = self.exactly(int(fields["content-length"]))
        else:
            body = self._file.read()
        return Answer(status, headers, body)

    def head(self) -> tuple[int, list[tuple[str, str]]]:
        """Status and headers of the next answer; its body comes next."""
        line = self._line()
        assert line.startswith(b"HTTP/1.1 "), line
        headers = []
        while field := self._line():
            name, _, value = field.decode("latin-1").partition(":")
            headers.append((name.lower(), value.strip()))
        return int(line[9:12]), headers

    def chunks(self) -> Iterator[bytes]:
        """The chunks of a chunked body; ends after the last one, with nothing read beyond it."""
        while size := int(self._line(), 16):
            yield self.exactly(size)
            assert self._line() == b""
        assert self._line() == b""

    def closed(self) -> bool:
        """True if the server closes without another byte; raises TimeoutError if it does neither."""
        try:
            return self._file.read(1) == b""
        except ConnectionError:
            return True

    def _line(self) -> bytes:
        line = self._file.readline(1 << 20)
        assert line.endswith(b"\r\n"), f"the connection ended within a line: {line!r}"
        return line[:-2]

    def exactly(self, size: int) -> bytes:
        """So many bytes; fewer are an error."""
        data = self._file.read(size)
        assert len(data) == size, f"{len(data)} of {size} bytes came"
        return data


@contextlib.contextmanager
def connection(port: int, timeout: float = 20.0) -> Iterator[Connection]:
    """A connection that is closed at the end of the block."""
    conn = Connection(port, timeout)
    try:
        yield conn
    finally:
        conn.close()


def request(method: str, target: str, *headers: str, body: bytes | None = None) -> bytes:
    """A request, with Content-Length if there is a body."""
    lines = [f"{method} {target} HTTP/1.1", "Host: sandbox", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def command(text: str, *headers: str, **fields: Any) -> bytes:
    """`POST /command` in a newline-delimited framing."""
    body = json.dumps({"command": text, **fields}).encode()
    return request("POST", "/command", "Accept: application/x-ndjson", *headers, body=body)


def events(answer: Answer) -> list[dict[str, Any]]:
    """The events of an answer to `command`, pings left out."""
    assert answer.status == 200, answer
    found = [json.loads(line) for line in answer.body.splitlines()]
    return [event for event in found if event["type"] != "ping"]


def exchange(port: int, data: bytes, method: str = "GET") -> Answer:
    """The answer to one request on a connection of its own."""
    with connection(port) as conn:
        conn.send(data)
        return conn.answer(method)


def drip(conn: Connection, data: bytes, pause: float) -> bool:
    """Send byte by byte; False if the server would not take them all."""
    for byte in data:
        try:
            conn.send(bytes([byte]))
        except ConnectionError:
            return False
        time.sleep(pause)  # the point of a slow sender
    return True
