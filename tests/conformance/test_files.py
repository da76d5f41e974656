"""What the SDK asks of files and directories besides their bytes, direct and through the server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.filesystem import ContentReplaceEntry, MoveEntry, SetPermissionEntry, WriteEntry

from tests.support.sdk import Sdk

NAMES = ["plain", "two words", "line\nbreak", "數據 🌍", "%41%2f", "a'; touch pwn; '", "&path=x", "+", "#?"]


def refused(sdk: Sdk, status: int, code: str, method: str, *args: object) -> str:
    """The SDK raises that status and shows that code; its message.

    It knows the codes of some statuses of a route only, and shows the body as it is for others.
    """
    with pytest.raises(SandboxApiException) as raised:
        sdk.files(method, *args)
    message = str(raised.value)
    assert raised.value.status_code == status
    assert code in (raised.value.error.code, *message.replace('"', " ").split())
    assert not raised.value.is_retryable
    return message


@pytest.mark.parametrize("name", NAMES)
def test_info_of_a_file_of_any_name(keep_sdk: Sdk, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"12345")
    path.chmod(0o1640)
    found = keep_sdk.files("get_file_info", [str(path), str(tmp_path)])
    assert list(found) == [str(path), str(tmp_path)]
    info = found[str(path)]
    assert (info.path, info.entry_type, info.size, info.mode) == (str(path), "file", 5, 1640)
    assert abs((info.modified_at - datetime.now(UTC)).total_seconds()) < 60
    assert found[str(tmp_path)].entry_type == "directory"


def test_info_of_every_kind_and_of_nothing(keep_sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    if os.geteuid() == 0:
        os.chown(tmp_path / "fifo", 54321, 54321)
    found = keep_sdk.files("get_file_info", [f"{tmp_path}/link", f"{tmp_path}/fifo"])
    assert [info.entry_type for info in found.values()] == ["symlink", "other"]
    if os.geteuid() == 0:
        assert found[f"{tmp_path}/fifo"].owner == "54321"
    assert keep_sdk.files("get_file_info", []) == {}
    message = refused(keep_sdk, 404, "FILE_NOT_FOUND", "get_file_info", [f"{tmp_path}/missing"])
    assert f"{tmp_path}/missing" in message


def test_permissions_with_and_without_an_owner(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    keep_sdk.files("set_permissions", [SetPermissionEntry(path=str(path), mode=4711)])
    assert path.stat().st_mode & 0o7777 == 0o4711
    if os.geteuid() == 0:
        entry = SetPermissionEntry(path=str(path), mode=640, owner="nobody", group="nogroup")
        keep_sdk.files("set_permissions", [entry])
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)
    entry = SetPermissionEntry(path=str(path), owner="nosuch")
    assert "nosuch" in refused(keep_sdk, 400, "INVALID_REQUEST_BODY", "set_permissions", [entry])
    missing = SetPermissionEntry(path=f"{tmp_path}/missing")
    refused(keep_sdk, 404, "FILE_NOT_FOUND", "set_permissions", [missing])


def test_files_move_and_nothing_is_overwritten(keep_sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").mkdir()
    moves = [
        MoveEntry(src=f"{tmp_path}/a", dest=f"{tmp_path}/new/a"),
        MoveEntry(src=f"{tmp_path}/b", dest=f"{tmp_path}/new/b"),
    ]
    keep_sdk.files("move_files", moves)
    assert sorted(os.listdir(tmp_path / "new")) == ["a", "b"]
    onto = MoveEntry(src=f"{tmp_path}/new/a", dest=f"{tmp_path}/new/b")
    refused(keep_sdk, 409, "ALREADY_EXISTS", "move_files", [onto])
    refused(keep_sdk, 404, "FILE_NOT_FOUND", "move_files", [moves[0]])


def test_files_are_deleted_and_missing_ones_are_fine(keep_sdk: Sdk, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "kept").mkdir()
    keep_sdk.files("delete_files", [f"{tmp_path}/{name}" for name in [*NAMES, "link", "missing"]])
    assert os.listdir(tmp_path) == ["kept"]
    refused(keep_sdk, 400, "INVALID_FILE", "delete_files", [f"{tmp_path}/kept"])


def test_directories_are_made_and_go_with_all_that_is_in_them(keep_sdk: Sdk, tmp_path: Path) -> None:
    entries = [
        WriteEntry(path=f"{tmp_path}/a/b", mode=750),
        WriteEntry(path=f"{tmp_path}/c", mode=1777),
        WriteEntry(path=str(tmp_path), mode=777),
    ]
    before = tmp_path.stat().st_mode
    keep_sdk.files("create_directories", entries)
    modes = [path.stat().st_mode & 0o7777 for path in (tmp_path / "a" / "b", tmp_path / "a", tmp_path / "c")]
    assert modes == [0o750, 0o755, 0o1777]
    assert tmp_path.stat().st_mode == before
    (tmp_path / "a" / "b" / "file").touch()
    (tmp_path / "a" / "out").symlink_to(tmp_path / "c")
    keep_sdk.files("delete_directories", [f"{tmp_path}/a", f"{tmp_path}/missing"])
    assert os.listdir(tmp_path) == ["c"]
    refused(keep_sdk, 400, "INVALID_FILE", "delete_directories", ["/"])


def test_contents_are_replaced_with_and_without_counts(keep_sdk: Sdk, tmp_path: Path) -> None:
    for name, text in {"a": "x é x", "b": "none", "c": "éé"}.items():
        (tmp_path / name).write_text(text)
    entries = [
        ContentReplaceEntry(path=f"{tmp_path}/{name}", old_content=old, new_content=new)
        for name, old, new in (("a", "x", "yy"), ("b", "x", "y"), ("c", "é", ""))
    ]
    counted = keep_sdk.files("replace_contents_detailed", entries)
    assert {Path(result.path).name: result.replaced_count for result in counted} == {"a": 2, "b": 0, "c": 2}
    assert [(tmp_path / name).read_text() for name in "abc"] == ["yy é yy", "none", ""]
    keep_sdk.files(
        "replace_contents",
        [ContentReplaceEntry(path=f"{tmp_path}/a", old_content="yy é yy", new_content="done")],
    )
    assert (tmp_path / "a").read_text() == "done"
    missing = ContentReplaceEntry(path=f"{tmp_path}/missing", old_content="x", new_content="y")
    refused(keep_sdk, 404, "FILE_NOT_FOUND", "replace_contents", [missing])
    refused(keep_sdk, 404, "FILE_NOT_FOUND", "replace_contents_detailed", [missing])


def test_variables_and_the_tilde_work_in_paths(keep_sdk: Sdk, tmp_path: Path) -> None:
    keep_sdk.set_env("WORK", str(tmp_path))
    keep_sdk.files("create_directories", [WriteEntry(path="$WORK/made", mode=755)])
    found = keep_sdk.files("get_file_info", ["${WORK}/made", "~"])
    assert found["${WORK}/made"].path == f"{tmp_path}/made"
    assert found["~"].entry_type == "directory"
    message = refused(keep_sdk, 400, "INVALID_FILE", "get_file_info", ["$NOT_DEFINED_HERE/x"])
    assert "NOT_DEFINED_HERE" in message
