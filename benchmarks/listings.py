"""Listings and searches of large trees: how long, how much memory, and how quick /ping stays meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import BARE, Daemon, execd, wait_quiet
from benchmarks.suite import Suite
from benchmarks.tools import Sample, interleaved

_T12 = (Target("T12", "floor", 3.0), Target("T12", "peer", 0.5))
_T12_MEMORY = (Target("T12", "value", 16.0),)
_T13 = (Target("T13", "floor", 3.0),)
_T13_MEMORY = (Target("T13", "value", 8.0),)
_T14 = (Target("T14", "floor", 3.0),)
_T15 = (Target("T15", "value", 3.0),)
_LINES = "application/x-ndjson"
_UNBOUNDED = ("--list-ceiling", "1000000", "--list-timeout", "10m")
_MANY = 1_000_000
_GAP_MICROSECONDS = 2000
_PER_DIRECTORY = 1000
_FIND = ("-printf", r"%p %y %s %T+ %C+ %u %g %m\n")


def listings(suite: Suite) -> Iterator[Figure]:
    """Trees of empty files; those of a quick run are a tenth. The floor is a walk in C of the same tree."""
    small, large = suite.scaled(100_000, 10_000), suite.scaled(1_000_000, 100_000)
    with _directory() as directory, execd(*_UNBOUNDED) as daemon:
        tree = _tree(suite, directory / "small", small, _PER_DIRECTORY)
        yield _whole(suite, daemon, tree, small, "list, array", BARE, _T12, peer=suite.peer)
        yield _whole(suite, daemon, tree, small, "list, stream", _LINES, _T12)
        tree = _tree(suite, directory / "large", large, _PER_DIRECTORY)
        yield _whole(suite, daemon, tree, large, "list, stream", _LINES, _T12)
        yield _memory(suite, tree, large, "list, stream")
        yield _search(suite, daemon, tree, large)
        yield _ping(suite, daemon, tree)
        shutil.rmtree(tree)
        flat = _tree(suite, directory / "flat", large, 0)
        yield from _first_page(suite, flat, large)
        yield _memory(suite, flat, large, "list of one directory, stream")


def _whole(
    suite: Suite,
    daemon: Daemon,
    tree: Path,
    files: int,
    what: str,
    accept: str,
    targets: tuple[Target, ...],
    peer: Daemon | None = None,
) -> Figure:
    find = partial(_find, tree) if shutil.which("find") else None
    found = interleaved(
        suite.rounds,
        floor=partial(suite.tools.run, "walk", "full", tree),
        execd=partial(_listed, suite, daemon, tree, accept),
        peer=partial(_listed, suite, peer, tree, accept) if peer else None,
        find=find,
    )
    cpu = median(found["execd"], "cpu") / files * 1e6
    told = f"{cpu:.1f} us CPU an entry"
    if find:
        told += f"; find -printf takes {median(found['find'], 'seconds'):.2f} s"
    return Figure(
        f"{what}, {files} files",
        "s",
        median(found["execd"], "seconds"),
        median(found["floor"], "seconds"),
        median(found["peer"], "seconds") if peer else None,
        targets,
        told,
        spread(found["execd"], "seconds"),
    )


def _listed(suite: Suite, daemon: Daemon, tree: Path, accept: str, **query: object) -> Sample:
    query = {"path": tree, "depth": 9, "limit": _MANY} | query
    return _asked(suite, daemon, f"/directories/list?{urllib.parse.urlencode(query)}", accept)


def _asked(suite: Suite, daemon: Daemon, target: str, accept: str) -> Sample:
    daemon.reset_peak()
    before = daemon.usage()
    request = daemon.request("GET", target, accept=accept)
    if accept == _LINES:
        sample = dict(suite.tools.run("stream", *daemon.at(request), 0, 0))
        whole = sample["ended"]
    else:
        sample = dict(suite.tools.run("load", *daemon.at(request), 1, 1, 300, 0, 0))
        whole = sample["count"] == 1 and not sample["refused"]
    if not whole:
        raise RuntimeError(f"{target} was not answered to the end")
    after = daemon.usage()
    if before and after:
        sample["cpu"] = after.cpu_seconds - before.cpu_seconds
        sample["memory"] = after.peak_mb - before.rss_mb
    return sample


def _memory(suite: Suite, tree: Path, files: int, what: str) -> Figure:
    """Of a daemon that has listed nothing large before."""
    runs = []
    for _ in range(suite.rounds):
        with execd(*_UNBOUNDED) as daemon:
            _listed(suite, daemon, tree, _LINES, limit=10)
            runs.append(_listed(suite, daemon, tree, _LINES))
    return Figure(
        f"{what}, {files} files, growth of peak RSS",
        "MB",
        median(runs, "memory"),
        targets=_T12_MEMORY,
        runs=spread(runs, "memory"),
    )


def _search(suite: Suite, daemon: Daemon, tree: Path, files: int) -> Figure:
    query = urllib.parse.urlencode({"path": tree, "pattern": "*.nothing"})
    found = interleaved(
        suite.rounds,
        floor=partial(suite.tools.run, "walk", "names", tree),
        execd=partial(_asked, suite, daemon, f"/files/search?{query}", BARE),
        peer=partial(_asked, suite, suite.peer, f"/files/search?{query}", BARE) if suite.peer else None,
    )
    return Figure(
        f"search without a match, {files} files",
        "s",
        median(found["execd"], "seconds"),
        median(found["floor"], "seconds"),
        median(found["peer"], "seconds") if suite.peer else None,
        _T14,
        f"{median(found['execd'], 'cpu') / files * 1e6:.2f} us CPU a file",
        spread(found["execd"], "seconds"),
    )


def _first_page(suite: Suite, flat: Path, files: int) -> Iterator[Figure]:
    """Of one directory; each page from a fresh daemon, whose memory then shows what it costs."""

    def page() -> Sample:
        with execd() as daemon:
            _listed(suite, daemon, flat.parent, BARE, depth=1, limit=10)
            return _listed(suite, daemon, flat, BARE, depth=1, limit=1000)

    found = interleaved(suite.rounds, floor=partial(suite.tools.run, "walk", "names", flat), execd=page)
    what = f"first 1000 of {files} in one directory"
    cpu, floor = median(found["execd"], "cpu"), median(found["floor"], "cpu_seconds")
    wall = median(found["execd"], "seconds")
    note = f"{wall:.2f} s to the client"
    yield Figure(f"{what}, CPU", "s", cpu, floor, None, _T13, note, spread(found["execd"], "cpu"))
    memory = median(found["execd"], "memory")
    yield Figure(f"{what}, growth of peak RSS", "MB", memory, targets=_T13_MEMORY)


def _ping(suite: Suite, daemon: Daemon, tree: Path) -> Figure:
    """What a walk adds to the p99 of /ping."""
    found = interleaved(
        suite.rounds,
        idle=partial(_pings, suite, daemon),
        execd=partial(_pings_beside, suite, daemon, tree),
        peer=partial(_pings_beside, suite, suite.peer, tree) if suite.peer else None,
    )
    loaded, idle = median(found["execd"], "p99_ms"), median(found["idle"], "p99_ms")
    return Figure(
        "/ping beside that list, p99 more than idle",
        "ms",
        loaded - idle,
        peer=median(found["peer"], "p99_ms") - idle if suite.peer else None,
        targets=_T15,
        note=f"p99 {loaded:.2f} ms (idle {idle:.2f}), p50 {median(found['execd'], 'p50_ms'):.2f} ms, "
        f"slowest {median(found['execd'], 'max_ms'):.1f} ms",
        runs=spread(found["execd"], "p99_ms"),
    )


def _pings_beside(suite: Suite, daemon: Daemon, tree: Path) -> Sample:
    query = urllib.parse.urlencode({"path": tree, "depth": 9, "limit": _MANY})
    request = daemon.request("GET", f"/directories/list?{query}", accept=_LINES)
    load = suite.tools.start("stream", *daemon.at(request), 0, suite.scaled(3, 1) + 1)
    suite.tools.run("load", *daemon.at(daemon.request("GET", "/ping")), 1, _MANY, 0.2, 0, 0)
    sample = _pings(suite, daemon)
    suite.tools.result(load)
    wait_quiet(daemon)
    return sample


def _pings(suite: Suite, daemon: Daemon) -> Sample:
    request = daemon.request("GET", "/ping")
    return suite.tools.run("load", *daemon.at(request), 1, _MANY, suite.scaled(3, 1), _GAP_MICROSECONDS, 0)


def _find(tree: Path) -> Sample:
    began = time.monotonic()
    subprocess.run(["find", str(tree), *_FIND], check=True, stdout=subprocess.DEVNULL)
    return {"seconds": time.monotonic() - began}


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    """In memory if there is room, so that no disk is measured; gone afterwards."""
    shm = Path("/dev/shm")
    free = shutil.disk_usage(shm).free if shm.is_dir() else 0
    with tempfile.TemporaryDirectory(prefix="execd-bench-", dir=shm if free > 3 << 30 else None) as name:
        yield Path(name)


def _tree(suite: Suite, path: Path, files: int, per_directory: int) -> Path:
    path.mkdir()
    suite.tools.run("walk", "make", path, files, per_directory)
    return path
