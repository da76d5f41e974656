"""Incomplete characters, against Python's incremental UTF-8 decoder."""

from __future__ import annotations

import codecs
from itertools import product

from execd.services.lines import incomplete_tail

EDGES = bytes.fromhex(
    "00 0a 41 7f 80 81 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f7 f8 ff"
)
"""Both ends of every range in table 3-7 of the Unicode standard, and what lies beside them."""


def pending(data: bytes) -> int:
    """How many bytes the decoder waits with. It waits for more of a surrogate too, for the sake of another
    error handler: all of its bytes are invalid.
    """
    if data[-2:-1] == b"\xed" and data[-1] in range(0xA0, 0xC0):
        return 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


def test_every_byte_and_every_pair() -> None:
    for length in (1, 2):
        for values in product(range(256), repeat=length):
            data = bytes(values)
            assert incomplete_tail(data) == pending(data), data


def test_every_row_of_three_and_four_bytes_at_the_edges_of_the_ranges() -> None:
    for length in (3, 4):
        for values in product(EDGES, repeat=length):
            data = bytes(values)
            if values[-1] >= 0x80 or length == 3:  # ASCII at the end is never incomplete: seen above
                assert incomplete_tail(data) == pending(data), data


def test_cutting_there_changes_no_text() -> None:
    for values in product(EDGES, repeat=3):
        data = b"a" + bytes(values)
        cut = len(data) - incomplete_tail(data)
        parts = data[:cut].decode("utf-8", "replace") + data[cut:].decode("utf-8", "replace")
        assert parts == data.decode("utf-8", "replace")
