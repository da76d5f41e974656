"""multipart/form-data (RFC 7578, RFC 2046 5.1), in any chunks. Pure: no I/O, and it holds no content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

HEAD_BYTES: Final = 16 * 1024
"""Headers of one part."""
_SHORT_HEAD: Final = 256  # bytes
_PADDING: Final = 1024  # bytes of white space after a boundary
_FORM_DATA: Final = re.compile(rb"^content-disposition[ \t]*:[ \t]*form-data[ \t]*(;.*)?$", re.I | re.M)
_PARAMETER: Final = re.compile(rb'[ \t]*;[ \t]*([^\s=;"]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|[^;]*)')
_LENGTH: Final = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*$", re.I | re.M)
_ENCODING: Final = re.compile(rb"^content-transfer-encoding[ \t]*:[ \t]*(\S*)[ \t]*$", re.I | re.M)
_PLAIN: Final = (b"7bit", b"8bit", b"binary")


class NotMultipart(ValueError):
    """The bytes are no multipart/form-data with that boundary; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part begins. `length`: its size, if its headers say so."""

    name: str
    length: int | None


class End(Enum):
    """A part has ended."""

    END = auto()


class _State(Enum):
    PREAMBLE = auto()
    HEAD = auto()
    BODY = auto()
    EPILOGUE = auto()


class Multipart:
    """Parses one body. Text before the first boundary and after the last is passed over."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._state = _State.PREAMBLE
        self._rest = b"\r\n"  # the first delimiter may be the body's first line
        self._skip = 2  # bytes of `_rest` that are not content: the line end before it

    def feed(self, data: bytes) -> Iterator[Part | memoryview | End]:
        """What `data` adds: parts beginning and ending, and their content in between. Consume it all.

        The views are of `data`, or of a copy if something was left over.

        Raises:
            NotMultipart: headers without a name, or longer than `HEAD_BYTES`.
        """
        buffer = self._rest + data if self._rest else data
        self._rest = b""
        at = 0
        while at < len(buffer) and self._state is not _State.EPILOGUE:
            if self._state is _State.HEAD:
                end = buffer.find(b"\r\n\r\n", at, at + HEAD_BYTES)
                if end < 0:
                    if len(buffer) - at >= HEAD_BYTES:
                        raise NotMultipart(f"the headers of a part are longer than {HEAD_BYTES} bytes")
                    break
                yield _part(buffer[at + 2 : end])
                self._state, self._skip, at = _State.BODY, 2, end + 2
            else:
                stop, after = self._delimiter_in(buffer, at)
                start = at + self._skip
                if self._state is _State.BODY and stop > start:
                    yield memoryview(buffer)[start:stop]
                self._skip = 0 if stop >= start else self._skip
                at = stop
                if after is None:
                    break
                if self._state is _State.BODY:
                    yield End.END
                last = buffer[after : after + 2] == b"--"
                self._state, at = (_State.EPILOGUE if last else _State.HEAD), after
        if self._state is not _State.EPILOGUE:
            self._rest = buffer[at:]

    def close(self) -> None:
        """The body is complete.

        Raises:
            NotMultipart: the last boundary has not come.
        """
        if self._state is not _State.EPILOGUE:
            where = "no part with this boundary" if self._state is _State.PREAMBLE else "no closing boundary"
            raise NotMultipart(f"the body has {where}")

    def _delimiter_in(self, buffer: bytes, at: int) -> tuple[int, int | None]:
        """Where content ends, and where the line of the delimiter that ends it goes on.

        None: there is no complete one; content ends where one might begin.
        """
        search = at
        while (found := buffer.find(self._delimiter, search)) >= 0:
            after = found + len(self._delimiter)
            line_end = _line_end(buffer, after)
            if line_end is None:
                return found, None
            if line_end >= 0:
                return found, line_end
            search = found + 1  # it only looks like one: a longer word begins like it
        tail = buffer.rfind(b"\r", max(search, len(buffer) - len(self._delimiter) + 1))
        possible = tail >= 0 and self._delimiter.startswith(buffer[tail:])
        return (tail if possible else len(buffer)), None


def _line_end(buffer: bytes, at: int) -> int | None:
    """Where the line of a delimiter that stops before `at` ends: at its CRLF, or at the `--` of the last one.

    -1: it is no delimiter. None: more bytes will tell.
    """
    two = buffer[at : at + 2]
    if two in (b"--", b"\r\n"):
        return at
    if two in (b"", b"-", b"\r"):
        return None
    if two[:1] not in (b" ", b"\t"):
        return -1
    padded = at
    while buffer[padded : padded + 1] in (b" ", b"\t") and padded - at < _PADDING:
        padded += 1
    two = buffer[padded : padded + 2]
    if two == b"\r\n":
        return padded
    return None if two in (b"", b"\r") else -1


def _part(head: bytes) -> Part:
    # Bodies of many files have the same few heads again and again.
    return _short_head(head) if len(head) <= _SHORT_HEAD else _parsed(head)


@lru_cache(maxsize=64)
def _short_head(head: bytes) -> Part:
    return _parsed(head)


def _parsed(head: bytes) -> Part:
    head = re.sub(rb"\r\n[ \t]+", b" ", head).replace(b"\r\n", b"\n")
    disposition = _FORM_DATA.search(head)
    name = _name(disposition[1] or b"") if disposition else None
    if name is None:
        raise NotMultipart("a part has no Content-Disposition: form-data with a name")
    encoding = _ENCODING.search(head)
    if encoding and encoding[1].lower() not in _PLAIN:
        raise NotMultipart(
            f"part {name[:80]!r}: a Content-Transfer-Encoding is not known here, send it plain"
        )
    length = _LENGTH.search(head)
    return Part(name, int(length[1]) if length else None)


def _name(parameters: bytes) -> str | None:
    at = 0
    while found := _PARAMETER.match(parameters, at):
        if found[1].lower() == b"name":
            value = found[2].strip()
            if value.startswith(b'"'):
                value = re.sub(rb"\\(.)", rb"\1", value[1:-1])
            return value.decode("utf-8", "replace")
        at = found.end()
    return None
