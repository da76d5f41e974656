"""Cutting a byte stream into whole lines and whole characters. Pure: no I/O, no clock."""

from __future__ import annotations


def incomplete_tail(data: bytes) -> int:
    """How many bytes at the end of `data` (0 to 3) start a UTF-8 character that is not all there yet.

    Bytes that can never become a character count as 0: they are decoded to U+FFFD where they stand.
    """
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:  # a lead byte: complete once it has as many followers as it announces
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if byte < 0xC2 or byte > 0xF4 or back >= need:
                return 0
            if back >= 2 and not _second_byte_fits(byte, data[-back + 1]):
                return 0
            return back
    return 0


def _second_byte_fits(lead: int, second: int) -> bool:
    # Unicode 15, table 3-7: these leads narrow their second byte (overlong forms, surrogates, range)
    low = {0xE0: 0xA0, 0xF0: 0x90}.get(lead, 0x80)
    high = {0xED: 0x9F, 0xF4: 0x8F}.get(lead, 0xBF)
    return low <= second <= high


class LineAssembler:
    """Holds back an unfinished line of one stream until its end, its limit, or `flush`.

    `feed` gives what may be passed on: whole lines, or `limit` bytes and more of a longer line, never
    a part of a UTF-8 character. It holds at most `limit` bytes between two calls.
    `\\n` and `\\r` both end a line, so progress bars are passed on as they are drawn.
    """

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = b""

    @property
    def holding(self) -> bool:
        """True while bytes are held back."""
        return bool(self._held)

    def feed(self, data: bytes) -> bytes:
        """Add what was read; return what can be passed on now (often all of it, possibly nothing)."""
        end = data.rfind(b"\n") + 1
        end = max(end, data.rfind(b"\r", end) + 1)
        if end == len(data):
            ready, rest = data, b""
        else:
            ready, rest = data[:end], data[end:]
        if self._held:
            if end:
                ready = self._held + ready
            else:
                rest = self._held + rest
            self._held = b""
        if len(rest) >= self._limit:
            cut = len(rest) - incomplete_tail(rest)
            ready += rest[:cut]
            rest = rest[cut:]
        self._held = rest
        return ready

    def flush(self, *, final: bool) -> bytes:
        """Pass on what is held: all of it if `final`, else all but the start of a character."""
        cut = len(self._held) if final else len(self._held) - incomplete_tail(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return ready


def text_cut(data: bytes, limit: int) -> int:
    """Where to cut `data` (longer than `limit` bytes) so that a piece of at most `limit` bytes ends
    with a line if it can, else with a whole character.
    """
    end = data.rfind(b"\n", 0, limit) + 1 or data.rfind(b"\r", 0, limit) + 1
    if end:
        return end
    return (limit - incomplete_tail(data[:limit])) or limit
