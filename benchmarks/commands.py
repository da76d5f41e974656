"""What one command costs: latency, rate and CPU of `true`, against a bare spawn-read-reap loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.report import Figure, Target, median, spread
from benchmarks.subject import Daemon, execd
from benchmarks.suite import SHELL, Suite
from benchmarks.tools import Sample, interleaved

T1 = Target("T1", "floor", 1.8)
T2 = Target("T2", "floor", 0.45, at_most=False)
T3 = Target("T3", "floor", 0.6)
T4_RATE = Target("T4", "peer", 2.0, at_most=False)
T4_CPU = Target("T4", "peer", 0.5)


def latency(suite: Suite) -> Iterator[Figure]:
    """One command after another over a kept connection."""
    count = suite.scaled(400, 150)
    peer = suite.peer
    with execd() as daemon:
        _load(suite, daemon, 1, 20)
        found = interleaved(
            suite.rounds,
            floor=partial(suite.tools.run, "spawn", count, SHELL, "-c", "true"),
            execd=partial(_load, suite, daemon, 1, count),
            peer=partial(_load, suite, peer, 1, count) if peer else None,
        )
    for key in ("p50_ms", "p99_ms"):
        yield Figure(
            f"true, one after another, {key[:3]}",
            "ms",
            median(found["execd"], key),
            median(found["floor"], key),
            median(found["peer"], key) if peer else None,
            (T1,) if key == "p50_ms" else (),
            runs=spread(found["execd"], key),
        )
    yield from _cpu_figure(found, "one after another", ())


def rate(suite: Suite) -> Iterator[Figure]:
    """Commands a second at several degrees of concurrency; the floor is two bare loops side by side."""
    peer = suite.peer
    with execd() as daemon:
        _load(suite, daemon, 4, 50)
        for at_once in (1, 10, 16, 100):
            count = suite.scaled(1000 if at_once > 1 else 500, 200 if at_once > 1 else 100)
            found = interleaved(
                suite.rounds,
                floor=partial(_two_floors, suite, count // 2),
                execd=partial(_load, suite, daemon, at_once, count),
                peer=partial(_load, suite, peer, at_once, count // 2) if peer else None,
            )
            p50, p99 = median(found["execd"], "p50_ms"), median(found["execd"], "p99_ms")
            yield Figure(
                f"true, {at_once} at once",
                "/s",
                median(found["execd"], "rate"),
                median(found["floor"], "rate"),
                median(found["peer"], "rate") if peer else None,
                (T2, T4_RATE) if at_once == 10 else (),
                note=f"p50 {p50:.1f} ms, p99 {p99:.1f} ms",
                runs=spread(found["execd"], "rate"),
            )
            if at_once in (10, 100):
                yield from _cpu_figure(found, f"{at_once} at once", (T3, T4_CPU) if at_once == 10 else ())


def _cpu_figure(found: dict[str, list[Sample]], what: str, targets: tuple[Target, ...]) -> Iterator[Figure]:
    peer = found.get("peer", [])
    yield Figure(
        f"CPU of the daemon a command, {what}",
        "ms",
        median(found["execd"], "cpu_ms"),
        median(found["floor"], "child_cpu_ms"),
        median(peer, "cpu_ms") if peer and all("cpu_ms" in sample for sample in peer) else None,
        targets,
        note="floor: CPU of the command itself" if targets else "",
        runs=spread(found["execd"], "cpu_ms"),
    )


def _two_floors(suite: Suite, count: int) -> Sample:
    running = [suite.tools.start("spawn", count, SHELL, "-c", "true") for _ in range(2)]
    first, second = (suite.tools.result(process) for process in running)
    return {
        "rate": first["rate"] + second["rate"],
        "child_cpu_ms": (first["child_cpu_ms"] + second["child_cpu_ms"]) / 2,
    }


def _load(suite: Suite, daemon: Daemon, at_once: int, count: int) -> Sample:
    request = daemon.command("true")
    before = daemon.usage()
    sample = dict(suite.tools.run("load", *daemon.at(request), at_once, count, 300, 0, 0))
    after = daemon.usage()
    if sample["refused"] or (sample["broken"] and daemon is not suite.peer):
        raise RuntimeError(
            f"of {count} commands {sample['refused']:.0f} refused, {sample['broken']:.0f} broken off"
        )
    if before and after:
        sample["cpu_ms"] = (after.cpu_seconds - before.cpu_seconds) / sample["count"] * 1e3
    return sample
