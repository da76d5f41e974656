"""Ways in which an error can leave a live daemon: limits, a stop, a starved machine, a fault of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.contract.ways import post, sent, way
from tests.edge import raw
from tests.support.live import Daemon, daemon, wait_until

_IMPATIENT = (
    "import sys; sys.argv = ['execd', *sys.argv[4:]]\n"
    "import execd.api.body\n"
    "from execd.cli import main\n"
    "execd.api.body.BODY_SECONDS = 0.3\n"
    "main()"
)


@way("IDENTITY_NOT_PERMITTED", "POST", "/command")
def user_that_it_may_not_become(_: Daemon) -> httpx.Response:
    limited = ("setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid")
    with daemon(wrapper=() if os.geteuid() else limited) as running:
        return post(running, command="true", uid=65534 if os.geteuid() == 0 else 0)


@way("UNAUTHORIZED", "GET", "/capabilities")
def missing_token(_: Daemon) -> httpx.Response:
    with daemon("--access-token", "right") as running:
        return running.client.get("/capabilities")


@way("UNAUTHORIZED", "POST", "/command")
def wrong_token(_: Daemon) -> httpx.Response:
    with daemon("--access-token", "right") as running:
        headers = {"X-EXECD-ACCESS-TOKEN": "wrong"}
        return running.client.post("/command", json={"command": "true"}, headers=headers)


@way("REQUEST_TIMEOUT", "POST", "/command")
def body_that_stops_halfway(_: Daemon) -> httpx.Response:
    with daemon(wrapper=(sys.executable, "-c", _IMPATIENT)) as running:
        return sent(running, raw.request("POST", "/command", "Content-Length: 99") + b'{"command":', "POST")


@way("BODY_TOO_LARGE", "POST", "/command")
def announced_body_that_is_too_large(_: Daemon) -> httpx.Response:
    with daemon("--max-body", "1KiB") as running:
        return post(running, command="#" * 2000)


@way("BODY_TOO_LARGE", "POST", "/command")
def chunked_body_that_is_too_large(_: Daemon) -> httpx.Response:
    with daemon("--max-body", "1KiB") as running:
        return running.client.post("/command", content=iter([b'{"command":"', b"#" * 2000, b'"}']))


@way("BODY_TOO_LARGE", "GET", "/ping")
def large_body_where_none_is_wanted(_: Daemon) -> httpx.Response:
    with daemon("--max-body", "1KiB") as running:
        return running.client.request("GET", "/ping", content=b"#" * 2000)


@way("COMMAND_START_FAILED", "POST", "/command")
def program_in_a_directory_whose_name_is_no_text(running: Daemon) -> httpx.Response:
    directory = Path(os.fsdecode(os.fsencode(running.state.parent) + b"/\xff"))
    directory.mkdir(exist_ok=True)
    program = directory / "not-really"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    with daemon(env={"PATH": f"{os.environ['PATH']}:{directory}"}) as strange:
        return post(strange, argv=["not-really"])


@way("TOO_MANY_EXECUTIONS", "POST", "/command")
def more_commands_than_may_run(_: Daemon) -> httpx.Response:
    with daemon("--max-executions", "1") as running:
        running.background("sleep 60")
        return post(running, command="true")


@way("TOO_MANY_REQUESTS", "GET", "/capabilities")
def more_requests_than_may_be_answered(_: Daemon) -> httpx.Response:
    with daemon("--max-requests", "8") as running, contextlib.ExitStack() as streams:
        for _number in range(8):
            conn = streams.enter_context(raw.connection(running.port))
            conn.send(raw.command("sleep 60"))
            assert conn.head()[0] == 200
        return running.client.get("/capabilities")


@way("SHUTTING_DOWN", "POST", "/command")
def start_while_it_stops(_: Daemon) -> httpx.Response:
    with _stopping() as running:
        return post(running, command="true")


@way("NOT_READY", "GET", "/readyz")
def readiness_while_it_stops(_: Daemon) -> httpx.Response:
    with _stopping() as running:
        return running.client.get("/readyz")


@way("NOT_READY", "GET", "/readyz")
def state_directory_that_cannot_be_made(_: Daemon) -> httpx.Response:
    with daemon(state=Path("/proc/execd")) as running:
        return running.client.get("/readyz")


@way("RESOURCE_EXHAUSTED", "POST", "/command")
def start_without_descriptors(_: Daemon) -> httpx.Response:
    with daemon() as running, starved(running):
        return post(running, command="true")


@way("RUNTIME_ERROR", "GET", "/docs/{asset}")
def fault_of_its_own(_: Daemon) -> httpx.Response:
    with daemon() as running, starved(running):
        answer = running.client.get("/docs/swagger-ui.css")
        request_id = answer.headers["x-request-id"]
        assert request_id in answer.json()["message"]
        wait_until(lambda: "request_failed" in running.log_text(), what="the log's word about it")
        failed = next(line for line in running.log_lines() if line["event"] == "request_failed")
        assert failed["request_id"] == request_id
        assert "Too many open files" in failed["traceback"]
        return answer


@contextlib.contextmanager
def starved(running: Daemon) -> Iterator[None]:
    """No new descriptor can be had; the connection of `running.client` is open already."""
    soft, hard = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def _stopping() -> Iterator[Daemon]:
    """A daemon that was told to stop and waits for a command that ignores that."""
    with daemon("--kill-grace", "30s") as running:
        stubborn = running.background("trap '' TERM; echo $$; while :; do sleep 0.1; done")
        wait_until(lambda: running.logs(stubborn), what="the command's first word")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: running.client.get("/readyz").status_code == 503, what="the stop")
        yield running
        os.kill(int(running.logs(stubborn)), signal.SIGKILL)
