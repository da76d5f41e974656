"""Directory trees for tests, walks over them, and what a plain walk of the standard library says."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from execd.posix.plan import Place, Plan
from execd.posix.walk import OPEN, Walk

WIDE: Plan[Any] = Plan(depth=64, limit=10**6, seconds=60)
"""Everything there is."""


def make(root: Path, *paths: str | bytes) -> None:
    """Make files, and directories where a path ends with a slash, with all that is above them."""
    for path in paths:
        whole = os.path.join(os.fsencode(root), os.fsencode(path))
        if whole.endswith(b"/"):
            os.makedirs(whole, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "xb"):
                pass


def deep(root: Path, levels: int, name: str = "d") -> None:
    """A chain of directories, longer than any path can say, with a file `leaf` at its end."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(levels):
            os.mkdir(name, dir_fd=fd)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    finally:
        os.close(fd)


def order(paths: Iterable[bytes]) -> list[bytes]:
    """Paths in the order of a listing."""
    return sorted(paths, key=lambda path: path.split(b"/"))


def everything(root: Path) -> list[bytes]:
    """Every path below the root, in the order of a listing."""
    start = os.fsencode(root)
    found = []
    for directory, directories, files in os.walk(start):
        found += [os.path.relpath(os.path.join(directory, name), start) for name in directories + files]
    return order(found)


def page(root: Path, plan: Plan[Any]) -> tuple[list[bytes], Walk[Any]]:
    """One walk: the paths it found, and itself, ended."""
    walk: Walk[Any] = Walk(os.open(root, OPEN), plan)
    try:
        found = [os.fsencode(f[0] + f[1]) for f in walk.found() if f is not None]
    finally:
        walk.close()
    return found, walk


def next_plan(plan: Plan[Any], walk: Walk[Any], limit: int) -> Plan[Any]:
    """The plan that goes on where a walk ended, its place taken through a copy as a cursor would."""
    place = walk.place()
    return replace(plan, after=Place(bytes(place.path), place.inside, place.cut), limit=limit)
