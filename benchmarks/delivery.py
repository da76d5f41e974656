"""How long a line takes from the command's write to the client's read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import SSE, Daemon, execd
from benchmarks.suite import Suite
from benchmarks.tools import Sample, interleaved

T7_P50 = (Target("T7", "value", 1.0), Target("T7", "peer", 0.05))
T7_P99 = (Target("T7", "value", 5.0),)


def delivery(suite: Suite) -> Iterator[Figure]:
    """Lines written one by one with a gap between them; the floor reads them from a pipe."""
    peer = suite.peer
    with execd() as daemon:
        for gap_ms, lines in ((1, suite.scaled(1500, 300)), (20, suite.scaled(100, 25))):
            found = interleaved(
                suite.rounds,
                floor=partial(_pipe, suite, lines, gap_ms),
                execd=partial(_arrivals, suite, daemon, lines, gap_ms),
                peer=partial(_arrivals, suite, peer, lines, gap_ms) if peer else None,
            )
            for key, targets in (("p50_ms", T7_P50), ("p99_ms", T7_P99)):
                yield Figure(
                    f"write to arrival, a line every {gap_ms} ms, {key[:3]}",
                    "ms",
                    median(found["execd"], key),
                    median(found["floor"], key),
                    median(found["peer"], key) if peer else None,
                    targets,
                    runs=spread(found["execd"], key),
                )


def _pipe(suite: Suite, lines: int, gap_ms: int) -> Sample:
    writer = subprocess.Popen(suite.tools.argv("ticker", lines, gap_ms * 1000), stdout=subprocess.PIPE)
    reader = subprocess.Popen(
        suite.tools.argv("arrival", "-"), stdin=writer.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.close()
    sample = suite.tools.result(reader)
    writer.wait()
    return sample


def _arrivals(suite: Suite, daemon: Daemon, lines: int, gap_ms: int) -> Sample:
    command = "exec " + " ".join(suite.tools.argv("ticker", lines, gap_ms * 1000))
    sample = suite.tools.run("arrival", *daemon.at(daemon.command(command, SSE)))
    if sample["count"] != lines:
        raise RuntimeError(f"{sample['count']:.0f} of {lines} lines arrived")
    return sample
