"""How fast output goes through, what it costs, and what memory it needs meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import BARE, SSE, Daemon, execd
from benchmarks.suite import SHELL, Suite
from benchmarks.tools import Sample, interleaved

_BASE64_LINE = 76  # characters, without its end
_T5_SEQ = Target("T5", "floor", 8.0)
_T5_BASE64 = Target("T5", "floor", 4.0)
_PEER_PART = 20


@dataclass(frozen=True, slots=True)
class Output:
    """A command and what it writes."""

    name: str
    command: str
    megabytes: float
    lines: int
    targets: tuple[Target, ...] = ()


def streaming(suite: Suite) -> Iterator[Figure]:
    """Whole outputs over HTTP, in both modes and two framings; the floor is the same into `cat`."""
    peer = suite.peer
    with execd() as keep, execd("--line-endings", "strip") as strip:
        for output, part in zip(_outputs(suite), _outputs(suite, _PEER_PART), strict=True):
            cells = [
                (f"{mode} {name}", daemon, accept)
                for mode, daemon in (("keep", keep), ("strip", strip))
                for name, accept in (("SSE", SSE), ("bare", BARE))
            ]
            measures = {cell: partial(_read, suite, daemon, output, accept) for cell, daemon, accept in cells}
            found = interleaved(suite.rounds, floor=partial(_floor, output), **measures)
            peer_seconds = _of_peer(suite, peer, output, part) if peer else None
            floor = median(found["floor"], "seconds")
            for cell, _, _ in cells:
                runs = found[cell]
                yield Figure(
                    f"{output.name}, {cell}",
                    "s",
                    median(runs, "seconds"),
                    floor,
                    peer_seconds,
                    output.targets,
                    _note(runs, output),
                    spread(runs, "seconds"),
                    {key: median(runs, key) for key in runs[0]},
                )


def _note(runs: list[Sample], output: Output) -> str:
    seconds = median(runs, "seconds")
    lines = f"{output.lines / seconds / 1e6:.2f} M lines/s, " if output.lines > 1 else ""
    return (
        f"{lines}{output.megabytes / seconds:.0f} MB/s, {median(runs, 'cpu_ms_per_mb'):.2f} ms CPU a MB, "
        f"peak RSS {median(runs, 'peak_mb'):.1f} MB, client's CPU {median(runs, 'cpu_seconds'):.2f} s"
    )


def _outputs(suite: Suite, part: int = 1) -> list[Output]:
    """What is streamed; `part` 20: a twentieth of it."""
    numbers = suite.scaled(5_000_000, 2_000_000) // part
    ys = suite.scaled(2_000_000, 1_000_000) // part
    raw = suite.scaled(150_000_000, 15_000_000) // part
    zeros = (suite.scaled(1024, 40) << 20) // part
    coded = -(-zeros // 3) * 4
    rows = -(-coded // _BASE64_LINE)
    return [
        Output(f"seq 1 {numbers}", f"seq 1 {numbers}", _seq_bytes(numbers) / 1e6, numbers, (_T5_SEQ,)),
        Output(f"yes | head -n {ys}", f"yes | head -n {ys}", ys * 2 / 1e6, ys),
        Output(
            f"one line of {raw * 4 // 3_000_000} MB of base64",
            f"head -c {raw} /dev/zero | base64 -w 0",
            raw // 3 * 4 / 1e6,
            1,
        ),
        Output(
            f"head -c {zeros >> 20}M /dev/zero | base64",
            f"head -c {zeros} /dev/zero | base64",
            (coded + rows) / 1e6,
            rows,
            (_T5_BASE64,),
        ),
    ]


def _seq_bytes(last: int) -> int:
    """How much `seq 1 last` writes."""
    return last + sum(last - smallest + 1 for smallest in (int("1" + "0" * n) for n in range(len(str(last)))))


def _floor(output: Output) -> Sample:
    begun = time.perf_counter()
    subprocess.run([SHELL, "-c", f"{output.command} | cat >/dev/null"], check=True)
    return {"seconds": time.perf_counter() - begun}


def _read(suite: Suite, daemon: Daemon, output: Output, accept: str) -> Sample:
    daemon.reset_peak()
    before = daemon.usage()
    sample = dict(suite.tools.run("stream", *daemon.at(daemon.command(output.command, accept)), 0, 0))
    after = daemon.usage()
    if not sample["complete"]:
        raise RuntimeError(f"{output.name}: the stream did not end with execution_complete")
    if output.lines > 1 and max(sample["escapes"], sample["newlines"] / 2) < output.lines:
        raise RuntimeError(f"{output.name}: lines are missing")
    if sample["bytes"] < output.megabytes * 1e6:
        raise RuntimeError(f"{output.name}: bytes are missing")
    if before and after:
        sample["cpu_ms_per_mb"] = (after.cpu_seconds - before.cpu_seconds) * 1e3 / output.megabytes
        sample["peak_mb"] = after.peak_mb
    return sample


def _of_peer(suite: Suite, peer: Daemon, whole: Output, part: Output) -> float:
    # A part, scaled up: a peer that spends tens of microseconds on a line would need minutes.
    runs = [_read(suite, peer, part, SSE) for _ in range(suite.rounds)]
    return median(runs, "seconds") * whole.megabytes / part.megabytes
