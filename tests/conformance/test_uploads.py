"""Files that the SDK writes, direct and through the server."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.filesystem import WriteEntry

from tests.support.sdk import Sdk
from tests.support.uploads import everything

NAMES = [
    "plain",
    "with space",
    'quote"s',
    "it's",
    "new\nline",
    "數據 🌍.txt",
    "%41",
    "semi;colon=",
    "back\\slash",
]


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o7777:o}"


@pytest.mark.parametrize("size", [0, 1, 17 * 1024, 19 * 1024, 5 * 1024 * 1024])
def test_a_file_arrives_as_it_is(keep_sdk: Sdk, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    keep_sdk.files("write_file", str(tmp_path / "a" / "file"), content)
    assert (tmp_path / "a" / "file").read_bytes() == content
    assert mode(tmp_path / "a" / "file") == "755"  # what the SDK asks for by itself


def test_many_files_of_any_name_and_kind_of_data(keep_sdk: Sdk, tmp_path: Path) -> None:
    entries = [WriteEntry(path=str(tmp_path / name), data=name, mode=640) for name in NAMES]
    entries.append(WriteEntry(path=str(tmp_path / "stream"), data=io.BytesIO(b"x" * 100_000), mode=4755))
    keep_sdk.files("write_files", entries)
    assert everything(tmp_path) == {name: name.encode() for name in NAMES} | {"stream": b"x" * 100_000}
    assert {mode(path) for path in tmp_path.iterdir()} == {"640", "4755"}


def test_owner_and_group_are_set(keep_sdk: Sdk, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("changing owners needs root")
    entry = WriteEntry(path=str(tmp_path / "f"), data="x", owner="nobody", group="nogroup", mode=600)
    keep_sdk.files("write_files", [entry])
    info = (tmp_path / "f").stat()
    assert (info.st_uid, info.st_gid) == (65534, 65534)


def test_what_is_written_is_read_again(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    keep_sdk.files("write_file", path, "one\ntwo\n")
    assert keep_sdk.files("read_file", path) == "one\ntwo\n"
    keep_sdk.files("write_file", path, "three")
    assert keep_sdk.files("read_bytes", path) == b"three"
    assert keep_sdk.run(f"cat {path}").text == "three"


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        pytest.param({"owner": "nosuch"}, 400, "INVALID_FILE_METADATA", id="owner"),
        pytest.param({"mode": 489}, 400, "INVALID_FILE_METADATA", id="mode"),
        pytest.param({"path": "/etc"}, 400, "INVALID_FILE", id="directory"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_was_done(
    keep_sdk: Sdk, tmp_path: Path, fields: dict[str, object], status: int, code: str
) -> None:
    good = WriteEntry(path=str(tmp_path / "good"), data="good")
    bad = WriteEntry(**{"path": str(tmp_path / "bad"), "data": os.urandom(3_000_000)} | fields)
    with pytest.raises(SandboxApiException) as raised:
        keep_sdk.files("write_files", [good, bad])
    assert (raised.value.status_code, raised.value.error.code) == (status, code)
    assert not raised.value.is_retryable
    assert everything(tmp_path) == {"good": b"good"}
