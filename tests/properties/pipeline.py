"""The way of output from the pipe to the client: chunks -> lines -> log -> events, and the events read
back by an independent parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from execd.api.encoders import encoder
from execd.api.framing import OUTPUT_EID, Framing
from execd.services.lines import LineAssembler
from execd.services.output import OutputLog
from tests.properties import awkward_bytes
from tests.support import sse

NAMES = ("stdout", "stderr")


@dataclass(frozen=True)
class Event:
    """An output event, without its time."""

    stream: int
    text: str
    eid: int


@dataclass(frozen=True)
class Chunk:
    """One read from a pipe, and what happens after it."""

    stream: int
    data: bytes
    flush: bool = False
    """There is silence: unfinished lines are passed on."""
    take: int = 0
    """The client reads this much from the log (0: nothing)."""


def chunks(*, flushes: bool) -> st.SearchStrategy[list[Chunk]]:
    """Output of two streams, cut anywhere, read at any time."""
    chunk = st.builds(
        Chunk,
        stream=st.integers(0, 1),
        data=awkward_bytes(),
        flush=st.booleans() if flushes else st.just(False),
        take=st.sampled_from((0, 0, 1, 50, 10**6)),
    )
    return st.lists(chunk, max_size=12)


def output_of(written: list[Chunk], stream: int) -> bytes:
    """Everything that was written to one stream."""
    return b"".join(chunk.data for chunk in written if chunk.stream == stream)


def sent(
    written: list[Chunk], framing: Framing, line_endings: str, limit: int, *, lagging: bool = False
) -> bytes:
    """The bytes that a client gets. `lagging`: it reads everything at the end."""
    log = OutputLog(10**9, 0, limit)
    encode = encoder(framing, line_endings, limit).encode
    assemblers = (LineAssembler(limit), LineAssembler(limit))
    body = b""
    with log.reader() as reader:
        for chunk in written:
            log.append(chunk.stream, assemblers[chunk.stream].feed(chunk.data))
            if chunk.flush:
                for stream in (0, 1):
                    log.append(stream, assemblers[stream].flush(final=False))
            if chunk.take and not lagging:
                body += encode(reader.take(chunk.take))
        for stream in (0, 1):
            log.append(stream, assemblers[stream].flush(final=True))
        log.seal()
        while pieces := reader.take(1000):
            body += encode(pieces)
    assert reader.offset == log.end
    return body


def events_of(body: bytes, framing: Framing) -> list[Event]:
    """The events of a stream. Each has to be one line of ASCII JSON in a frame of its own."""
    assert body.isascii()
    found = []
    for text, outer_id in _frames(body.decode("ascii"), framing):
        assert "\n" not in text
        assert "\r" not in text
        record = json.loads(text)
        assert set(record) == {"type", "text", "timestamp", "eid"}
        assert outer_id in (None, str(record["eid"]))
        found.append(Event(NAMES.index(record["type"]), record["text"], record["eid"]))
    eids = [event.eid for event in found]
    assert eids == sorted(set(eids)), "eids are not strictly increasing"
    assert not eids or eids[0] > OUTPUT_EID
    return found


def _frames(body: str, framing: Framing) -> Iterator[tuple[str, str | None]]:
    if framing is Framing.SSE:
        yield from ((event.data, event.last_id) for event in sse.parse(body.encode()))
        return
    end = "\n" if framing is Framing.NDJSON else "\n\n"
    assert body == "" or body.endswith(end)
    yield from ((text, None) for text in body.split(end)[:-1])


def line_ends(data: bytes) -> list[int]:
    """Offsets after each line end: `\\n`, `\\r` or `\\r\\n`, found one byte at a time."""
    return [
        offset + 1
        for offset, byte in enumerate(data)
        if byte == 10 or (byte == 13 and data[offset + 1 : offset + 2] != b"\n")
    ]


def lines_of(data: bytes) -> list[bytes]:
    """The lines without their ends; the last one only if it is not empty."""
    starts = [0, *line_ends(data)]
    ends = [*starts[1:], len(data)]
    found = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    return [line.rstrip(b"\r\n") if line[-1:] in b"\r\n" else line for line in found if line]
