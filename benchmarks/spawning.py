"""How long the call that starts a process takes, with a small heap and with a large one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from benchmarks.report import Figure, Target, median, spread
from benchmarks.suite import Suite
from benchmarks.tools import Sample
from execd.posix import spawn

T17 = (Target("T17", "floor", 3.0),)
_PAGE = 4096


def spawning(suite: Suite) -> Iterator[Figure]:
    """Ballast on and off in turn, in this process."""
    count = suite.scaled(100, 40)
    megabytes = 512
    without: list[Sample] = []
    with_ballast: list[Sample] = []
    _calls(20)
    for _ in range(2 * suite.rounds + 1):  # short and many: a busy moment of the machine spoils a whole one
        without.append(_calls(count))
        ballast = bytearray(megabytes << 20)
        ballast[::_PAGE] = b"\x01" * (len(ballast) // _PAGE)  # touch every page: it counts once it is there
        with_ballast.append(_calls(count))
        del ballast
    for key in ("p50_ms", "p99_ms"):
        yield Figure(
            f"spawn call with {megabytes} MB of ballast, {key[:3]}",
            "ms",
            median(with_ballast, key),
            median(without, key),
            None,
            T17 if key == "p50_ms" else (),
            runs=spread(with_ballast, key),
        )


def _calls(count: int) -> Sample:
    request = spawn.Request(None, ("/bin/true",), dict(os.environ), None, None)
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        process = spawn.spawn(request)
        took.append(time.perf_counter() - begun)
        os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED | os.WNOWAIT)
        process.reap()
        for fd in (process.pidfd, process.stdout, process.stderr):
            os.close(fd)
    took.sort()
    return {"p50_ms": took[count // 2] * 1e3, "p99_ms": took[count * 99 // 100] * 1e3}
