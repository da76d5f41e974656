"""What a walk is told: how far, what for, and from where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound="Rule")


class Rule(Protocol):
    """What can match in one directory, as `services.globs.State`."""

    @property
    def test(self) -> Callable[[str], object] | None: ...
    @property
    def names(self) -> frozenset[str] | None: ...


class Matcher(Protocol[S]):
    """Which files a search is for; its states are made by it alone."""

    start: S

    def child(self, state: S, name: str) -> S | None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a walk: `path` below the root (raw bytes; empty: its beginning) has been handled.

    `inside`: what is in it has not. `cut`: something before it lies deeper than the walk may go.
    """

    path: bytes = b""
    inside: bool = True
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Plan(Generic[S]):
    """What to walk and how far. `glob` None: everything is found; else the files that match.

    `depth`: levels below the root; `capped`: that is less than was asked for, so deeper ones are told.
    """

    depth: int
    limit: int
    seconds: float
    capped: bool = False
    with_stat: bool = True
    glob: Matcher[S] | None = None
    after: Place = Place()
