"""`keep` mode: the texts of a stream, put together, are its output."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from execd.api.framing import OUTPUT_EID, Framing
from tests.properties import bounded
from tests.properties.pipeline import Chunk, chunks, events_of, output_of, sent

framings = st.sampled_from(Framing)
limits = st.integers(8, 200)


@bounded(300)
@given(written=chunks(flushes=True), framing=framings, limit=limits)
def test_the_texts_put_together_are_the_output(written: list[Chunk], framing: Framing, limit: int) -> None:
    events = events_of(sent(written, framing, "keep", limit), framing)
    for stream in (0, 1):
        text = "".join(event.text for event in events if event.stream == stream)
        assert text == output_of(written, stream).decode("utf-8", "replace")
    assert all(event.text for event in events)


@bounded(150)
@given(written=chunks(flushes=True), framing=framings, limit=limits)
def test_the_eid_is_the_end_in_the_log_and_no_event_is_larger_than_the_limit(
    written: list[Chunk], framing: Framing, limit: int
) -> None:
    events = events_of(sent(written, framing, "keep", limit), framing)
    ends = [OUTPUT_EID, *(event.eid for event in events)]
    sizes = [end - start for start, end in pairwise(ends)]
    assert all(0 < size <= limit for size in sizes)
    for stream in (0, 1):
        of_stream = sum(size for size, event in zip(sizes, events, strict=True) if event.stream == stream)
        assert of_stream == len(output_of(written, stream))


@bounded(300)
@given(written=chunks(flushes=False), limit=st.integers(8, 60))
def test_an_event_ends_with_a_line_unless_the_line_is_longer_than_the_limit(
    written: list[Chunk], limit: int
) -> None:
    events = events_of(sent(written, Framing.NDJSON, "keep", limit), Framing.NDJSON)
    position, before = [0, 0], OUTPUT_EID
    for event in events:
        output = output_of(written, event.stream)
        position[event.stream] += event.eid - before
        before = event.eid
        end = position[event.stream]
        if end < len(output) and output[end - 1] not in b"\r\n":
            # up to 3 bytes of the next character stay behind
            assert len(_line_around(output, end)) >= limit - 3


def _line_around(output: bytes, offset: int) -> bytes:
    start = max(output.rfind(b"\n", 0, offset), output.rfind(b"\r", 0, offset)) + 1
    ends = [end + 1 for end in (output.find(b"\n", offset), output.find(b"\r", offset)) if end >= 0]
    return output[start : min(ends, default=len(output))]


@bounded(10)
@given(seed=st.integers(0, 10**6), size=st.integers(100_000, 400_000), cut=st.integers(1, 70_000))
def test_megabytes_of_one_line_arrive_whole(seed: int, size: int, cut: int) -> None:
    data = ("€" + "x" * (seed % 7)).encode() * (size // (3 + seed % 7))
    written = [Chunk(0, data[start : start + cut], take=10**6) for start in range(0, len(data), cut)]
    events = events_of(sent(written, Framing.NDJSON, "keep", 32 * 1024), Framing.NDJSON)
    assert "".join(event.text for event in events) == data.decode()
