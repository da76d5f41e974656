"""Whatever a tree does to its walker: nothing outside is shown, nothing blocks, nothing is left open."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from execd.posix import mounts
from execd.posix.plan import Plan
from execd.posix.walk import OPEN, Walk
from execd.services.globs import Glob
from tests.support import trees
from tests.support.trees import WIDE


def begun(root: Path, plan: Plan[Any] = WIDE) -> Walk[Any]:
    return Walk(os.open(root, OPEN), plan)


def test_a_directory_swapped_for_a_symlink_is_not_followed(tmp_path: Path) -> None:
    trees.make(tmp_path, "outside/secret", "root/a/x", "root/b")
    walk = begun(tmp_path / "root")
    found = walk.found()
    assert next(item for item in found if item)[1] == "a"
    shutil.rmtree(tmp_path / "root/a")
    (tmp_path / "root/a").symlink_to(tmp_path / "outside")
    assert [item[1] for item in found if item] == ["b"]
    assert walk.skipped == 1
    walk.close()


def test_a_directory_moved_away_while_it_is_open_is_listed_as_what_it_was(tmp_path: Path) -> None:
    trees.make(tmp_path, "root/a/1", "root/a/2", "root/b")
    walk = begun(tmp_path / "root")
    found = (item for item in walk.found() if item)
    assert [next(found)[1] for _ in range(2)] == ["a", "1"]
    (tmp_path / "root/a").rename(tmp_path / "elsewhere")
    assert [item[0] + item[1] for item in found] == ["a/2", "b"]
    walk.close()


def test_entries_that_vanish_before_they_are_looked_at_are_skipped_and_counted(tmp_path: Path) -> None:
    trees.make(tmp_path, "a", "b/x", "c", "d")
    walk = begun(tmp_path)
    found = (item for item in walk.found() if item)
    assert next(found)[1] == "a"
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "c").unlink()
    assert [item[1] for item in found] == ["d"]
    assert walk.skipped == 2
    walk.close()


def test_a_match_that_became_a_directory_is_not_returned(tmp_path: Path) -> None:
    trees.make(tmp_path, "a.py", "b.py", "c.py")
    walk = begun(tmp_path, replace(WIDE, glob=Glob("*.py", "/")))
    found = (item for item in walk.found() if item)
    assert next(found)[1] == "a.py"
    (tmp_path / "b.py").unlink()
    (tmp_path / "b.py").mkdir()
    assert [item[1] for item in found] == ["c.py"]
    assert walk.skipped == 1
    walk.close()


def test_loops_of_symlinks_are_listed_and_never_entered(tmp_path: Path) -> None:
    trees.make(tmp_path, "a/b/")
    for name, target in (("a/b/up", "../.."), ("self", "self"), ("here", "."), ("root", "/")):
        (tmp_path / name).symlink_to(target)
    found, walk = trees.page(tmp_path, WIDE)
    assert found == [b"a", b"a/b", b"a/b/up", b"here", b"root", b"self"]
    assert walk.skipped == 0


def test_a_tree_of_2000_levels_is_walked_as_far_as_asked_and_said_to_be_deeper(tmp_path: Path) -> None:
    trees.deep(tmp_path, 2000)
    for levels in (64, 400):
        found, walk = trees.page(tmp_path, replace(WIDE, depth=levels, capped=True))
        assert len(found) == levels
        assert walk.cut
        assert walk.reason is None
    found, walk = trees.page(tmp_path, replace(WIDE, depth=64, capped=True, glob=Glob("leaf", "/")))
    assert (found, walk.cut) == ([], True)
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2000):  # rmtree of the standard library recurses
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.unlink("leaf", dir_fd=fd)
    for _ in range(2000):
        above = os.open("..", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        os.rmdir("d", dir_fd=above)
        fd = above
    os.close(fd)


@pytest.mark.parametrize(
    ("paths", "cut"),
    [
        (["a/b/c"], False),
        (["a/b/c/"], False),
        (["a/b/c/d"], True),
        (["a/b/c/", "x/y/z/1"], True),
    ],
)
@pytest.mark.parametrize("limit", [1, 100])
def test_a_walk_says_that_there_is_more_below_exactly_if_there_is(
    tmp_path: Path, paths: list[str], cut: bool, limit: int
) -> None:
    trees.make(tmp_path, *paths)
    plan = replace(WIDE, depth=3, capped=True, limit=limit)
    _, walk = trees.page(tmp_path, plan)
    while walk.reason is not None:
        _, walk = trees.page(tmp_path, trees.next_plan(plan, walk, limit))
    assert walk.cut == cut  # on the last page, wherever it was seen
    _, asked_for = trees.page(tmp_path, replace(plan, capped=False, limit=100))
    assert not asked_for.cut


def test_what_the_kernel_makes_up_is_not_entered_from_above_but_from_within() -> None:
    if not os.path.ismount("/proc"):
        pytest.skip("/proc is no mount here")
    assert mounts.is_pseudo(os.stat("/proc").st_dev)
    assert not mounts.is_pseudo(os.stat("/").st_dev)
    assert not mounts.is_pseudo(os.makedev(4095, 1))
    found, _ = trees.page(Path("/"), replace(WIDE, depth=2, glob=Glob("proc/*", "/")))
    assert found == []
    found, _ = trees.page(Path("/proc"), replace(WIDE, depth=1, glob=Glob("vers*", "/")))
    assert found == [b"version"]
    listed, _ = trees.page(Path("/"), replace(WIDE, depth=1))
    assert b"proc" in listed


@pytest.mark.parametrize("end", ["to-the-end", "half-way", "at-once"])
def test_every_descriptor_is_closed_however_a_walk_ends(tmp_path: Path, end: str) -> None:
    trees.make(tmp_path, "a/b/c/d/e", "f")
    before = sorted(os.listdir("/proc/self/fd"))
    walk = begun(tmp_path)
    if end == "to-the-end":
        assert len([item for item in walk.found() if item]) == 6
    elif end == "half-way":
        assert next(walk.found())
    walk.close()
    walk.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_descriptors_left_is_an_error_and_no_gap(tmp_path: Path) -> None:
    import resource

    trees.make(tmp_path, "a/b/c/d", "e")
    walk = begun(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open("/", os.O_RDONLY)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 2, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            list(walk.found())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        walk.close()


def test_a_walk_that_goes_on_after_a_file_counts_nothing_as_skipped(tmp_path: Path) -> None:
    trees.make(tmp_path, "a/1", "a/2", "b")
    for seen in range(1, 5):
        walk = begun(tmp_path)
        found = (item for item in walk.found() if item)
        for _ in range(seen):
            next(found)
        walk.close()  # right where it is, as for a client that does not read
        rest, after = trees.page(tmp_path, trees.next_plan(WIDE, walk, 100))
        assert (len(rest), after.skipped) == (4 - seen, 0)
