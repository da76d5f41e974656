"""RingFile against a bytearray that keeps everything."""

from __future__ import annotations

import os
import tempfile

from hypothesis import given
from hypothesis import strategies as st

from execd.posix.ringfile import RingFile
from tests.properties import bounded

sizes = st.lists(st.integers(0, 70), min_size=1, max_size=4)
steps = st.lists(st.tuples(sizes, st.booleans(), st.floats(0, 1), st.floats(0, 1)), max_size=12)


@bounded(200)
@given(capacity=st.integers(1, 100), steps=steps)
def test_the_last_bytes_can_be_read_at_any_offset(
    capacity: int, steps: list[tuple[list[int], bool, float, float]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        directory_fd = os.open(directory, os.O_RDONLY)
        ring = RingFile(directory_fd, "ring", capacity)
        everything = bytearray()
        for batch, closed, where, how_much in steps:
            buffers = [os.urandom(size) for size in batch]
            ring.write(len(everything), buffers)
            everything += b"".join(buffers)
            if closed:
                ring.close()
            kept_from = max(0, len(everything) - capacity)
            offset = kept_from + round(where * (len(everything) - kept_from))
            length = round(how_much * (len(everything) - offset))
            assert ring.read(offset, length) == everything[offset : offset + length]
            assert ring.size == min(capacity, len(everything))
        ring.remove()
        assert os.listdir(directory) == []
        os.close(directory_fd)
