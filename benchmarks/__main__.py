"""`python -m benchmarks`: measure, print a row a figure, say which targets were missed."""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

from benchmarks import (
    commands,
    delivery,
    downloads,
    encoding,
    idle,
    listings,
    liveness,
    memory,
    spawning,
    streaming,
    uploads,
)
from benchmarks.report import Report
from benchmarks.subject import peer
from benchmarks.suite import Group, Suite
from benchmarks.tools import Tools

_BUSY = 0.7  # load average from which on others are felt

GROUPS = {
    "latency": Group("one command after another; floor: a spawn-read-reap loop in C", commands.latency),
    "rate": Group("commands at once; floor: two such loops side by side, summed", commands.rate),
    "delivery": Group("a line's way to the client; floor: through a bare pipe", delivery.delivery),
    "stream": Group("whole outputs; floor: the same command into `cat >/dev/null`", streaming.streaming),
    "encoder": Group(
        "time a line, in process; floor: the same with orjson.dumps of a dict a line", encoding.encoding
    ),
    "start": Group("from exec to answers; floor: the interpreter doing nothing", idle.start),
    "idle": Group("with nothing to do; no floor", idle.idle),
    "spawn": Group("the call that starts a process; floor: without the ballast", spawning.spawning),
    "liveness": Group("a ping every 2 ms; floor: a C server under the same load", liveness.liveness),
    "download": Group("files to a client; floor: nginx, else sendfile from C", downloads.downloads),
    "upload": Group("files from a client; floor: recv and write in C, Starlette's forms", uploads.uploads),
    "listing": Group("whole trees, pages, searches; floor: the same walk in C", listings.listings),
    "stalled": Group("memory beside an endless output; no floor", memory.stalled),
    "leaks": Group("what is left behind; no floor", memory.leaks),
}


def main() -> None:
    """Run the chosen groups."""
    options = _arguments()
    began = time.monotonic()
    with Tools() as tools:
        suite = Suite(tools, peer(tools.path), options.quick)
        report = Report(peer=suite.peer is not None)
        print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, ", end="")
        print(f"Python {platform.python_version()}; medians of {suite.rounds} interleaved runs")
        if os.getloadavg()[0] > _BUSY:
            print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): tails and times will be off.")
        for name in options.only or GROUPS:
            report.begin(name, GROUPS[name].about)
            for figure in GROUPS[name].measure(suite):
                report.add(name, figure)
        report.finish(time.monotonic() - began)
        if options.json:
            report.write_json(options.json)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="a group; may be repeated")
    parser.add_argument("--quick", action="store_true", help="smaller runs: about a minute, noisier")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
