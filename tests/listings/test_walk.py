"""A walk goes through a whole tree in order, whatever its pages and whatever changes meanwhile."""

from __future__ import annotations

import os
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from execd.posix import walk as walking
from execd.posix import window
from execd.posix.plan import Place, Plan
from execd.services.globs import Glob
from tests.support import trees
from tests.support.trees import WIDE

_names = st.text(alphabet="ab.é\U0001f600\udcff\udc80\n%", min_size=1, max_size=3).filter(
    lambda name: name not in (".", "..")
)
_paths = st.lists(st.lists(_names, min_size=1, max_size=4).map("/".join), max_size=25)


@pytest.fixture(params=["usual", "tiny"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `tiny`, a directory of a dozen names is as much too large as one of a million is in earnest."""
    if request.param == "tiny":
        for module, name, value in (
            (walking, "WINDOW", 4),
            (walking, "_SEARCH_WINDOW", 2),
            (walking, "_LEFT", 1),
            (walking, "_STATS", 1),
            (window, "STEP", 3),
        ):
            monkeypatch.setattr(module, name, value)


def _made(root: Path, paths: list[str]) -> None:
    for path in paths:
        try:
            trees.make(root, path)
        except OSError:
            continue  # something is there already


@pytest.mark.usefixtures("windows")
def test_any_pages_together_are_the_whole_tree_in_order() -> None:
    @settings(max_examples=80, deadline=None)
    @given(_paths, st.lists(st.integers(1, 7), min_size=1))
    def check(paths: list[str], limits: list[int]) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            _made(root, paths)
            expected = trees.everything(root)
            found, walk = trees.page(root, replace(WIDE, limit=limits[0]))
            number = 0
            while walk.reason == "entries":
                number += 1
                limit = limits[number % len(limits)]
                more, walk = trees.page(root, trees.next_plan(WIDE, walk, limit))
                assert len(more) == limit or walk.reason is None
                found += more
                assert len(found) <= len(expected)
            assert walk.reason is None
            assert found == expected

    check()


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("seconds", [60, 0], ids=["in-time", "always-late"])
def test_nothing_that_stays_is_lost_or_doubled_while_the_rest_changes(seconds: float) -> None:
    @settings(max_examples=60, deadline=None)
    @given(_paths, st.lists(st.integers(1, 5), min_size=1), st.randoms(use_true_random=False))
    def check(paths: list[str], limits: list[int], chance: random.Random) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            _made(root, paths)
            staying = trees.everything(root)
            directories = [b"", *(path for path in staying if (root / os.fsdecode(path)).is_dir())]
            plan = replace(WIDE, limit=limits[0], seconds=seconds)
            passing: set[bytes] = set()
            found, walk = trees.page(root, plan)
            number = 0
            while walk.reason is not None:
                number += 1
                assert number < 10_000
                _change(root, directories, set(staying), passing, chance)
                plan = trees.next_plan(plan, walk, limits[number % len(limits)])
                more, walk = trees.page(root, plan)
                found += more
            assert [path for path in found if path in set(staying)] == staying
            assert len(found) == len(set(found))
            assert found == trees.order(found)

    check()


def _change(
    root: Path, directories: list[bytes], staying: set[bytes], passing: set[bytes], chance: random.Random
) -> None:
    """Make and remove some files and directories that are not to stay."""
    start = os.fsencode(root)
    for path in [path for path in passing if chance.random() < 0.5]:
        passing.discard(path)
        whole = os.path.join(start, path)
        os.rmdir(whole) if os.path.isdir(whole) else os.unlink(whole)
    for _ in range(chance.randint(0, 3)):
        path = os.path.join(chance.choice(directories), os.fsencode(chance.choice("aAbz\udcfe") * 2))
        if path not in staying | passing:
            passing.add(path)
            whole = os.path.join(start, path)
            os.mkdir(whole) if chance.random() < 0.3 else Path(os.fsdecode(whole)).touch()


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("limit", [1, 2, 1000])
@pytest.mark.parametrize("seconds", [60, 0], ids=["in-time", "always-late"])
def test_pages_of_a_search_together_are_all_matches(tmp_path: Path, limit: int, seconds: float) -> None:
    for top in "abc":
        trees.make(
            tmp_path, *(f"{top}/{n}/x{n}.py" for n in range(4)), *(f"{top}/y{n}.txt" for n in range(9))
        )
    (tmp_path / "a/link.py").symlink_to("nowhere")
    (tmp_path / "a/directory.py").mkdir()
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "a/fifo.py")
    for pattern, expected in (
        ("*.py", [b"a/link.py", *(f"{t}/{n}/x{n}.py".encode() for t in "abc" for n in range(4))]),
        ("b/*/x?.py", [f"b/{n}/x{n}.py".encode() for n in range(4)]),
        ("b/2/x2.py", [b"b/2/x2.py"]),
        ("*.nothing", []),
    ):
        plan: Plan[Any] = Plan(depth=64, limit=limit, seconds=seconds, glob=Glob(pattern, str(tmp_path)))
        found, walk = trees.page(tmp_path, plan)
        while walk.reason is not None:
            more, walk = trees.page(tmp_path, trees.next_plan(plan, walk, limit))
            found += more
            assert len(found) <= len(expected)
        assert found == trees.order(expected)


def test_a_late_walk_still_gets_further_each_time(tmp_path: Path) -> None:
    trees.make(tmp_path, *(f"{n:03}/" for n in range(200)))
    late: Plan[Any] = Plan(depth=64, limit=1000, seconds=0, glob=Glob("*.py", "/"))
    places: set[Place] = set()
    _, walk = trees.page(tmp_path, late)
    while walk.reason is not None:
        assert walk.reason == "deadline"
        assert walk.place() not in places
        places.add(walk.place())
        _, walk = trees.page(tmp_path, trees.next_plan(late, walk, 1000))
    assert len(places) >= 100


def test_windows_never_hold_more_than_their_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "WINDOW", 50)
    monkeypatch.setattr(walking, "_LEFT", 5)
    trees.make(tmp_path, *(f"{'d/' * level}f{n}" for level in range(8) for n in range(60)))
    walk: walking.Walk[Any] = walking.Walk(os.open(tmp_path, walking.OPEN), WIDE)
    count = 0
    for found in walk.found():
        count += found is not None
        assert sum(len(directory.items) for directory in walk._stack) <= 50 + 8 * 5
    walk.close()
    assert count == 8 * 60 + 7
