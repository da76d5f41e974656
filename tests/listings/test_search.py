"""GET and POST /files/search: the files that match."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support import trees
from tests.support.listings import FORMS, LIST, SEARCH, ask, asked, pages
from tests.support.live import Daemon, daemon


@pytest.fixture
def project(tmp_path: Path) -> Path:
    trees.make(
        tmp_path,
        *(
            "src/main.py",
            "src/lib/a.py",
            "src/lib/deep/b.pyi",
            "tests/a.py",
            "README",
            ".hidden.py",
            "empty/",
        ),
        *("src/lib/we ird[1].py", b"src/\xff.py"),
    )
    (tmp_path / "src/link.py").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "directory.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    return tmp_path


def found(running: Daemon, root: Path, form: str = "array", **query: object) -> list[str]:
    listed = ask(running, SEARCH, form, path=str(root), **query)
    assert (listed.truncated, listed.skipped) == (False, 0)
    return [path.removeprefix(f"{root}/") for path in listed.paths]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("README", ["README"]),
        ("a.py", ["src/lib/a.py", "tests/a.py"]),
        ("*/a.py", ["tests/a.py"]),
        ("src/*.py", ["src/link.py", "src/main.py", "src/�.py"]),
        ("src/**/*.{py,pyi}", None),
        ("src/lib/**", ["src/lib/a.py", "src/lib/deep/b.pyi", "src/lib/we ird[1].py"]),
        (r"*\[1\].py", ["src/lib/we ird[1].py"]),
        ("directory.py", []),
        ("pipe.py", []),
        ("loop", ["loop"]),
        ("loop/**", []),
        ("*.nothing", []),
        (".*", [".hidden.py"]),
    ],
)
def test_a_pattern_finds_files_and_links_and_nothing_else(
    live: Daemon, project: Path, form: str, pattern: str, expected: list[str] | None
) -> None:
    if expected is None:
        expected = [path for path in found(live, project) if path.startswith("src/")]
    assert found(live, project, form, pattern=pattern) == expected


@pytest.mark.parametrize("form", FORMS)
def test_without_a_pattern_every_file_is_found(live: Daemon, project: Path, form: str) -> None:
    everything = ask(live, LIST, path=str(project), depth=64).entries
    files = [entry for entry in everything if entry["type"] in ("file", "symlink")]
    assert ask(live, SEARCH, form, path=str(project)).entries == files
    assert ask(live, SEARCH, form, path=str(project), pattern="").entries == files
    assert len(files) == 10


def test_an_absolute_pattern_below_the_path_is_taken(live: Daemon, project: Path) -> None:
    assert found(live, project, pattern=f"{project}/src/*.py") == found(live, project, pattern="src/*.py")
    assert found(live, project / "src", pattern=f"{project}/*/main.py") == ["main.py"]
    answer = asked(live, SEARCH, path=str(project / "src"), pattern=f"{project}/tests/*")
    assert answer.status_code == 400


def test_a_pattern_may_hold_bytes_that_are_no_text(live: Daemon, project: Path) -> None:
    answer = live.client.get(f"{SEARCH}?path={project}&pattern=%ff*&fields=path")
    assert answer.json() == [{"path": f"{project}/src/�.py", "path_encoded": f"{project}/src/%FF.py"}]


def test_what_cannot_be_read_is_counted_and_the_rest_found(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to start a daemon that is not")
    trees.make(tmp_path, "a/x", "shut/x", "shut/y/x", "z/x")
    for directory in (tmp_path, *list(tmp_path.parents)[:-2]):
        directory.chmod(directory.stat().st_mode | 0o055)
    (tmp_path / "shut").chmod(0)
    with daemon(wrapper=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")) as running:
        for form in FORMS:
            search = ask(running, SEARCH, form, path=str(tmp_path))
            assert search.paths == [f"{tmp_path}/a/x", f"{tmp_path}/z/x"]
            assert (search.truncated, search.skipped) == (False, 1)
            listed = ask(running, LIST, form, path=str(tmp_path), depth=9)
            assert len(listed.entries) == 5
            assert (listed.truncated, listed.skipped) == (False, 1)
        whole = ask(running, SEARCH, path="/", pattern="etc/pass*")
        assert "/etc/passwd" in whole.paths
        assert not asked(running, SEARCH, path=str(tmp_path / "shut")).is_success


def test_what_the_kernel_makes_up_is_found_only_with_a_path_in_it(live: Daemon) -> None:
    if not os.path.ismount("/proc"):
        pytest.skip("/proc is no mount here")
    assert ask(live, SEARCH, path="/", pattern="/proc/version").paths == []
    assert ask(live, SEARCH, path="/proc", pattern="/proc/version").paths == ["/proc/version"]
    assert "/proc" in ask(live, LIST, path="/").paths
    assert "/proc/version" not in ask(live, LIST, path="/", depth=1, fields=["path"]).paths


@pytest.mark.parametrize("form", FORMS)
def test_pages_of_any_size_together_are_the_whole_search(live: Daemon, tmp_path: Path, form: str) -> None:
    chance = random.Random(7)
    trees.make(
        tmp_path, *{f"{chance.choice('abc')}/{chance.choice('xyz')}/{chance.random()}" for _ in range(60)}
    )
    whole = ask(live, SEARCH, path=str(tmp_path), pattern="*5*")
    assert len(whole.paths) > 20
    for limit in (1, 7, len(whole.paths) - 1, len(whole.paths), 1000):
        parts = list(pages(live, SEARCH, form, path=str(tmp_path), pattern="*5*", limit=limit))
        assert [entry for part in parts for entry in part.entries] == whole.entries
        assert all(len(part.entries) == limit and part.reason == "entries" for part in parts[:-1])
        assert (parts[-1].truncated, parts[-1].reason) == (False, None)
        assert len(parts) == -(-len(whole.paths) // limit)
