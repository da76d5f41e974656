"""What every group of figures is given, and the groups' common shape."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.report import Figure
from benchmarks.subject import Daemon
from benchmarks.tools import Tools

SHELL = shutil.which("bash") or "/bin/sh"


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of the benchmarks."""

    tools: Tools
    peer: Daemon | None
    quick: bool
    rounds: int = 3

    def scaled(self, full: int, quick: int) -> int:
        """`full`, or `quick` in a quick run."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are measured together. `about` says what they are and what their floor is."""

    about: str
    measure: Callable[[Suite], Iterator[Figure]]
