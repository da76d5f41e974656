"""Replacing in chunks is bytes.replace on the whole, wherever the chunks end."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import example, given, settings
from hypothesis import strategies as st

from execd.posix import replacing
from execd.posix.replacing import Replacer

FEW = st.binary(max_size=60).map(lambda data: bytes(byte % 3 + 97 for byte in data))
"""Of three letters: they match, and overlap, all the time."""
TEXTS = st.one_of(FEW, st.binary(max_size=60))


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        if size and data:
            yield data[:size]
            data = data[size:]
    if data:
        yield data


def _replaced(replacer: Replacer, chunks: Iterator[bytes]) -> tuple[bytes, int]:
    out: list[bytes] = []
    count = replacer.replace(chunks, out.append)
    return b"".join(out), count


@given(
    data=TEXTS,
    old=st.one_of(FEW, st.binary(max_size=5)).filter(bool),
    new=TEXTS,
    sizes=st.lists(st.integers(0, 7), max_size=40),
)
@example(data=b"aaaaa", old=b"aa", new=b"b", sizes=[1, 1, 1, 1, 1])
@example(data=b"aaaa", old=b"aa", new=b"aaa", sizes=[3])
@example(data=b"ab", old=b"ab", new=b"", sizes=[1])
@example(data=b"", old=b"a", new=b"b", sizes=[])
@settings(max_examples=1000, deadline=None, database=None)
def test_any_chunks_give_what_the_whole_gives(data: bytes, old: bytes, new: bytes, sizes: list[int]) -> None:
    replacer = Replacer(old, new)
    assert _replaced(replacer, _cut(data, sizes)) == (data.replace(old, new), data.count(old))
    assert sum(replacer.count(_cut(data, sizes))) == data.count(old)


@given(data=FEW, old=FEW.filter(bool), new=FEW, at=st.integers(0, 60))
@settings(max_examples=300, deadline=None, database=None)
def test_a_piece_of_the_data_itself_is_found(data: bytes, old: bytes, new: bytes, at: int) -> None:
    old = data[at : at + len(old)] or old
    sizes = [1] * len(data)
    expected = (data.replace(old, new), data.count(old))
    assert _replaced(Replacer(old, new), _cut(data, sizes)) == expected


def test_a_long_replacement_of_many_matches_is_written_in_pieces() -> None:
    written: list[int] = []
    new = b"x" * 3_000_000
    count = Replacer(b"a", new).replace(iter([b"a" * 50]), lambda data: written.append(len(data)))
    assert (count, sum(written)) == (50, 50 * len(new))
    assert max(written) <= replacing._JOINED
