"""OutputLog: what is kept, what goes, what readers get."""

from __future__ import annotations

import pytest

from execd.services import output
from execd.services.blocks import BLOCK_BYTES, BLOCK_OVERHEAD, STDERR, STDOUT
from execd.services.output import OutputLog
from execd.services.reader import Reader

MEMORY = 64 * 1024
DISK = 256 * 1024


def taken(reader: Reader, limit: int = 10**9) -> list[tuple[int, bytes]]:
    return [(piece.stream, piece.data) for piece in reader.take(limit)]


def test_streams_stay_apart_and_keep_their_order() -> None:
    log = OutputLog(MEMORY, DISK)
    for stream, data in ((STDOUT, b"a"), (STDERR, b"b"), (STDERR, b"c"), (STDOUT, b""), (STDOUT, b"d")):
        log.append(stream, data)
    with log.reader() as reader:
        assert taken(reader) == [(STDOUT, b"a"), (STDERR, b"bc"), (STDOUT, b"d")]
        assert taken(reader) == []
    assert log.totals() == (2, 2)
    assert log.offsets_at(2) == (1, 1)


def test_a_reader_is_woken_by_output_by_the_seal_and_by_what_is_there_already() -> None:
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        assert reader.wake.is_set()
        reader.wake.clear()
        log.append(STDOUT, b"")
        assert not reader.wake.is_set()
        log.append(STDOUT, b"a")
        assert reader.wake.is_set()
        reader.wake.clear()
        log.seal()
        assert reader.wake.is_set()


def test_the_owner_hears_of_every_byte_read_and_every_reader_that_leaves() -> None:
    log = OutputLog(MEMORY, DISK)
    heard = []
    log.on_progress = lambda: heard.append(log.attached)
    log.append(STDOUT, b"a")
    with log.reader() as reader:
        reader.take(10)
        assert heard == [1]
    assert heard == [1, 0]


def test_small_appends_of_one_stream_share_a_block_up_to_its_size() -> None:
    log = OutputLog(10 * BLOCK_BYTES, DISK)
    for _ in range(BLOCK_BYTES):
        log.append(STDOUT, b"x")
    assert log.memory_bytes == BLOCK_BYTES + 2 * BLOCK_OVERHEAD


def test_nothing_follows_a_split_line_in_its_block() -> None:
    log = OutputLog(MEMORY, DISK, event_limit=64)
    log.append(STDOUT, b"x" * 63)
    log.append(STDOUT, b"y")
    with log.reader() as reader:
        assert [(piece.data, piece.block) for piece in reader.take(1000)] == [(b"x" * 63, 0), (b"y", 63)]


def test_nobody_reads_and_there_is_no_disk_so_the_oldest_bytes_go() -> None:
    log = OutputLog(MEMORY, 0)
    log.append(STDOUT, b"o" * MEMORY)
    log.append(STDERR, b"e" * 100)
    assert log.memory_bytes > MEMORY
    assert b"".join(log.overflow(MEMORY // 2)) == b"o" * MEMORY
    assert not log.unread_overflow()
    log.drop_overflow()
    assert not log.full
    assert (log.start, log.end) == (MEMORY, MEMORY + 100)
    assert log.dropped() == (MEMORY, 0)
    assert log.reader(0).offset == MEMORY


def test_an_attached_reader_keeps_the_log_full_until_it_has_read() -> None:
    log = OutputLog(MEMORY, 0)
    with log.reader() as reader:
        log.append(STDOUT, b"o" * MEMORY)
        assert log.memory_bytes > MEMORY
        assert log.overflow(0) == []
        reader.take(MEMORY)
        assert log.overflow(0) != []
        log.drop_overflow()
        assert not log.full


def test_what_is_written_to_disk_stays_in_memory_until_it_is_there() -> None:
    log = OutputLog(MEMORY, DISK)
    log.append(STDOUT, b"old")
    buffers = log.overflow(0)
    log.append(STDOUT, b"new")  # must not change what is being written
    assert buffers == [b"old"]
    assert log.overflow(0) == []
    assert log.read_raw(0, 10) == b"oldnew"
    log.spilled()
    assert (log.start, log.memory_start) == (0, 3)
    assert log.read_raw(3, 10) == b"new"
    assert log.memory_bytes == 3 + BLOCK_OVERHEAD


def test_the_disk_keeps_the_last_bytes_up_to_its_limit() -> None:
    log = OutputLog(MEMORY, 100)
    for number in range(4):
        log.append(STDOUT, b"%d" % number * 50)
        log.overflow(0)
        log.spilled()
    assert (log.start, log.memory_start, log.end) == (100, 200, 200)


def test_bytes_count_as_gone_as_soon_as_others_begin_to_take_their_place() -> None:
    log = OutputLog(MEMORY, 100)
    log.append(STDOUT, b"a" * 100)
    log.overflow(0)
    log.spilled()
    log.append(STDERR, b"b" * 70)
    log.overflow(0)
    assert log.start == 70
    assert log.dropped() == (70, 0)


def test_a_reader_that_comes_while_the_disk_is_written_starts_after_what_goes() -> None:
    log = OutputLog(MEMORY, 100)
    log.append(STDOUT, b"a" * 150)
    log.overflow(0)
    with log.reader() as reader:
        log.spilled()
        assert reader.offset == log.start == 50


def test_many_tiny_blocks_never_cost_a_reader_that_lags_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BLOCKS", 8)
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        for number in range(20):
            log.append(number % 2, b"x")
        log.overflow(0)
        log.spilled()
        assert log.start == reader.offset == 0
        for number in range(100):  # the index is at its bound: memory takes no more either
            log.append(number % 2, b"y")
            assert log.overflow(0) == []
        reader.take_loaded(0, b"x" * 20)
        assert len(log.overflow(0)) == 100
    log.spilled()
    assert log.end - log.start == 8


def test_a_reader_stops_at_the_seal_in_memory() -> None:
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        log.append(STDOUT, b"own")
        log.seal()
        log.append(STDOUT, b"left behind")
        assert taken(reader) == [(STDOUT, b"own")]
        assert reader.at_end
        assert taken(reader) == []


def test_a_reader_stops_at_the_seal_on_disk() -> None:
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        log.append(STDOUT, b"own")
        log.seal()
        for stream in (STDOUT, STDERR, STDOUT):
            log.append(stream, b"left behind")
        log.overflow(0)
        log.spilled()
        assert reader.on_disk(1000) == (0, 3)
        assert [piece.data for piece in reader.take_loaded(0, b"own")] == [b"own"]
        assert reader.at_end
        assert reader.on_disk(1000) is None


def test_a_reader_at_the_seal_holds_up_nobody() -> None:
    log = OutputLog(MEMORY, 0)
    with log.reader() as reader:
        log.append(STDOUT, b"own")
        reader.take(10)
        log.seal()
        log.append(STDOUT, b"x" * MEMORY)
        assert len(log.overflow(0)) == 2
        assert not log.unread_overflow()
        log.drop_overflow()
        assert reader.at_end
        assert reader.on_disk(10) is None
        assert taken(reader) == []


def test_a_log_without_output_is_at_its_end_once_sealed() -> None:
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        before = reader.at_end
        log.seal()
        assert not before
        assert reader.at_end
        log.append(STDERR, b"left behind")
        assert taken(reader) == []
    assert log.offsets_at(0) == (0, 0)


def test_a_failed_write_leaves_unread_output_in_memory() -> None:
    log = OutputLog(MEMORY, DISK)
    with log.reader() as reader:
        log.append(STDOUT, b"o" * MEMORY)
        log.overflow(0)
        assert log.unread_overflow()
        log.keep_overflow()
        assert taken(reader) == [(STDOUT, b"o" * MEMORY)]
        log.overflow(0)
        assert not log.unread_overflow()


def test_pieces_from_disk_are_told_apart_by_stream() -> None:
    log = OutputLog(MEMORY, DISK)
    log.append(STDOUT, b"aa")
    log.append(STDERR, b"bbb")
    log.append(STDOUT, b"c")
    log.overflow(0)
    log.spilled()
    pieces = log.pieces_at(1, b"abbbc")
    assert [(p.stream, p.data, p.end, p.block) for p in pieces] == [
        (STDOUT, b"a", 2, 0),
        (STDERR, b"bbb", 5, 2),
        (STDOUT, b"c", 6, 5),
    ]
    assert log.span_on_disk(0, 1) == 2
    assert log.span_on_disk(0, 5) == 5
