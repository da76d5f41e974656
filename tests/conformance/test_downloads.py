"""Reading files through the released SDK: text, bytes, streams, ranges and lines."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import httpx
import pytest
from opensandbox.exceptions import SandboxApiException

from tests.support.sdk import Sdk, Target

MIB = 1 << 20


def test_text_and_bytes_are_read_as_they_are(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / '数据 "q".txt'
    path.write_bytes("größe\r\nzwei\n".encode())
    assert keep_sdk.files("read_file", str(path)) == "größe\r\nzwei\n"
    path.write_bytes("größe".encode("latin-1"))
    assert keep_sdk.files("read_file", str(path), encoding="latin-1") == "größe"
    assert keep_sdk.files("read_bytes", str(path)) == "größe".encode("latin-1")
    path.write_bytes(b"")
    assert keep_sdk.files("read_bytes", str(path)) == b""
    assert keep_sdk.files("read_bytes_stream", str(path)) == []


@pytest.mark.parametrize("size", [MIB, 20 * MIB + 7])
def test_large_files_are_read_whole_and_streamed_in_pieces(keep_sdk: Sdk, tmp_path: Path, size: int) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(size))
    assert hashlib.sha256(keep_sdk.files("read_bytes", str(path))).digest() == _digest(path)
    pieces = keep_sdk.files("read_bytes_stream", str(path), chunk_size=65536)
    assert {len(piece) for piece in pieces[:-1]} == {65536}
    assert hashlib.sha256(b"".join(pieces)).digest() == _digest(path)
    ranged = keep_sdk.files("read_bytes_stream", str(path), range_header=f"bytes=5-{size - 3}")
    assert b"".join(ranged) == path.read_bytes()[5:-2]


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def test_a_range_is_read_alone(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / "ten"
    path.write_bytes(b"0123456789")
    for header, expected in {
        "bytes=0-0": b"0",
        "bytes=5-": b"56789",
        "bytes=-3": b"789",
        "bytes=2-4,6-7": b"234",
        "bytes=9-100": b"9",
        "bytes=x": b"0123456789",
    }.items():
        assert keep_sdk.files("read_bytes", str(path), range_header=header) == expected
        assert keep_sdk.files("read_file", str(path), range_header=header) == expected.decode()


def test_lines_are_read_alone(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\r\nthree\n\nfive\n")
    assert keep_sdk.files("read_file", str(path), offset=2, limit=2) == "two\r\nthree"
    assert keep_sdk.files("read_file", str(path), offset=5) == "five"
    assert keep_sdk.files("read_file", str(path), limit=1) == "one"
    assert keep_sdk.files("read_file", str(path), offset=6, limit=1) == ""
    assert b"".join(keep_sdk.files("read_bytes_stream", str(path), offset=4)) == b"\nfive"
    path.write_bytes(b"x" * (5 * MIB) + b"\ny\n")
    assert keep_sdk.files("read_bytes", str(path), offset=1, limit=1) == b"x" * (5 * MIB)
    assert keep_sdk.files("read_bytes", str(path), offset=2) == b"y"


@pytest.mark.parametrize(
    ("path", "options", "status", "code"),
    [
        ("/nowhere/at/all", {}, 404, "FILE_NOT_FOUND"),
        ("/etc", {}, 400, "INVALID_FILE"),
        ("/dev/zero", {}, 400, "INVALID_FILE"),
        ("/etc/passwd", {"range_header": "bytes=99999999-"}, 416, "RANGE_NOT_SATISFIABLE"),
        ("/etc/passwd", {"offset": 0}, 400, "INVALID_QUERY"),
        ("/etc/passwd", {"limit": 0}, 400, "INVALID_QUERY"),
        ("/etc/passwd", {"limit": 1, "range_header": "bytes=0-1"}, 400, "INVALID_QUERY"),
    ],
)
def test_a_refusal_is_raised_with_its_status_and_code(
    keep_sdk: Sdk, path: str, options: dict[str, object], status: int, code: str
) -> None:
    for method in ("read_file", "read_bytes"):
        with pytest.raises(SandboxApiException) as raised:
            keep_sdk.files(method, path, **options)
        assert (raised.value.status_code, raised.value.error.code) == (status, code)
        assert raised.value.request_id
    with pytest.raises(SandboxApiException) as raised:
        keep_sdk.files("read_bytes_stream", path, **options)
    assert raised.value.status_code == status


def test_a_file_that_becomes_shorter_is_an_error_and_no_short_file(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 50 * MIB)
    url, headers = f"{keep_sdk.target.url}/files/download", _key(keep_sdk.target)
    with httpx.stream("GET", url, params={"path": str(path)}, headers=headers, trust_env=False) as answer:
        assert answer.status_code == 200
        os.truncate(path, MIB)
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()


def test_what_a_browser_needs_passes_through_every_route(keep_sdk: Sdk, tmp_path: Path) -> None:
    path = tmp_path / "数 \n.txt"
    path.write_bytes(b"0123456789")
    url, key = f"{keep_sdk.target.url}/files/download", _key(keep_sdk.target)
    with httpx.Client(trust_env=False, headers=key, params={"path": str(path)}) as client:
        whole = client.get(url)
        assert whole.content == b"0123456789"
        assert whole.headers["content-length"] == "10"
        assert (
            whole.headers["content-disposition"]
            == "attachment; filename=\"_ _.txt\"; filename*=UTF-8''%E6%95%B0%20%0A.txt"
        )
        tag = whole.headers["etag"]
        part = client.get(url, headers={"Range": "bytes=4-", "If-Range": tag})
        assert (part.status_code, part.content) == (206, b"456789")
        assert part.headers["content-range"] == "bytes 4-9/10"
        assert client.get(url, headers={"If-None-Match": tag}).status_code == 304
        beyond = client.get(url, headers={"Range": "bytes=10-"})
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")


def _key(target: Target) -> dict[str, str]:
    return {"OPEN-SANDBOX-API-KEY": target.server.api_key} if target.server else {}
