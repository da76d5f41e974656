"""OutputLog against a model that keeps everything and slices."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from execd.posix.ringfile import RingFile
from execd.services import output
from execd.services.blocks import BLOCK_OVERHEAD, STDOUT, Piece
from execd.services.output import OutputLog
from execd.services.reader import Reader
from tests.properties import bounded

BLOCK_BYTES = 48  # small, so that short runs make many blocks
MAX_BLOCKS = 6


class Follower:
    """An attached reader, and the read from disk that it has under way."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.loading: tuple[int, int] | None = None
        self.limit = 0


class OutputLogMachine(RuleBasedStateMachine):
    """What an owner may do with a log, in any order. The disk is a real ring file."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        for name, value in (("BLOCK_BYTES", BLOCK_BYTES), ("MAX_BLOCKS", MAX_BLOCKS)):
            self.cleanup.enter_context(patch.object(output, name, value))
        self.directory = self.cleanup.enter_context(tempfile.TemporaryDirectory())
        self.directory_fd = os.open(self.directory, os.O_RDONLY)
        self.cleanup.callback(os.close, self.directory_fd)
        self.data = bytearray()
        self.streams = bytearray()  # the stream of each byte
        self.followers: list[Follower] = []
        self.in_flight: tuple[int, list[bytes | bytearray]] | None = None

    @initialize(memory=st.integers(500, 3000), disk=st.integers(1, 700))
    def make(self, memory: int, disk: int) -> None:
        self.log = OutputLog(memory, disk)
        self.disk_limit = disk
        self.ring = RingFile(self.directory_fd, "ring", disk)
        self.cleanup.callback(self.ring.close)

    def teardown(self) -> None:
        self.cleanup.close()

    # What the owner does

    @rule(runs=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), min_size=1, max_size=12))
    def append(self, runs: list[tuple[int, int]]) -> None:
        for stream, size in runs:
            if not self.log.full:  # as `full` demands of an owner
                data = bytes((len(self.data) + i) * 37 % 251 for i in range(size))
                self.log.append(stream, data)
                self.data += data
                self.streams += bytes([stream]) * size

    @precondition(lambda self: self.log.sealed_at is None and len(self.data) > 100)
    @rule(left_behind=st.integers(0, 3))
    def seal(self, left_behind: int) -> None:
        self.log.seal()
        assert self.log.sealed_at == len(self.data)
        self.append([(self.streams[-1], 20)] * left_behind)

    @precondition(lambda self: self.in_flight is None)
    @rule(keep=st.integers(0, 400), write_at_once=st.booleans())
    def begin_spill(self, keep: int, write_at_once: bool) -> None:
        start = self.log.memory_start
        buffers = self.log.overflow(keep)
        if buffers:
            assert b"".join(buffers) == self.data[start : start + sum(map(len, buffers))]
            self.in_flight = (start, [bytes(buffer) for buffer in buffers])
            if write_at_once:
                self.ring.write(*self.in_flight)

    @precondition(lambda self: self.in_flight is not None)
    @rule(refused=st.sampled_from((False, False, False, True)))
    def end_spill(self, refused: bool) -> None:
        assert self.in_flight is not None
        if not refused:
            self.ring.write(*self.in_flight)
            self.log.spilled()
        elif self.log.unread_overflow():
            self.log.keep_overflow()
        else:
            self.log.drop_overflow()
            self.ring.remove()
        self.in_flight = None

    @rule(keep=st.integers(0, 400))
    def spill(self, keep: int) -> None:
        if self.in_flight is None:
            self.begin_spill(keep, True)
        if self.in_flight is not None:
            self.end_spill(False)

    @precondition(lambda self: self.in_flight is None and not self.followers and len(self.data) > 1000)
    @rule()
    def drop_disk(self) -> None:
        self.log.drop_disk()
        self.ring.remove()

    # What readers do

    @rule(offset=st.integers(-50, 3000))
    def attach(self, offset: int) -> None:
        if len(self.followers) < 3:
            reader = self.log.reader(offset)
            assert reader.offset == min(max(offset, self.kept_from()), self.log.end)
            self.followers.append(Follower(reader))

    def kept_from(self) -> int:
        if self.in_flight is None:
            return self.log.start
        offset, buffers = self.in_flight
        return max(self.log.start, offset + sum(map(len, buffers)) - self.disk_limit)

    @precondition(lambda self: self.followers)
    @rule(which=st.integers(0, 2))
    def detach(self, which: int) -> None:
        self.log.detach(self.followers.pop(which % len(self.followers)).reader)

    @precondition(lambda self: self.followers)
    @rule(which=st.integers(0, 2), limit=st.integers(1, 400))
    def read(self, which: int, limit: int) -> None:
        follower = self.followers[which % len(self.followers)]
        reader = follower.reader
        if follower.loading is None:
            follower.loading, follower.limit = reader.on_disk(limit), limit
            if follower.loading is not None:
                return  # other things happen before the disk answers
            offset = reader.offset
            pieces = reader.take(limit)
        else:
            offset, length = follower.loading
            assert 0 < length <= self.log.memory_start - offset
            pieces = reader.take_loaded(offset, self.ring.read(offset, length))
            follower.loading = None
        self.check_pieces(reader, offset, pieces, follower.limit)

    def check_pieces(self, reader: Reader, offset: int, pieces: list[Piece], limit: int) -> None:
        stop = len(self.data) if self.log.sealed_at is None else self.log.sealed_at
        assert pieces or offset >= stop, "there was something to read"
        assert sum(len(piece.data) for piece in pieces) <= limit or len(pieces) == 1
        for piece in pieces:
            assert piece.data == self.data[offset : offset + len(piece.data)]
            assert piece.block <= offset
            assert set(self.streams[piece.block : piece.end]) == {piece.stream}
            offset += len(piece.data)
            assert piece.end == offset <= stop
        assert reader.offset == offset

    @rule(offset=st.integers(0, 3000), limit=st.integers(1, 400))
    def page(self, offset: int, limit: int) -> None:
        offset = min(max(offset, self.log.start), self.log.end)
        on_disk = self.log.memory_start - offset
        if on_disk > 0:
            found = self.ring.read(offset, min(limit, on_disk))
        else:
            found = self.log.read_raw(offset, limit)
        assert found == self.data[offset : offset + len(found)]
        assert found or offset == self.log.end

    @rule(offset=st.integers(0, 3000))
    def offsets(self, offset: int) -> None:
        offset = min(max(offset, self.log.start), self.log.end)
        stdout = self.streams[:offset].count(STDOUT)
        assert self.log.offsets_at(offset) == (stdout, offset - stdout)

    # What holds at all times

    @invariant()
    def all_is_well(self) -> None:
        log = self.log
        assert 0 <= log.start <= log.memory_start <= log.end == len(self.data)
        assert log.memory_start - log.start <= self.disk_limit
        for follower in self.followers:
            assert follower.reader.at_end or follower.reader.offset >= log.start, "lost bytes"
        overhead = log.memory_bytes - (log.end - log.memory_start)
        assert overhead == BLOCK_OVERHEAD * len(log._blocks)
        assert log.full == (log.memory_bytes >= log.memory_limit)
        assert len(log._index) <= MAX_BLOCKS + 2 + log.memory_limit // BLOCK_OVERHEAD
        stdout = self.streams.count(STDOUT)
        assert log.totals() == (stdout, len(self.data) - stdout)
        dropped = self.streams[: log.start].count(STDOUT)
        assert log.dropped() == (dropped, log.start - dropped)


TestOutputLog = OutputLogMachine.TestCase
TestOutputLog.settings = bounded(250, stateful_step_count=60)
