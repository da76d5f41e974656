"""The index of blocks: which stream a byte belongs to, and how many of each came before."""

from __future__ import annotations

from execd.services.blocks import STDERR, STDOUT, Index


def made() -> Index:
    index = Index()
    index.add(0, STDOUT, 0)  # [0, 10)
    index.add(10, STDERR, 10)  # [10, 15)
    index.add(15, STDOUT, 10)  # [15, ...)
    return index


def test_a_byte_is_found_in_its_block() -> None:
    index = made()
    assert [index.find(offset) for offset in (0, 9, 10, 14, 15, 99)] == [0, 0, 1, 1, 2, 2]
    assert [(index.start(i), index.stream(i)) for i in range(3)] == [(0, STDOUT), (10, STDERR), (15, STDOUT)]


def test_stdout_bytes_before_an_offset_are_counted_within_its_block() -> None:
    index = made()
    assert index.stdout_before(0, 4) == 4
    assert index.stdout_before(1, 12) == 10
    assert index.stdout_before(2, 20) == 15


def test_forgetting_keeps_the_block_that_holds_the_offset() -> None:
    index = made()
    index.forget_before(9)
    assert len(index) == 3
    index.forget_before(12)
    assert (len(index), index.start(0), index.stdout_before(0, 12)) == (2, 10, 10)
    index.forget_before(1000)
    assert (len(index), index.start(0)) == (1, 15)


def test_offsets_beyond_four_gigabytes_are_exact() -> None:
    index = Index()
    index.add(2**40 + 1, STDERR, 2**39)
    assert (index.start(0), index.stream(0)) == (2**40 + 1, STDERR)
    assert index.stdout_before(0, 2**40 + 5) == 2**39


def test_an_empty_index_finds_nothing() -> None:
    assert Index().find(0) == -1
