"""The daemons under test: execd, started here as users run it, and a peer that runs elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START_SECONDS = 20.0
_QUIET_SECONDS = 30.0
_TICK = os.sysconf("SC_CLK_TCK")
SSE = "text/event-stream"
BARE = "*/*"
FLOOD = "exec yes"
PEER_FLOOD = f"ulimit -f 65536; exec yes {'y' * 99}"
"""For a peer that spools to files and works line by line: at most 64 MiB, and over in some seconds."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process holds and has used. CPU is its own, that of its children left out."""

    cpu_seconds: float
    rss_mb: float
    peak_mb: float
    descriptors: int
    threads: int
    wakeups: int


class Daemon:
    """One daemon: where it listens, and its process if that runs on this machine."""

    def __init__(self, address: str, port: int, pid: int | None, scratch: Path, token: str = "") -> None:
        self.address = address
        self.port = port
        self.pid = pid
        self._scratch = scratch
        self._token = token
        self._requests: dict[bytes, Path] = {}

    def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        accept: str = BARE,
        headers: Mapping[str, str] | None = None,
    ) -> Path:
        """A file with this request as it goes over the wire, for the C clients."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.address}:{self.port}\r\nAccept: {accept}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if self._token:
            head += f"X-EXECD-ACCESS-TOKEN: {self._token}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        raw = head.encode() + b"\r\n" + content
        if raw not in self._requests:
            file = self._scratch / f"request-{self.port}-{len(self._requests)}"
            file.write_bytes(raw)
            self._requests[raw] = file
        return self._requests[raw]

    def command(self, command: str, accept: str = BARE, **fields: Any) -> Path:
        """The request that runs shell text."""
        return self.request("POST", "/command", {"command": command, **fields}, accept)

    def at(self, request: Path) -> tuple[str, int, Path]:
        """The first arguments of every C client."""
        return self.address, self.port, request

    def ask(self, method: str, path: str) -> bytes:
        """One request on its own connection; everything that came back."""
        with socket.create_connection((self.address, self.port), timeout=30) as sock:
            raw = self.request(method, path).read_bytes().replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            sock.sendall(raw)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    def usage(self) -> Usage | None:
        """What it uses now; None if it runs on another machine."""
        return None if self.pid is None else usage(self.pid)

    def reset_peak(self) -> None:
        """Let `peak_mb` count from here (proc(5), clear_refs)."""
        if self.pid is not None:
            with contextlib.suppress(OSError):
                Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def wait_quiet(daemon: Daemon) -> None:
    """Return when it has stopped working off what its last clients left, or after a while."""
    deadline = time.monotonic() + _QUIET_SECONDS
    last = daemon.usage()
    while last and time.monotonic() < deadline:
        time.sleep(0.3)  # the time that the CPU is compared over
        now = daemon.usage()
        assert now
        if now.cpu_seconds - last.cpu_seconds < 0.03:
            return
        last = now


def usage(pid: int) -> Usage:
    """What a process uses, from /proc."""
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    wakeups = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            lines = (task / "status").read_text().splitlines()
            wakeups += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return Usage(
        (int(stat[11]) + int(stat[12])) / _TICK,
        int(status["VmRSS"].split()[0]) / 1024,
        int(status["VmHWM"].split()[0]) / 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        int(status["Threads"]),
        wakeups,
    )


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def launch(directory: Path, *flags: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start execd on a free port with its default log level, logging to a file; do not wait for it."""
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EXECD_")}
    argv = [sys.executable, "-m", "execd", "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--log-file", str(directory / f"log-{port}"), "--state-dir", str(directory / f"state-{port}")]
    return subprocess.Popen([*argv, *flags], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL), port


def answer(port: int, path: str, deadline: float) -> None:
    """Ask until `path` is answered with 200."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            sock.sendall(request)
            if sock.recv(4096).startswith(b"HTTP/1.1 200"):
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"execd did not answer {path}")
        time.sleep(0.001)  # between two looks: a closed port announces nothing


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a daemon that we started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def execd(*flags: str) -> Iterator[Daemon]:
    """A fresh execd that answers; stopped at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="execd-bench-") as name:
        directory = Path(name)
        process, port = launch(directory, *flags)
        try:
            answer(port, "/ping", time.monotonic() + START_SECONDS)
            yield Daemon("127.0.0.1", port, process.pid, directory)
        finally:
            stop(process)


def peer(scratch: Path) -> Daemon | None:
    """The daemon that EXECD_PEER_URL names (EXECD_PEER_TOKEN: its access token), or None."""
    url = os.environ.get("EXECD_PEER_URL", "")
    if not url:
        return None
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise SystemExit(f"EXECD_PEER_URL is {url!r}, allowed is http://HOST:PORT")
    port = parts.port or 80
    address = socket.gethostbyname(parts.hostname)
    daemon = Daemon(address, port, _listener(port), scratch, os.environ.get("EXECD_PEER_TOKEN", ""))
    if b" 200 " not in daemon.ask("GET", "/ping").split(b"\r\n", 1)[0]:
        raise SystemExit(f"EXECD_PEER_URL: {url} does not answer /ping")
    return daemon


def _listener(port: int) -> int | None:
    """The process of this machine that listens on `port`."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(os.readlink(fd) in sockets for fd in (process / "fd").iterdir()):
                return int(process.name)
    return None
