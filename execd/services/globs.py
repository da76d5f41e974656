"""Glob patterns over the path below a root. Pure: no I/O, no async.

A pattern becomes one small automaton over names: a directory's state says which names in it match and which
directories below can still lead to a match, so nothing else has to be walked. Time for a name is bounded by
its length times the pattern's: a star takes the shortest text that lets the next piece match and is never
tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from execd.services.glob_syntax import Alternative, PatternError, Segment, parse

__all__ = ["Glob", "PatternError", "State"]

_KEPT_STATES: Final = 4096
"""States remembered; more are made anew each time."""

Test = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Node:
    """One place in an alternative: the segment that comes next there. `last`: a file can match here."""

    segment: Segment
    last: bool


@dataclass(slots=True)
class State:
    """What can match in one directory.

    `test`: for the names of files; None: none can match. `names`: the only names that matter, None: any.
    `child`: the state of every directory below, if it is the same for all; else None.
    """

    looping: frozenset[int]
    steps: list[tuple[Test, int]]
    test: Test | None
    names: frozenset[str] | None
    child: State | None = field(default=None, repr=False)


class Glob:
    """A pattern, ready to be asked about the directories below `root` (absolute, normal).

    Raises:
        PatternError: it is no pattern, too long, has too many alternatives, or leads out of the root.
    """

    def __init__(self, pattern: str, root: str) -> None:
        self._nodes: list[_Node] = []
        self._states: dict[frozenset[int], State] = {}
        self._tests: dict[Segment, Test] = {}
        starts: set[int] = set()
        absolute: set[int] = set()
        for alternative in parse(pattern):
            (absolute if alternative.absolute else starts).add(self._add(alternative))
        if absolute:
            starts |= self._below(frozenset(absolute), root)
            if not starts:
                raise PatternError(f"is absolute and matches nothing below {root!r}", 0)
        self.start: State = self._state(frozenset(starts))

    def _add(self, alternative: Alternative) -> int:
        first = len(self._nodes)
        segments = alternative.segments
        self._nodes += [_Node(segment, i == len(segments) - 1) for i, segment in enumerate(segments)]
        return first

    def _below(self, nodes: frozenset[int], root: str) -> frozenset[int]:
        for name in root.split("/"):
            if name:
                nodes = self._next(self._state(nodes), name)
        return nodes

    def child(self, state: State, name: str) -> State | None:
        """The state of the directory `name` in a directory of that state; None: nothing below can match."""
        if state.child is not None:
            return state.child
        nodes = self._next(state, name)
        return self._state(nodes) if nodes else None

    @staticmethod
    def _next(state: State, name: str) -> frozenset[int]:
        reached = [node for test, node in state.steps if test(name)]
        return state.looping.union(reached) if reached else state.looping

    def _state(self, nodes: frozenset[int]) -> State:
        closed = frozenset(self._closed(nodes))
        state = self._states.get(closed)
        if state is None:
            state = self._made(closed)
            if len(self._states) < _KEPT_STATES:
                self._states[closed] = state
        return state

    def _made(self, closed: frozenset[int]) -> State:
        looping, steps, last = set(), [], []
        for number in sorted(closed):
            node = self._nodes[number]
            if node.segment.any_directories:
                looping.add(number)
            elif node.last:
                last.append(node.segment)
            else:
                steps.append((self._step_test(node.segment), number + 1))
        state = State(frozenset(looping), steps, _test(last) if last else None, None)
        if not looping:
            state.names = _only_names([self._nodes[number].segment for number in closed])
        elif not steps:
            same = closed == self._closed(looping)
            state.child = state if same else self._state(frozenset(looping))
        return state

    def _step_test(self, segment: Segment) -> Test:
        test = self._tests.get(segment)
        if test is None:
            test = self._tests[segment] = _test([segment])
        return test

    def _closed(self, nodes: Iterable[int]) -> set[int]:
        """With what `**` leads to when it stands for no directory at all."""
        found: set[int] = set()
        todo = list(nodes)
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                if self._nodes[number].segment.any_directories:
                    todo.append(number + 1)
        return found


def _only_names(segments: Sequence[Segment]) -> frozenset[str] | None:
    literals = [segment.literal for segment in segments]
    return None if None in literals else frozenset(name for name in literals if name is not None)


def _test(segments: Sequence[Segment]) -> Test:
    """One test for all: sets and suffixes are several times quicker than a regular expression."""
    literals = frozenset(segment.literal for segment in segments if segment.literal is not None)
    suffixes = tuple(segment.suffix for segment in segments if segment.suffix is not None)
    others = [s.regex for s in segments if s.literal is None and s.suffix is None]
    if "" in suffixes:
        return _anything
    tests: list[Test] = []
    if literals:
        tests.append(literals.__contains__)
    if suffixes:
        tests.append(lambda name: name.endswith(suffixes))
    if others:
        tests.append(re.compile("|".join(f"(?:{regex})" for regex in dict.fromkeys(others)), re.S).fullmatch)
    if len(tests) == 1:
        return tests[0]
    return lambda name: any(test(name) for test in tests)


def _anything(_: str) -> bool:
    return True
