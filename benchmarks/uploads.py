"""How fast files come in from a client, and what it costs: one large one, and ten thousand small ones."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import START_SECONDS, Daemon, answer, execd, free_port, stop, wait_quiet
from benchmarks.suite import Suite
from benchmarks.tools import FLOORS, Sample, interleaved

_T10_RATE = Target("T10", "floor", 0.5, at_most=False)
_T10_PEER = Target("T10", "peer", 2.0, at_most=False)
_T10_MEMORY = Target("T10", "value", 8.0)
_T11 = Target("T11", "floor", 0.4)
_BOUNDARY = "execd-bench-boundary"
_MEMORY = "in memory"
_SMALL = 1024  # bytes


def uploads(suite: Suite) -> Iterator[Figure]:
    """In memory, so that no disk is measured, then on the disk, where every file is synced."""
    for where, directory in ((_MEMORY, "/dev/shm"), ("on disk", tempfile.gettempdir())):
        with tempfile.TemporaryDirectory(prefix="execd-bench-", dir=directory) as name, execd() as daemon:
            yield from _large(suite, daemon, Path(name), where)
            yield from _many(suite, daemon, Path(name), where)


def _large(suite: Suite, daemon: Daemon, directory: Path, where: str) -> Iterator[Figure]:
    size = suite.scaled(1024, 128) << 20
    target = directory / "large"
    with _sink(suite, directory / "floor") as floor:
        found = interleaved(
            suite.rounds,
            floor=partial(_send, suite, floor, "PUT", target, size),
            execd=partial(_send, suite, daemon, "POST", target, size),
            raw=partial(_send, suite, daemon, "PUT", target, size),
            copy=partial(_copy, target, size),
            peer=partial(_send, suite, suite.peer, "POST", target, size) if suite.peer else None,
        )
    runs, peer = found["execd"], found.get("peer")
    what = f"{size >> 20} MiB {where}"
    yield Figure(
        what,
        "MB/s",
        median(runs, "rate"),
        median(found["floor"], "rate"),
        median(peer, "rate") if peer else None,
        (_T10_RATE, _T10_PEER) if where == _MEMORY else (),
        f"a plain copy of such a file {median(found['copy'], 'rate'):.0f} MB/s{_synced(where)}",
        spread(runs, "rate"),
    )
    yield Figure(
        f"{what}, as a bare body",
        "MB/s",
        median(found["raw"], "rate"),
        median(found["floor"], "rate"),
        runs=spread(found["raw"], "rate"),
    )
    local = peer is not None and suite.peer is not None and suite.peer.pid is not None
    yield Figure(
        f"{what}, CPU of the server",
        "s/GB",
        median(runs, "cpu"),
        median(found["floor"], "cpu"),
        median(peer, "cpu") if peer and local else None,
        runs=spread(runs, "cpu"),
    )
    yield Figure(f"{what}, growth of peak RSS", "MB", median(runs, "memory"), targets=(_T10_MEMORY,))


def _many(suite: Suite, daemon: Daemon, directory: Path, where: str) -> Iterator[Figure]:
    count = suite.scaled(10_000, 1000)
    with _forms(suite) as floor:
        found = interleaved(
            suite.rounds,
            floor=partial(_send_many, suite, floor, directory, count),
            execd=partial(_send_many, suite, daemon, directory, count),
        )
    ours, theirs = (median(found[name], "cpu_each") for name in ("execd", "floor"))
    yield Figure(
        f"{count} files of 1 KB {where}, one request",
        "s",
        median(found["execd"], "seconds"),
        median(found["floor"], "seconds"),
        targets=(_T11,) if where == _MEMORY else (),
        note=f"CPU {ours:.0f} us a file, floor {theirs:.0f}{_synced(where)}",
        runs=spread(found["execd"], "seconds"),
    )


def _synced(where: str) -> str:
    return "" if where == _MEMORY else "; every file is synced, the floor syncs none"


def _send(suite: Suite, server: Daemon, method: str, target: Path, size: int) -> Sample:
    """One file of `size` bytes: as multipart with POST, bare with PUT."""
    head, tail = (_pair_head(target), f"\r\n--{_BOUNDARY}--\r\n".encode()) if method == "POST" else (b"", b"")
    server.reset_peak()
    before = server.usage()
    sample = _sent(suite, server, method, target, head, tail, size)
    after = server.usage()
    target.unlink(missing_ok=True)
    found = {"rate": size / sample["seconds"] / 1e6}
    if before and after:
        found["cpu"] = (after.cpu_seconds - before.cpu_seconds) / (size / 1e9)
        found["memory"] = after.peak_mb - before.rss_mb
    return found


def _send_many(suite: Suite, server: Daemon, directory: Path, count: int) -> Sample:
    place = directory / "many"
    pairs = [_pair_head(place / f"{number}") + b"x" * _SMALL for number in range(count)]
    body = b"\r\n".join(pairs) + f"\r\n--{_BOUNDARY}--\r\n".encode()
    before = server.usage()
    found = dict(_sent(suite, server, "POST", place, body, b"", 0))
    after = server.usage()
    if before and after:
        found["cpu_each"] = (after.cpu_seconds - before.cpu_seconds) / count * 1e6
    if len(list(place.iterdir())) != count:
        raise RuntimeError("not all files were written")
    shutil.rmtree(place)
    wait_quiet(server)
    return found


def _pair_head(path: Path) -> bytes:
    """A part `metadata`, and a part `file` as far as its content."""
    part = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
    metadata = f'{part}"metadata"; filename="metadata"\r\n\r\n{json.dumps({"path": str(path)})}\r\n'
    return f'{metadata}{part}"file"; filename="file"\r\n\r\n'.encode()


def _sent(
    suite: Suite, server: Daemon, method: str, target: Path, head: bytes, tail: bytes, size: int
) -> Sample:
    length = len(head) + size + len(tail)
    path = "/files/upload" if method == "POST" else f"/files/content?path={target}"
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}", "Content-Length": str(length)}
    request, rest = suite.tools.path / "upload-head", suite.tools.path / "upload-tail"
    request.write_bytes(server.request(method, path, headers=headers).read_bytes() + head)
    rest.write_bytes(tail)
    sample = suite.tools.run("send", server.address, server.port, request, rest, size)
    if sample["status"] not in (200, 201):
        raise RuntimeError(f"{method} {path} was answered with {sample['status']:.0f}")
    return sample


def _copy(target: Path, size: int) -> Sample:
    """`cp`, from a file in the page cache."""
    source = target.with_name("source")
    with source.open("wb") as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    began = time.monotonic()
    subprocess.run(["cp", "--reflink=never", source, target], check=True)
    seconds = time.monotonic() - began
    source.unlink()
    target.unlink()
    return {"rate": size / seconds / 1e6}


@contextlib.contextmanager
def _sink(suite: Suite, path: Path) -> Iterator[Daemon]:
    """The floor for one file: a few lines of C that write what they receive."""
    process = subprocess.Popen(suite.tools.argv("sink", path), stdout=subprocess.PIPE)
    try:
        assert process.stdout
        yield Daemon("127.0.0.1", int(process.stdout.readline()), process.pid, suite.tools.path)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _forms(suite: Suite) -> Iterator[Daemon]:
    """The floor for many files: what a Starlette application does by itself."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(FLOORS / "forms.py"), str(port)])
    try:
        answer(port, "/ping", time.monotonic() + START_SECONDS)
        yield Daemon("127.0.0.1", port, process.pid, suite.tools.path)
    finally:
        stop(process)
