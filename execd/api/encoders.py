"""Output as events: one pass in C over a whole chunk of lines, never a loop over them in Python.

An output event's `eid` is a position in the log, so it means the same to every reader. `keep`: two more
than the log offset after the event. `strip`: two more than the offset at which its block began, plus the
number of the line in the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring_ascii
from typing import Final

import orjson

from execd.api.framing import OUTPUT_EID, Framing, milliseconds
from execd.services.blocks import Piece
from execd.services.lines import text_cut

_DEL: Final = b"\x7f"
_SUFFIX_DIGITS: Final = 4
_SUFFIXES: Final = 10**_SUFFIX_DIGITS
_SHORT_BATCH: Final = 8 * 1024  # bytes of short lines encoded at once: the result fits the CPU's cache
_LONG_BATCH: Final = 32 * 1024  # the same of long lines, of which fewer make the same result (measured)
_SAMPLE: Final = 1024  # bytes that tell whether lines are short
_SHORT_LINE: Final = 32  # bytes; of two ways to encode many lines, each is faster on its side (measured)
_NAMES: Final = ("stdout", "stderr")


def _quoted(data: bytes) -> bytes:
    """Output as a JSON string; bytes that are no UTF-8 become U+FFFD."""
    if data.isascii():
        return orjson.dumps(data.decode("ascii"))
    return encode_basestring_ascii(data.decode("utf-8", "replace")).encode()


def merge(pieces: Sequence[Piece], limit: int) -> Iterable[Piece]:
    """Join neighbours of one stream while they stay within `limit` bytes, so that what is there at once
    is one event.
    """
    pending: list[Piece] = []
    size = 0
    for piece in pieces:
        if pending and (pending[0].stream != piece.stream or size + len(piece.data) > limit):
            yield _joined(pending)
            pending, size = [], 0
        pending.append(piece)
        size += len(piece.data)
    if pending:
        yield _joined(pending)


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    data = b"".join([piece.data for piece in pieces])
    return Piece(pieces[0].stream, data, pieces[-1].end, pieces[0].block)


_AROUND: Final = {
    Framing.SSE: (b"id: ", b"}\n\n"),
    Framing.NDJSON: (b"", b"}\n"),
    Framing.BARE: (b"", b"}\n\n"),
}
"""What a line's event begins and ends with."""


class KeepEncoder:
    """Events of whole lines with their ends, at most `limit` bytes of output each."""

    def __init__(self, framing: Framing, limit: int) -> None:
        self._framing = framing
        self._limit = limit

    def encode(self, pieces: Sequence[Piece]) -> bytes:
        """The events for `pieces`, in their order."""
        stamp = milliseconds()
        out = []
        for piece in merge(pieces, self._limit):
            data, start = piece.data, piece.end - len(piece.data)
            done = 0
            while len(data) - done > self._limit:
                cut = done + text_cut(data[done : done + self._limit + 1], self._limit)
                out.append(self._one(piece.stream, data[done:cut], start + cut, stamp))
                done = cut
            out.append(self._one(piece.stream, data[done:] if done else data, piece.end, stamp))
        return b"".join(out)

    def _one(self, stream: int, data: bytes, end: int, stamp: int) -> bytes:
        eid = end + OUTPUT_EID
        json = b'{"type":"%b","text":%b,"timestamp":%d,"eid":%d}' % (
            _NAMES[stream].encode(),
            _quoted(data),
            stamp,
            eid,
        )
        return self._framing.frame(json, eid)


class StripEncoder:
    """One event per line, without its end: `\\n`, `\\r` or `\\r\\n`; an empty line is `"\\n"`.

    A line of more than `limit` bytes is split. A line end that comes in a piece after the line's text,
    or after the `\\r` of a `\\r\\n`, belongs to that line.
    """

    def __init__(self, framing: Framing, limit: int) -> None:
        self._framing = framing
        self._limit = limit
        self._last = [b"\n", b"\n"]  # the byte before the next piece, per stream
        self._block = -1
        self._lines = 0  # events so far in the block

    def encode(self, pieces: Sequence[Piece]) -> bytes:
        """The events for `pieces`, in their order."""
        out = []
        stamp = milliseconds()
        for piece in pieces:
            if piece.block != self._block:
                self._block, self._lines = piece.block, 0
            data, last = piece.data, self._last[piece.stream]
            self._last[piece.stream] = data[-1:]
            if last != b"\n" and data[:1] in (b"\n", b"\r"):
                data = _without_late_end(data, last)
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            short = data.count(b"\n", 0, _SAMPLE) * _SHORT_LINE > min(_SAMPLE, len(data))
            size = min(self._limit, _SHORT_BATCH if short else _LONG_BATCH)
            done = 0
            while done < len(data):
                end = min(len(data), done + size)
                if end < len(data):
                    newline = data.rfind(b"\n", done, end) + 1 or data.find(b"\n", end) + 1
                    end = newline or len(data)
                out.append(self._batch(piece.stream, data[done:end], stamp))
                done = end
        return b"".join(out)

    def _batch(self, stream: int, data: bytes, stamp: int) -> bytes:
        if data[-1:] == b"\n":
            data = data[:-1]
        if _DEL in data or len(data) > self._limit or not data.isascii():
            return self._slowly(stream, data, stamp)
        count = data.count(b"\n") + 1
        first = self._block + OUTPUT_EID + self._lines + 1
        self._lines += count
        prefix, suffix = divmod(first, _SUFFIXES)
        if suffix + count <= _SUFFIXES:
            eids = _suffixes(prefix > 0)[suffix : suffix + count]
            fixed = b"%d" % prefix if prefix else b""
        else:
            eids, fixed = [b"%d" % eid for eid in range(first, first + count)], b""
        before, after = _AROUND[self._framing]
        head = b'{"type":"%b","text":"' % _NAMES[stream].encode()
        tail = b'","timestamp":%d,"eid":%b' % (stamp, fixed)
        # Escaping leaves DEL alone, so every DEL is a line's end: one pass in C for all the lines.
        body = orjson.dumps(data.replace(b"\n", _DEL).decode("ascii"))[1:-1]
        if self._framing is Framing.SSE:
            before, head = before + fixed, b"\ndata: " + head
        if len(data) < count * _SHORT_LINE:
            return self._by_template(body, eids, before, head, tail, after)
        return self._by_parts(body, eids, before, head, tail, after)

    # An event is: before, its eid if SSE, head, the line, tail, its eid, after. Both ways give the same.

    def _by_template(
        self, body: bytes, eids: list[bytes], before: bytes, head: bytes, tail: bytes, after: bytes
    ) -> bytes:
        """The faster way for short lines."""
        sse = self._framing is Framing.SSE
        if b"%" in body:
            body = body.replace(b"%", b"%%")
        start = before + (b"%b" if sse else b"") + head
        end = tail + b"%b" + after
        template = start + body.replace(_DEL, end + start) + end
        if sse:
            doubled = [b""] * (2 * len(eids))
            doubled[0::2] = doubled[1::2] = eids
            eids = doubled
        out = template % tuple(eids)
        if body[:1] in (b"", _DEL) or body[-1:] == _DEL or b"\x7f\x7f" in body:  # an empty line somewhere
            out = out.replace(b'"text":"",', b'"text":"\\n",')
        return out

    def _by_parts(
        self, body: bytes, eids: list[bytes], before: bytes, head: bytes, tail: bytes, after: bytes
    ) -> bytes:
        """The faster way for long lines."""
        lines = body.split(_DEL)
        if b"" in lines:
            lines = [line or b"\\n" for line in lines]
        count = len(lines)
        if self._framing is Framing.SSE:
            joint = [after + before] * count
            joint[0] = before
            parts = [b""] * (6 * count)
            parts[0::6], parts[1::6], parts[2::6] = joint, eids, [head] * count
            parts[3::6], parts[4::6], parts[5::6] = lines, [tail] * count, eids
        else:
            parts = [b""] * (4 * count)
            joint = [after + head] * count
            joint[0] = head
            parts[0::4], parts[1::4], parts[2::4], parts[3::4] = joint, lines, [tail] * count, eids
        parts.append(after)
        return b"".join(parts)

    def _slowly(self, stream: int, data: bytes, stamp: int) -> bytes:
        out = []
        name = _NAMES[stream].encode()
        for line in data.split(b"\n"):
            rest = line
            while True:
                cut = len(rest) if len(rest) <= self._limit else text_cut(rest, self._limit)
                self._lines += 1
                eid = self._block + OUTPUT_EID + self._lines
                text = _quoted(rest[:cut] or b"\n")
                json = b'{"type":"%b","text":%b,"timestamp":%d,"eid":%d}' % (name, text, stamp, eid)
                out.append(self._framing.frame(json, eid))
                rest = rest[cut:]
                if not rest:
                    break
        return b"".join(out)


def _without_late_end(data: bytes, last: bytes) -> bytes:
    """Leave out the line end at the start of `data` that belongs to a line already shown: the rest of a
    `\\r\\n`, or the end of a long line that came later than its text.
    """
    if data[:1] == b"\n":
        return data[1:]
    if last == b"\r":
        return data
    return data[2:] if data[:2] == b"\r\n" else data[1:]


Encoder = KeepEncoder | StripEncoder


def encoder(framing: Framing, line_endings: str, limit: int) -> Encoder:
    """The encoder for one stream. `line_endings`: `keep` or `strip`."""
    return StripEncoder(framing, limit) if line_endings == "strip" else KeepEncoder(framing, limit)


_made: dict[bool, list[bytes]] = {}


def _suffixes(padded: bool) -> list[bytes]:
    """The last digits of `eid`s, as bytes; made once, when the first stripped stream needs them."""
    if padded not in _made:
        pattern = b"%%0%dd" % _SUFFIX_DIGITS if padded else b"%d"
        _made[padded] = [pattern % number for number in range(_SUFFIXES)]
    return _made[padded]
