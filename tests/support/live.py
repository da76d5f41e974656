"""The daemon as a real process on a free port, and what tests ask of it from outside."""

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
START_SECONDS = 20.0


def wait_until(condition: Callable[[], object], seconds: float = 10.0, what: str = "condition") -> None:
    """Return when `condition()` is true; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds} s"
        time.sleep(pause)  # between two looks at a state that nothing announces
        pause = min(pause * 1.5, 0.05)


class Daemon:
    """A running execd. `log_lines()` and `log_text()` show what it logged."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path, state: Path) -> None:
        self.process = process
        self.port = port
        self.log = log
        self.state = state
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, command: str | None = None, **fields: Any) -> list[dict[str, Any]]:
        """Run a command to its end; its events, pings left out."""
        body = fields if command is None else {"command": command, **fields}
        return [e for e in self.events(body) if e["type"] != "ping"]

    def events(self, body: dict[str, Any], accept: str = "application/x-ndjson") -> list[dict[str, Any]]:
        """Every event of one `POST /command`."""
        answer = self.client.post("/command", json=body, headers={"Accept": accept})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def background(self, command: str, **fields: Any) -> str:
        """Start a background command; its id."""
        events = self.run(command, background=True, **fields)
        assert [e["type"] for e in events] == ["init", "execution_complete"]
        return str(events[0]["text"])

    def status(self, command_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/command/status/{command_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait_ended(self, command_id: str, seconds: float = 10.0) -> dict[str, Any]:
        """Its status once it runs no more."""
        wait_until(lambda: not self.status(command_id)["running"], seconds, "end of the command")
        return self.status(command_id)

    def logs(self, command_id: str, cursor: int = 0) -> bytes:
        """All its kept output from `cursor` on, page by page."""
        found = b""
        while True:
            answer = self.client.get(f"/command/{command_id}/logs", params={"cursor": cursor})
            assert answer.status_code == 200, answer.text
            found += answer.content
            cursor = int(answer.headers["EXECD-COMMANDS-TAIL-CURSOR"])
            if answer.headers["X-Execd-Truncated"] == "false":
                return found

    def usage(self) -> dict[str, int]:
        """What the daemon says it holds."""
        return dict(self.client.get("/capabilities").json()["usage"])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def children(self) -> list[int]:
        # A child is listed with the thread that made it.
        files = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for file in files for pid in file.read_text().split()]

    def rss_bytes(self) -> int:
        line = next(x for x in Path(f"/proc/{self.pid}/status").read_text().splitlines() if "VmRSS" in x)
        return int(line.split()[1]) * 1024

    def log_text(self) -> str:
        return self.log.read_text()

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_text().splitlines()]

    def stop(self, sig: int = signal.SIGTERM, seconds: float = 15.0) -> int:
        """Send a signal; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(seconds)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def daemon(
    *flags: str,
    env: Mapping[str, str | None] | None = None,
    wrapper: tuple[str, ...] = (),
    state: Path | None = None,
) -> Iterator[Daemon]:
    """Run execd with `flags` and with `env` laid over ours (None removes); stop it and what it started.

    `wrapper` is put before the command line (`setpriv ...`, `prlimit ...`).
    """
    with tempfile.TemporaryDirectory(prefix="execd-test-") as directory:
        log = Path(directory, "log")
        state = state or Path(directory, "state")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("EXECD_")}
        for name, value in (env or {}).items():
            environ.pop(name, None)
            if value is not None:
                environ[name] = value
        port = free_port()
        argv = [*wrapper, sys.executable, "-m", "execd", "--host", "127.0.0.1", "--port", str(port)]
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [*argv, "--state-dir", str(state), *flags],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )
        running = Daemon(process, port, log, state)
        try:
            wait_until(lambda: _answers(running), START_SECONDS, "an answer to /ping")
            yield running
        finally:
            running.client.close()
            try:
                running.stop()
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(running: Daemon) -> bool:
    assert running.process.poll() is None, f"execd ended at once: {running.log_text()}"
    try:
        return running.client.get("/ping").status_code == 200
    except httpx.TransportError:
        return False


def text(events: list[dict[str, Any]], stream: str = "stdout") -> str:
    """The text of one stream, put together."""
    return "".join(e["text"] for e in events if e["type"] == stream)


def alive(pid: int) -> bool:
    """True while a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
