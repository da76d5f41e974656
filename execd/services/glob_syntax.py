"""The syntax of glob patterns: from text to alternatives of segments. Pure: no I/O, no async."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_PATTERN: Final = 4096
"""Characters of a pattern."""
MAX_ALTERNATIVES: Final = 1024
"""Patterns that the braces of one may stand for..."""
MAX_PIECES: Final = 65_536
"""...and characters, wildcards and classes in all of these together."""
MAX_NESTING: Final = 16
"""Braces within braces."""


class PatternError(ValueError):
    """The text is no pattern. `position`: characters before the place that is wrong."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem}, at position {position}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Segment:
    """What stands between two slashes.

    `any_directories`: it is `**`. `literal`: the one name it matches, if it is one; `suffix`: it is a star
    and this. `regex` says the same of any, to be matched against a whole name.
    """

    regex: str
    literal: str | None = None
    suffix: str | None = None
    any_directories: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """A pattern without braces: at least one segment, and the last one matches names."""

    segments: tuple[Segment, ...]
    absolute: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """`kind`: `text` (one character), `class` (`value` is its regular expression), or one of `?*/{,}`."""

    kind: str
    value: str
    position: int


_ANY: Final = Segment(".*", suffix="")
_DIRECTORIES: Final = Segment("", any_directories=True)


def parse(pattern: str) -> list[Alternative]:
    """The alternatives of a pattern. Without a slash they match at any depth.

    Raises:
        PatternError: it is no pattern, or beyond the bounds above.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"is longer than {MAX_PATTERN} characters", MAX_PATTERN)
    if "\0" in pattern:
        raise PatternError("holds a NUL character", pattern.index("\0"))
    pieces = list(_pieces(pattern))
    deep = not any(piece.kind == "/" for piece in pieces)
    found: dict[Alternative, None] = {}
    for expanded in _expanded(pieces):
        alternative = _alternative(expanded, deep)
        if alternative is not None:
            found[alternative] = None
    if not found:
        raise PatternError("names no file", 0)
    return list(found)


def _pieces(pattern: str) -> Iterator[_Piece]:
    position, end = 0, len(pattern)
    opened: list[int] = []
    while position < end:
        start, char = position, pattern[position]
        position += 1
        if char == "\\":
            if position == end:
                raise PatternError("ends with a backslash", start)
            escaped = pattern[position]
            position += 1
            yield _Piece("/" if escaped == "/" else "text", escaped, start)
        elif char == "[":
            regex, position = _class(pattern, start)
            yield _Piece("class", regex, start)
        elif char == "{":
            opened.append(start)
            if len(opened) > MAX_NESTING:
                raise PatternError(f"has braces nested deeper than {MAX_NESTING}", start)
            yield _Piece(char, char, start)
        elif char == "}":
            if not opened:
                raise PatternError("has a } without its {", start)
            opened.pop()
            yield _Piece(char, char, start)
        else:
            special = char in "*?/" or (char == "," and opened)
            yield _Piece(char if special else "text", char, start)
    if opened:
        raise PatternError("has a { without its }", opened[-1])


def _class(pattern: str, start: int) -> tuple[str, int]:
    """The class that begins at `start` as a regular expression, and the position after it."""
    position, end = start + 1, len(pattern)
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    ranges: list[str] = []

    def char() -> str:
        nonlocal position
        if pattern[position] == "\\":
            position += 1
        if position >= end:
            raise PatternError("has a [ without its ]", start)
        if pattern[position] == "/":
            raise PatternError("has a / in [...], which no name holds", position)
        position += 1
        return pattern[position - 1]

    while position < end and pattern[position] != "]":
        at, low = position, char()
        high = low
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in ("]", ""):
            position += 1
            high = char()
            if high < low:
                raise PatternError("has a range in [...] that runs backwards", at)
        ranges.append(re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}")
    if position >= end:
        raise PatternError("has a [ without its ]", start)
    if not ranges:
        raise PatternError("has an empty [...]", start)
    return f"[{'^' if negated else ''}{''.join(ranges)}]", position + 1


@dataclass(slots=True)
class _Braces:
    """Braces not yet closed: the alternatives that are complete, and those that are being written."""

    position: int
    done: list[tuple[_Piece, ...]]
    current: list[tuple[_Piece, ...]]


def _expanded(pieces: list[_Piece]) -> list[tuple[_Piece, ...]]:
    stack = [_Braces(0, [], [()])]
    run: list[_Piece] = []

    def settle(tails: list[tuple[_Piece, ...]]) -> None:
        heads = stack[-1].current
        size = sum(map(len, heads)) * len(tails) + sum(map(len, tails)) * len(heads)
        if len(heads) * len(tails) > MAX_ALTERNATIVES or size > MAX_PIECES:
            raise PatternError("stands for too much with its braces", stack[-1].position)
        stack[-1].current = [head + tail for head in heads for tail in tails]

    for piece in pieces:
        if piece.kind not in ("{", ",", "}"):
            run.append(piece)
            continue
        settle([tuple(run)])
        run.clear()
        if piece.kind == "{":
            stack.append(_Braces(piece.position, [], [()]))
            continue
        top = stack[-1]
        top.done += top.current
        top.current = [()]
        if piece.kind == "}":
            stack.pop()
            settle(top.done)
    settle([tuple(run)])
    return stack[0].current


def _alternative(pieces: tuple[_Piece, ...], deep: bool) -> Alternative | None:
    """None: it is empty, so that it matches nothing."""
    segments = [_DIRECTORIES] if deep else []
    absolute = bool(pieces) and pieces[0].kind == "/"
    if len(pieces) > 1 and pieces[-1].kind == "/":
        raise PatternError("ends with a slash, but only files are found", pieces[-1].position)
    part: list[_Piece] = []
    for piece in [*pieces, _Piece("/", "/", len(pieces))]:
        if piece.kind != "/":
            part.append(piece)
            continue
        if part:
            segment = _segment(part, deep)
            if segment is not None and (segment is not _DIRECTORIES or segments[-1:] != [_DIRECTORIES]):
                segments.append(segment)
        part = []
    if segments == [_DIRECTORIES] and deep:
        return None
    if segments and segments[-1] is _DIRECTORIES:
        segments.append(_ANY)
    return Alternative(tuple(segments), absolute) if segments else None


def _segment(pieces: list[_Piece], deep: bool) -> Segment | None:
    """None: it is `.`, which changes nothing."""
    if all(piece.kind == "*" for piece in pieces):
        return _DIRECTORIES if len(pieces) > 1 and not deep else _ANY
    chunks: list[str] = [""]
    for piece in pieces:
        if piece.kind == "*":
            chunks.append("")
        else:
            chunks[-1] += {"?": ".", "class": piece.value}.get(piece.kind) or re.escape(piece.value)
    if all(piece.kind == "text" for piece in pieces):
        literal = "".join(piece.value for piece in pieces)
        if literal == "..":
            raise PatternError("has .., which leads out of the path", pieces[0].position)
        return None if literal == "." else Segment(chunks[0], literal=literal)
    rest = pieces[1:]
    if pieces[0].kind == "*" and all(piece.kind == "text" for piece in rest):
        return Segment(f".*{chunks[-1]}", suffix="".join(piece.value for piece in rest))
    if len(chunks) == 1:
        return Segment(chunks[0])
    middle = "".join(f"(?>.*?{chunk})" for chunk in chunks[1:-1] if chunk)
    return Segment(f"{chunks[0]}{middle}.*{chunks[-1]}")
