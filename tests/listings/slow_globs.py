"""Glob patterns as trees, and a matcher of them that is plain, slow, and shares nothing with ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

NAMES = "abA*[{,-! ]\\é\udcff"
"""Characters of names: some are special in patterns, one is a byte that is no UTF-8."""


@dataclass(frozen=True)
class One:
    """One character out of a set, or not in it; `text` is how the pattern says it."""

    text: str
    chars: str
    negated: bool = False


@dataclass(frozen=True)
class Star:
    text: str = "*"


@dataclass(frozen=True)
class Slash:
    text: str = "/"


@dataclass(frozen=True)
class Deep:
    """`**` as a whole segment."""

    text: str = "**"


@dataclass(frozen=True)
class Braces:
    options: tuple[tuple[Token, ...], ...]

    @property
    def text(self) -> str:
        return "{" + ",".join(written(option) for option in self.options) + "}"


Token = One | Star | Slash | Deep | Braces


def written(tokens: Sequence[Token]) -> str:
    """The pattern's text."""
    return "".join(token.text for token in tokens)


def matches(tokens: Sequence[Token], path: str) -> bool:
    """Whether the pattern matches the path, by trying everything."""
    names = path.split("/")
    plain = list(_plain(tokens))
    deep = not any(isinstance(token, Slash) for option in plain for token in option)
    for option in plain:
        segments = [list(segment) for segment in _segments(option)]
        if deep and segments:
            # a pattern without a slash is about the name alone, and `**` there is a star
            if _name([Star() if isinstance(t, Deep) else t for t in segments[0]], names[-1]):
                return True
        elif segments and _path(segments, names):
            return True
    return False


def _plain(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Without braces: every choice of their options."""
    choices: list[list[tuple[Token, ...]]] = []
    for token in tokens:
        if isinstance(token, Braces):
            choices.append([plain for option in token.options for plain in _plain(option)])
        else:
            choices.append([(token,)])
    for chosen in product(*choices):
        yield tuple(token for part in chosen for token in part)


def _segments(tokens: Sequence[Token]) -> list[list[Token]]:
    segments: list[list[Token]] = [[]]
    for token in tokens:
        if isinstance(token, Slash):
            segments.append([])
        else:
            segments[-1].append(token)
    return [segment for segment in segments if segment]


def _path(segments: list[list[Token]], names: list[str]) -> bool:
    if not segments:
        return not names
    head, rest = segments[0], segments[1:]
    if (len(head) > 1 and all(isinstance(token, Star | Deep) for token in head)) or head == [Deep()]:
        if not rest:
            return bool(names)
        return any(_path(rest, names[skipped:]) for skipped in range(len(names) + 1))
    return bool(names) and _name(head, names[0]) and _path(rest, names[1:])


def _name(tokens: Sequence[Token], name: str) -> bool:
    if not tokens:
        return not name
    head, rest = tokens[0], tokens[1:]
    if isinstance(head, Star | Deep):
        return any(_name(rest, name[taken:]) for taken in range(len(name) + 1))
    assert isinstance(head, One)
    return bool(name) and (name[0] in head.chars) != head.negated and _name(rest, name[1:])


def _literal(char: str) -> One:
    return One(f"\\{char}", char)


def _range(ends: tuple[str, str], negated: bool) -> One:
    low, high = sorted(ends)
    chars = "".join(map(chr, range(ord(low), ord(high) + 1)))
    return One(f"[{'!' if negated else ''}\\{low}-\\{high}]", chars, negated)


def _set(chars: list[str], negated: bool) -> One:
    text = "".join(f"\\{char}" for char in chars)
    return One(f"[{'^' if negated else ''}{text}]", "".join(chars), negated)


_chars = st.sampled_from(NAMES)
_ones = st.one_of(
    st.sampled_from("abA").map(lambda char: One(char, char)),
    _chars.map(_literal),
    st.just(One("?", "", negated=True)),
    st.builds(_range, st.tuples(st.sampled_from("abA"), st.sampled_from("abA")), st.booleans()),
    st.builds(_set, st.lists(_chars, min_size=1, max_size=3), st.booleans()),
)
_pieces = st.one_of(_ones, st.just(Star()), _ones)
_flat: st.SearchStrategy[tuple[Token, ...]] = st.one_of(
    st.lists(_pieces, min_size=1, max_size=4).map(tuple), st.just((Deep(),)), st.just((Star(),))
)
_in_braces = st.lists(
    st.one_of(
        _pieces, st.just(Slash()), st.lists(_flat, max_size=2).map(lambda o: Braces(tuple(o) or ((),)))
    ),
    max_size=3,
).map(tuple)
_braced = st.lists(_in_braces, min_size=1, max_size=3).map(lambda options: (Braces(tuple(options)),))
_segment = st.one_of(_flat, _flat, st.tuples(_flat, _braced, _flat).map(lambda parts: sum(parts, ())))


def _joined(segments: list[tuple[Token, ...]]) -> tuple[Token, ...]:
    joined: list[Token] = []
    for segment in segments:
        if joined:
            joined.append(Slash())
        joined += segment
    return tuple(joined)


patterns = st.lists(_segment, min_size=1, max_size=4).map(_joined)
"""Patterns of all kinds, nested braces with slashes in them included."""
paths = st.lists(st.text(alphabet=NAMES, min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)
