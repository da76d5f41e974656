"""How quick /ping stays: idle, under 100 commands at once, and under a firehose on top of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import FLOOD, PEER_FLOOD, SSE, Daemon, execd, wait_quiet
from benchmarks.suite import Suite
from benchmarks.tools import Sample, interleaved

T15 = (Target("T15", "peer", 1.5),)
_GAP_MICROSECONDS = 2000
_MANY = 1_000_000


def liveness(suite: Suite) -> Iterator[Figure]:
    """One connection that pings every 2 ms; the floor answers from C, beside the same load."""
    seconds = 0.6 if suite.quick else 3.0
    with (
        execd() as daemon,
        subprocess.Popen(suite.tools.argv("writer"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer,
    ):
        assert writer.stdout
        assert writer.stdin
        floor = Daemon("127.0.0.1", int(writer.stdout.readline()), None, suite.tools.path)
        _pings(suite, daemon, 0.2)
        for what, at_once, flood in (
            ("idle", 0, 0),
            ("100 commands", 100, 0),
            ("100 commands and a firehose", 100, 1),
        ):
            found = interleaved(
                suite.rounds,
                execd=partial(_loaded, suite, daemon, floor, at_once, flood, seconds),
                peer=partial(_loaded, suite, suite.peer, None, at_once, flood, seconds)
                if suite.peer
                else None,
            )
            for key in ("p50_ms", "p99_ms"):
                yield Figure(
                    f"/ping, {what}, {key[:3]}",
                    "ms",
                    median(found["execd"], key),
                    median(found["execd"], f"floor_{key}"),
                    median(found["peer"], key) if suite.peer else None,
                    T15 if key == "p99_ms" and at_once else (),
                    f"slowest {median(found['execd'], 'max_ms'):.0f} ms" if key == "p99_ms" else "",
                    spread(found["execd"], key),
                )
        writer.stdin.close()


def _loaded(
    suite: Suite, daemon: Daemon, floor: Daemon | None, at_once: int, flood: int, seconds: float
) -> Sample:
    """Ping `daemon`, and then `floor`, while `daemon` carries the load."""
    phases = 2 if floor else 1
    lasting = seconds * phases + 0.5
    load: list[subprocess.Popen[bytes]] = []
    if at_once:
        request = daemon.command("true")
        load.append(suite.tools.start("load", *daemon.at(request), at_once, _MANY, lasting, 0, 0))
    if flood:
        request = daemon.command(FLOOD if floor else PEER_FLOOD, SSE, timeout=int(lasting * 1000))
        load.append(suite.tools.start("stream", *daemon.at(request), 0, lasting))
    if load:
        _pings(suite, daemon, 0.3)  # until the load is there
    sample = dict(_pings(suite, daemon, seconds))
    if floor:
        sample |= {f"floor_{key}": value for key, value in _pings(suite, floor, seconds).items()}
    for process in load:
        suite.tools.result(process)
    wait_quiet(daemon)
    return sample


def _pings(suite: Suite, daemon: Daemon, seconds: float) -> Sample:
    request = daemon.request("GET", "/ping")
    return suite.tools.run("load", *daemon.at(request), 1, _MANY, seconds, _GAP_MICROSECONDS, 0)
