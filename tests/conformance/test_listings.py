"""What the SDK asks of directories: lists and searches, direct and through the server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.filesystem import DirectoryListEntry, SearchEntry

from tests.support import trees
from tests.support.sdk import Sdk

ODD = ["two words", "line\nbreak", "數據 🌍", "%41%2f", "&path=x", "+", "#?", "[a]"]


def test_a_list_has_every_kind_and_goes_down_as_far_as_asked(keep_sdk: Sdk, tmp_path: Path) -> None:
    trees.make(tmp_path, "a/b/c", "z", b"\xff")
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    found = keep_sdk.files("list_directory", DirectoryListEntry(path=str(tmp_path), depth=2))
    assert [(Path(entry.path).name, entry.entry_type) for entry in found] == [
        ("a", "directory"),
        ("b", "directory"),
        ("fifo", "other"),
        ("link", "symlink"),
        ("z", "file"),
        ("�", "file"),
    ]
    one = keep_sdk.files("list_directory", DirectoryListEntry(path=str(tmp_path)))
    assert len(one) == 5
    assert keep_sdk.files("list_directory", DirectoryListEntry(path=str(tmp_path), depth=0)) == []


@pytest.mark.parametrize("name", ODD)
def test_a_directory_of_any_name_is_listed_and_searched(keep_sdk: Sdk, tmp_path: Path, name: str) -> None:
    trees.make(tmp_path, f"{name}/{name}")
    root = str(tmp_path / name)
    listed = keep_sdk.files("list_directory", DirectoryListEntry(path=root))
    searched = keep_sdk.files("search", SearchEntry(path=root, pattern="**"))
    assert [entry.path for entry in listed] == [entry.path for entry in searched] == [f"{root}/{name}"]


def test_a_search_finds_names_at_any_depth_and_paths_below(keep_sdk: Sdk, tmp_path: Path) -> None:
    trees.make(tmp_path, "main.py", "src/a.py", "src/deep/b.py", "src/c.txt")

    def names(pattern: str) -> list[str]:
        found = keep_sdk.files("search", SearchEntry(path=str(tmp_path), pattern=pattern))
        return [os.path.relpath(entry.path, tmp_path) for entry in found]

    assert names("*.py") == ["main.py", "src/a.py", "src/deep/b.py"]
    assert names("src/**/*.{py,txt}") == ["src/a.py", "src/c.txt", "src/deep/b.py"]
    assert names("*.nothing") == []


def test_what_cannot_be_listed_is_an_error_with_its_status(keep_sdk: Sdk, tmp_path: Path) -> None:
    trees.make(tmp_path, "file")
    for method, entry, status in (
        ("list_directory", DirectoryListEntry(path=f"{tmp_path}/missing"), 404),
        ("list_directory", DirectoryListEntry(path=f"{tmp_path}/file"), 400),
        ("search", SearchEntry(path=f"{tmp_path}/missing", pattern="*"), 404),
        ("search", SearchEntry(path=str(tmp_path), pattern="["), 400),
    ):
        with pytest.raises(SandboxApiException) as raised:
            keep_sdk.files(method, entry)
        assert raised.value.status_code == status
