"""Memory and descriptors: beside a client that does not read, after many commands, after many leavers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import SSE, Daemon, Usage, execd
from benchmarks.suite import Suite
from benchmarks.tools import Sample

T8 = (Target("T8", "value", 8.0),)
FLAT_MB = (Target("flat", "value", 4.0),)
FLAT = (Target("flat", "value", 0),)
_FLOOD = "ulimit -f 2097152; exec yes"  # a daemon that spools to files gets no more than 2 GiB of disk
_SETTLE_SECONDS = 10.0


def stalled(suite: Suite) -> Iterator[Figure]:
    """A client that reads the head and then nothing, and one that reads 1 MB/s, of an endless `yes`."""
    seconds = suite.scaled(8, 3)
    for rate, what in ((-1, "a client that does not read"), (1_000_000, "a client that reads 1 MB/s")):
        with contextlib.ExitStack() as stack:
            runs = _growth(suite, [stack.enter_context(execd()) for _ in range(suite.rounds)], rate, seconds)
            peer = None
            if suite.peer and suite.peer.pid:
                peer = _growth(suite, [suite.peer], rate, seconds)[0]["rss"]
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
    """What stays. The first round fills what is kept on purpose (records, threads, the heap's high water),
    the next one must add nothing.
    """
    records = suite.scaled(4096, 400)
    commands = suite.scaled(5000, 500)
    leavers = suite.scaled(1000, 200)
    with execd("--max-records", str(records)) as daemon:
        rounds = (
            (f"{commands} commands", _run, commands, commands),
            (f"{leavers} clients that left", _leave, 100, leavers),
        )
        _run(suite, daemon, 100)
        before = _settled(daemon)
        for what, act, first, second in rounds:
            act(suite, daemon, first)
            filled = _settled(daemon)
            act(suite, daemon, second)
            after = _settled(daemon)
            added = filled.rss_mb - before.rss_mb
            note = f"before, {first} of them added {added:.1f} MB"
            if act is _run:
                note += f", {added * 1024 / min(records, first):.2f} KiB a record kept"
            yield Figure(
                f"RSS growth, another {what}", "MB", after.rss_mb - filled.rss_mb, targets=FLAT_MB, note=note
            )
            yield Figure(
                f"descriptors more, {what}", "", after.descriptors - before.descriptors, targets=FLAT
            )
            yield Figure(f"threads more, {what}", "", after.threads - filled.threads, targets=FLAT)
            before = after


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


def _growth(suite: Suite, daemons: list[Daemon], rate: int, seconds: int) -> list[Sample]:
    before = [daemon.usage() for daemon in daemons]
    clients: list[subprocess.Popen[bytes]] = []
    for daemon in daemons:
        request = daemon.command(_FLOOD, SSE, timeout=seconds * 1000 + 500)
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
    time.sleep(1)  # until the timeout has ended what the clients left behind
    return samples
