"""With `--roots`, nothing is written or made anywhere else, whatever a path looks like or becomes."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.live import Daemon, daemon
from tests.support.uploads import everything, new, put, upload


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("base")


@pytest.fixture(scope="module")
def rooted(base: Path) -> Iterator[Daemon]:
    """A daemon that may write below `base/root` and `base/more` only."""
    (base / "root").mkdir()
    (base / "more").mkdir()
    (base / "outside").mkdir()
    (base / "root" / "inside").mkdir()
    (base / "outside" / "file").write_bytes(b"old")
    (base / "root" / "out").symlink_to("../outside")
    (base / "root" / "out-file").symlink_to(base / "outside" / "file")
    (base / "root" / "out-new").symlink_to("../outside/new")
    (base / "root" / "out-nowhere").symlink_to("/nowhere/at/all")
    (base / "root" / "through").symlink_to("out-file")
    (base / "root" / "to-more").symlink_to(base / "more" / "linked")
    (base / "link-in").symlink_to("root/inside")
    with daemon("--roots", f"{base}/root:{base}/more") as running:
        yield running


OUTSIDE = [
    "outside/file",
    "outside/new",
    "outside/a/b",
    "nowhere/a",
    "outside/file/x",
    "root",
    "root/../outside/file",
    "root/inside/../../outside/new",
    "root/out/file",
    "root/out/new",
    "root/out/a/b",
    "root/out/../x",
    "root/out-file",
    "root/out-new",
    "root/out-nowhere",
    "root/through",
    "rootless/new",
    "root-is-a-prefix",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_outside_of_the_roots_nothing_is_written_or_made_or_told(
    rooted: Daemon, base: Path, path: str
) -> None:
    for answer in (
        upload(rooted, new(base / "root" / "inside" / "one"), new(f"{base}/{path}")),
        put(rooted, f"{base}/{path}"),
        put(rooted, f"{base}/{path}", query={"append": "true"}),
    ):
        error = answer.json()
        assert (answer.status_code, error["code"]) == (403, "PATH_NOT_ALLOWED")
    assert everything(base / "outside") == {"file": b"old"}
    assert set(os.listdir(base)) == {"root", "more", "outside", "link-in"}


@pytest.mark.parametrize(
    "path", ["root/f", "root/inside/a/b/f", "more/f", "link-in/f", "root/x/../f", "root/to-more"]
)
def test_below_the_roots_all_is_as_ever(rooted: Daemon, base: Path, path: str) -> None:
    assert put(rooted, f"{base}/{path}", b"x").status_code in (200, 201)
    assert Path(os.path.realpath(base / path)).read_bytes() == b"x"


def test_a_directory_that_is_swapped_for_a_link_leads_nowhere(rooted: Daemon, base: Path) -> None:
    swapped, aside = base / "root" / "swapped", base / "root" / "aside"
    swapped.mkdir()
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                swapped.rename(aside)
                swapped.symlink_to("../outside")
                swapped.unlink()
                aside.rename(swapped)

    def write(number: int) -> int:
        target = swapped / f"{number}" if number % 2 else swapped / "deep" / f"{number}" / "file"
        return put(rooted, target, b"x").status_code

    with ThreadPoolExecutor(9) as threads:
        swapper = threads.submit(swap)
        answers = list(threads.map(write, range(400)))
        ended.set()
        swapper.result()
    assert set(answers) <= {201, 400, 403, 404}
    assert 201 in answers
    assert everything(base / "outside") == {"file": b"old"}
    assert not [name for name in everything(base / "root") if ".execd-" in name]
