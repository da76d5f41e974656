"""What encoding a line of output costs, in process, against one `orjson.dumps` of a dict a line."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterator
from functools import partial

import orjson

from benchmarks.report import Figure, Target, median, spread
from benchmarks.suite import Suite
from benchmarks.tools import Sample, interleaved
from execd.api.encoders import encoder
from execd.api.framing import Framing
from execd.services.blocks import STDOUT, Piece

T6 = (Target("T6", "floor", 0.25),)
_CHUNK = 64 * 1024  # what one read of a full pipe gives
_AT_ONCE = 2  # chunks that a stream takes together
_TEXT = 32 * 1024  # the default limit of one event's text


def encoding(suite: Suite) -> Iterator[Figure]:
    """Nanoseconds a line for three kinds of output."""
    for name, lines in _kinds(suite.scaled(200_000, 40_000)):
        pieces = _pieces(lines)
        cells = [(mode, frames) for mode in ("keep", "strip") for frames in (Framing.SSE, Framing.BARE)]
        measures = {
            f"{mode} {frames.name}": partial(_timed, len(lines), partial(_ours, mode, frames, pieces))
            for mode, frames in cells
        }
        floors = {
            f"floor {frames.name}": partial(_timed, len(lines), partial(_one_by_one, frames, lines))
            for frames in (Framing.SSE, Framing.BARE)
        }
        found = interleaved(suite.rounds + 2, **floors, **measures)
        for cell in measures:
            yield Figure(
                f"{name}, {cell}",
                "ns",
                median(found[cell], "ns"),
                median(found[f"floor {cell.split()[1]}"], "ns"),
                targets=T6,
                runs=spread(found[cell], "ns"),
            )


def _kinds(count: int) -> Iterator[tuple[str, list[bytes]]]:
    fixed = random.Random(1)
    yield "seq", [b"%d" % number for number in range(1, count + 1)]
    yield (
        "log with quotes",
        [b'level=info msg="request %d done" path="/a/b\\c" ms=%d' % (n, n % 997) for n in range(count)],
    )
    yield "base64", [base64.b64encode(fixed.randbytes(57)) for _ in range(count)]


def _pieces(lines: list[bytes]) -> list[list[Piece]]:
    """The lines as the log hands them out: whole lines, about a pipe's worth in a block."""
    batches: list[list[Piece]] = []
    block: list[bytes] = []
    size = end = 0
    for line in lines:
        block.append(line)
        size += len(line) + 1
        if size >= _CHUNK or line is lines[-1]:
            start, end = end, end + size
            piece = Piece(STDOUT, b"\n".join(block) + b"\n", end, start)
            if batches and len(batches[-1]) < _AT_ONCE:
                batches[-1].append(piece)
            else:
                batches.append([piece])
            block, size = [], 0
    return batches


def _ours(mode: str, frames: Framing, batches: list[list[Piece]]) -> int:
    encode = encoder(frames, mode, _TEXT).encode
    return sum(len(encode(batch)) for batch in batches)


def _one_by_one(frames: Framing, lines: list[bytes]) -> int:
    size = 0
    stamp = int(time.time() * 1000)
    for eid, line in enumerate(lines):
        event = {"type": "stdout", "text": line.decode("utf-8", "replace"), "timestamp": stamp, "eid": eid}
        size += len(frames.frame(orjson.dumps(event), eid))
    return size


def _timed(lines: int, work: Callable[[], int]) -> Sample:
    begun = time.perf_counter()
    work()
    return {"ns": (time.perf_counter() - begun) / lines * 1e9}
