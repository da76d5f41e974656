"""What execd costs while nothing happens, and how soon it answers after its start."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import START_SECONDS, Daemon, answer, execd, launch, stop
from benchmarks.suite import Suite
from benchmarks.tools import Sample

T16_START = (Target("T16", "value", 600),)
T16_RSS = (Target("T16", "value", 40),)
T16_WAKEUPS = (Target("T16", "value", 0.2),)


def start(suite: Suite) -> Iterator[Figure]:
    """From exec to the first answers; the floor is the interpreter with nothing to do."""
    samples = [_one_start() for _ in range(suite.scaled(5, 3))]
    for key, what, targets in (
        ("ping", "exec to the first answer of /ping", T16_START),
        ("readyz", "exec to the first 200 of /readyz", ()),
    ):
        yield Figure(
            what,
            "ms",
            median(samples, key),
            median(samples, "floor"),
            None,
            targets,
            "",
            spread(samples, key),
        )


def idle(suite: Suite) -> Iterator[Figure]:
    """Memory and wake-ups of daemons that answered once and then have nothing to do."""
    with contextlib.ExitStack() as stack:
        daemons = [stack.enter_context(execd()) for _ in range(suite.rounds)]
        fresh = [_rss(daemon) for daemon in daemons]
        for daemon in daemons:
            suite.tools.run("load", *daemon.at(daemon.command("true")), 1, 5, 10, 0, 0)
        seconds = suite.scaled(10, 2)
        time.sleep(2)  # what a command leaves behind, timers and threads, has settled by then
        runs = _idle(daemons, seconds)
        peer = _idle([suite.peer], seconds)[0] if suite.peer and suite.peer.pid else {}
    yield Figure("RSS after the start", "MB", statistics.median(fresh), targets=T16_RSS, runs=fresh)
    for key, what, unit, targets in (
        ("rss", "RSS after five commands", "MB", T16_RSS),
        ("wakeups", "wake-ups a second", "/s", T16_WAKEUPS),
        ("cpu", "CPU, ms a second", "ms", ()),
        ("threads", "threads", "", ()),
        ("descriptors", "descriptors", "", ()),
    ):
        yield Figure(what, unit, median(runs, key), None, peer.get(key), targets, "", spread(runs, key))


def _one_start() -> Sample:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    floor = time.perf_counter() - begun
    with tempfile.TemporaryDirectory(prefix="execd-bench-") as directory:
        begun = time.perf_counter()
        process, port = launch(Path(directory))
        try:
            answer(port, "/ping", time.monotonic() + START_SECONDS)
            ping = time.perf_counter() - begun
            answer(port, "/readyz", time.monotonic() + START_SECONDS)
            ready = time.perf_counter() - begun
        finally:
            stop(process)
    return {"floor": floor * 1e3, "ping": ping * 1e3, "readyz": ready * 1e3}


def _idle(daemons: list[Daemon], seconds: float) -> list[Sample]:
    before = [daemon.usage() for daemon in daemons]
    time.sleep(seconds)
    samples: list[Sample] = []
    for daemon, first in zip(daemons, before, strict=True):
        last = daemon.usage()
        assert first
        assert last
        samples.append(
            {
                "rss": last.rss_mb,
                "wakeups": (last.wakeups - first.wakeups) / seconds,
                "cpu": (last.cpu_seconds - first.cpu_seconds) / seconds * 1e3,
                "threads": last.threads,
                "descriptors": last.descriptors,
            }
        )
    return samples


def _rss(daemon: Daemon) -> float:
    now = daemon.usage()
    assert now
    return now.rss_mb
