"""How fast files go to a client, what it costs, and how quick /ping stays meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import START_SECONDS, Daemon, answer, execd, free_port, wait_quiet
from benchmarks.suite import Suite
from benchmarks.tools import Sample, interleaved

_T9_RATE = Target("T9", "floor", 0.7, at_most=False)
_T9_CPU = Target("T9", "peer", 1.0)
_T9_MEMORY = Target("T9", "value", 8.0)
_T15 = Target("T15", "value", 3.0)
_MANY = 1_000_000
_GAP_MICROSECONDS = 2000
_NGINX = """
daemon off; master_process off; pid {directory}/pid; error_log {directory}/error;
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  server {{ listen 127.0.0.1:{port}; root {directory}; location / {{ try_files /$arg_name =404; }} }}
}}
"""


def downloads(suite: Suite) -> Iterator[Figure]:
    """A large file at full speed, small files and ranges a second, and /ping beside a large file."""
    with _directory() as directory, execd() as daemon:
        large = _file(directory, suite.scaled(1024, 128) << 20)
        with _floor(suite, large) as floor:
            yield from _large(suite, daemon, floor, large)
        small = _file(directory, 1024)
        with _floor(suite, small) as floor:
            for at_once in (1, 8):
                yield _rate(suite, daemon, floor, small, "1 KB files", at_once, "")
        with _floor(suite, large) as floor:
            for at_once in (1, 8):
                yield _rate(suite, daemon, floor, large, "64 KB ranges", at_once, "bytes=1000000-1065535")
        yield _ping(suite, daemon, large)


def _large(suite: Suite, daemon: Daemon, floor: Daemon, path: Path) -> Iterator[Figure]:
    size = path.stat().st_size
    found = interleaved(
        suite.rounds,
        floor=partial(_read, suite, floor, path, size),
        execd=partial(_read, suite, daemon, path, size),
        peer=partial(_read, suite, suite.peer, path, size) if suite.peer else None,
    )
    peer = found.get("peer")
    runs = found["execd"]
    what = f"{size >> 20} MiB"
    yield Figure(
        what,
        "MB/s",
        median(runs, "rate"),
        median(found["floor"], "rate"),
        median(peer, "rate") if peer else None,
        (_T9_RATE,),
        runs=spread(runs, "rate"),
    )
    has_peer = peer is not None and suite.peer is not None and suite.peer.pid is not None
    yield Figure(
        f"{what}, CPU of the server",
        "s/GB",
        median(runs, "cpu"),
        median(found["floor"], "cpu"),
        median(peer, "cpu") if peer and has_peer else None,
        (_T9_CPU,),
        runs=spread(runs, "cpu"),
    )
    yield Figure(f"{what}, growth of peak RSS", "MB", median(runs, "memory"), targets=(_T9_MEMORY,))


def _read(suite: Suite, server: Daemon, path: Path, size: int) -> Sample:
    server.reset_peak()
    before = server.usage()
    sample = suite.tools.run("load", *server.at(_request(server, path)), 1, 1, 300, 0, 0)
    if sample["refused"] or sample["count"] != 1:
        raise RuntimeError(f"{path} was not answered with 200")
    found = {"rate": size / sample["seconds"] / 1e6}
    after = server.usage()
    if before and after:
        found["cpu"] = (after.cpu_seconds - before.cpu_seconds) / (size / 1e9)
        found["memory"] = after.peak_mb - before.rss_mb
    return found


def _rate(
    suite: Suite, daemon: Daemon, floor: Daemon, path: Path, what: str, at_once: int, byte_range: str
) -> Figure:
    seconds = suite.scaled(2, 1)

    def measure(server: Daemon) -> Sample:
        request = _request(server, path, byte_range)
        before = server.usage()
        found = dict(suite.tools.run("load", *server.at(request), at_once, _MANY, seconds, 0, 0))
        after = server.usage()
        if before and after:
            found["cpu_us"] = (after.cpu_seconds - before.cpu_seconds) / found["count"] * 1e6
        return found

    peer = partial(measure, suite.peer) if suite.peer else None
    found = interleaved(
        suite.rounds, floor=partial(measure, floor), execd=partial(measure, daemon), peer=peer
    )
    return Figure(
        f"{what}, {at_once} at once",
        "/s",
        median(found["execd"], "rate"),
        median(found["floor"], "rate"),
        median(found["peer"], "rate") if suite.peer else None,
        note=f"{median(found['execd'], 'cpu_us'):.0f} us CPU each",
        runs=spread(found["execd"], "rate"),
    )


def _ping(suite: Suite, daemon: Daemon, path: Path) -> Figure:
    """What a large download adds to the p99 of /ping; the floor is /ping with nothing beside it."""
    found = interleaved(
        suite.rounds,
        idle=partial(_pings, suite, daemon),
        execd=partial(_pings_beside, suite, daemon, path),
        peer=partial(_pings_beside, suite, suite.peer, path) if suite.peer else None,
    )
    loaded, idle = median(found["execd"], "p99_ms"), median(found["idle"], "p99_ms")
    return Figure(
        "/ping beside it, p99 more than idle",
        "ms",
        loaded - idle,
        peer=median(found["peer"], "p99_ms") - idle if suite.peer else None,
        targets=(_T15,),
        note=f"p99 {loaded:.2f} ms (idle {idle:.2f}), p50 {median(found['execd'], 'p50_ms'):.2f} ms, "
        f"slowest {median(found['execd'], 'max_ms'):.1f} ms",
        runs=spread(found["execd"], "p99_ms"),
    )


def _pings_beside(suite: Suite, daemon: Daemon, path: Path) -> Sample:
    seconds = suite.scaled(3, 1)
    load = suite.tools.start("load", *daemon.at(_request(daemon, path)), 1, _MANY, seconds + 0.5, 0, 0)
    suite.tools.run("load", *daemon.at(daemon.request("GET", "/ping")), 1, _MANY, 0.2, 0, 0)
    sample = _pings(suite, daemon)
    suite.tools.result(load)
    wait_quiet(daemon)
    return sample


def _pings(suite: Suite, daemon: Daemon) -> Sample:
    request = daemon.request("GET", "/ping")
    return suite.tools.run("load", *daemon.at(request), 1, _MANY, suite.scaled(3, 1), _GAP_MICROSECONDS, 0)


def _request(server: Daemon, path: Path, byte_range: str = "") -> Path:
    query = urllib.parse.urlencode({"path": path, "name": path.name})
    headers = {"Range": byte_range} if byte_range else {}
    return server.request("GET", f"/files/download?{query}", headers=headers)


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    """In memory if there is room, so that no disk is measured."""
    shm = Path("/dev/shm")
    free = shutil.disk_usage(shm).free if shm.is_dir() else 0
    with tempfile.TemporaryDirectory(prefix="execd-bench-", dir=shm if free > 3 << 30 else None) as name:
        yield Path(name)


def _file(directory: Path, size: int) -> Path:
    path = directory / f"file-{size}"
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for start in range(0, size, len(block)):
            file.write(block[: size - start])
    return path


@contextlib.contextmanager
def _floor(suite: Suite, path: Path) -> Iterator[Daemon]:
    """A server of that one file: nginx if it is installed, else a few lines of C around sendfile."""
    nginx = shutil.which("nginx")
    port = free_port()
    with contextlib.ExitStack() as stack:
        argv = suite.tools.argv("files", path)
        if nginx:
            config = path.parent / "nginx.conf"
            config.write_text(_NGINX.format(directory=path.parent, port=port))
            argv = [nginx, "-c", str(config), "-p", str(path.parent)]
        process = stack.enter_context(
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
        stack.callback(process.terminate)
        assert process.stdout
        if nginx:
            answer(port, f"/?name={path.name}", time.monotonic() + START_SECONDS)
        else:
            port = int(process.stdout.readline())
        yield Daemon("127.0.0.1", port, process.pid, suite.tools.path)
