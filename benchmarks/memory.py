"""Memory and descriptors: beside a client that does not read, after many commands, after many leavers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import FLOOD, PEER_FLOOD, SSE, Daemon, Usage, execd, wait_quiet
from benchmarks.suite import Suite
from benchmarks.tools import Sample

T8 = (Target("T8", "value", 8.0),)
FLAT_MB = (Target("flat", "value", 4.0),)
FLAT = (Target("flat", "value", 0),)
_SETTLE_SECONDS = 10.0


def stalled(suite: Suite) -> Iterator[Figure]:
    """A client that reads the head and then nothing, and one that reads 1 MB/s, of an endless `yes`."""
    seconds = suite.scaled(8, 2)
    for rate, what in ((-1, "a client that does not read"), (1_000_000, "a client that reads 1 MB/s")):
        with contextlib.ExitStack() as stack:
            runs = _growth(suite, [stack.enter_context(execd()) for _ in range(suite.rounds)], rate, seconds)
            peer = None
            if suite.peer and suite.peer.pid:
                peer = _growth(suite, [suite.peer], rate, seconds, PEER_FLOOD)[0]["rss"]
        yield Figure(
            f"RSS growth in {seconds} s, {what}",
            "MB",
            median(runs, "rss"),
            None,
            peer,
            T8,
            f"daemon's CPU meanwhile {median(runs, 'cpu'):.2f} s",
            spread(runs, "rss"),
        )


def leaks(suite: Suite) -> Iterator[Figure]:
    """What stays. The first wave fills what is kept on purpose (records, threads, the heap's high water),
    the next one must add nothing.
    """
    commands, leavers = suite.scaled(5000, 500), suite.scaled(1000, 200)
    with execd(*(["--max-records", "400"] if suite.quick else [])) as daemon:
        _run(suite, daemon, 100)
        yield from _waves(suite, daemon, "commands", _run, commands, commands)
    with execd("--max-records", "100") as daemon:  # few, so that the first wave's records are full-grown
        _run(suite, daemon, 20)
        yield from _waves(suite, daemon, "clients that left", _leave, leavers // 2, leavers)


def _waves(
    suite: Suite, daemon: Daemon, what: str, act: Callable[[Suite, Daemon, int], None], first: int, next_: int
) -> Iterator[Figure]:
    before = _settled(daemon)
    act(suite, daemon, first)
    filled = _settled(daemon)
    act(suite, daemon, next_)
    after = _settled(daemon)
    yield Figure(
        f"RSS growth, another {next_} {what}",
        "MB",
        after.rss_mb - filled.rss_mb,
        targets=FLAT_MB,
        note=f"the first {first} added {filled.rss_mb - before.rss_mb:.1f} MB to {before.rss_mb:.1f} MB",
    )
    yield Figure(
        f"descriptors more, {first + next_} {what}", "", after.descriptors - before.descriptors, targets=FLAT
    )
    yield Figure(f"threads more, another {next_} {what}", "", after.threads - filled.threads, targets=FLAT)


def _run(suite: Suite, daemon: Daemon, count: int) -> None:
    suite.tools.run("load", *daemon.at(daemon.command("true")), 16, count, 300, 0, 0)


def _leave(suite: Suite, daemon: Daemon, count: int) -> None:
    request = daemon.command("yes | head -n 200000", SSE)
    suite.tools.run("load", *daemon.at(request), 50, count, 120, 0, 1)


def _settled(daemon: Daemon) -> Usage:
    """What it uses once no command runs and its descriptors stay the same."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    before = -1
    while True:
        body = daemon.ask("GET", "/capabilities").split(b"\r\n\r\n", 1)[1]
        held = json.loads(body)["usage"]
        now = daemon.usage()
        assert now
        busy = held["running"] or held["open"] or now.descriptors != before
        if not busy or time.monotonic() > deadline:
            return now
        before = now.descriptors
        time.sleep(0.3)  # between two looks that must agree


def _growth(suite: Suite, daemons: list[Daemon], rate: int, seconds: int, flood: str = FLOOD) -> list[Sample]:
    before = [daemon.usage() for daemon in daemons]
    clients: list[subprocess.Popen[bytes]] = []
    for daemon in daemons:
        request = daemon.command(flood, SSE, timeout=seconds * 1000 + 500)
        clients.append(suite.tools.start("stream", *daemon.at(request), rate, seconds))
    highest = [0.0] * len(daemons)
    while clients[-1].poll() is None:
        for position, daemon in enumerate(daemons):
            now = daemon.usage()
            highest[position] = max(highest[position], now.rss_mb if now else 0.0)
        time.sleep(0.1)  # between two samples
    for client in clients:
        suite.tools.result(client)
    samples: list[Sample] = []
    for daemon, first, most in zip(daemons, before, highest, strict=True):
        last = daemon.usage()
        assert first
        assert last
        samples.append({"rss": most - first.rss_mb, "cpu": last.cpu_seconds - first.cpu_seconds})
    wait_quiet(daemons[0])
    return samples
