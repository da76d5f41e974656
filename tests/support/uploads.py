"""Multipart bodies, put together by hand, and what an upload must not leave behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.live import Daemon

BOUNDARY = "execd-test-boundary"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
Parts = list[tuple[str, tuple[str | None, bytes, str]]]
"""What httpx takes as `files`."""


@dataclass(frozen=True)
class New:
    """A file to upload; `fields` are the rest of its metadata."""

    path: str | Path
    content: bytes
    fields: dict[str, Any]

    @property
    def metadata(self) -> bytes:
        return json.dumps({"path": str(self.path), **self.fields}).encode()


def new(path: str | Path, content: bytes = b"new", **fields: Any) -> New:
    """A file to upload."""
    return New(path, content, fields)


def upload(running: Daemon, *files: New, **options: Any) -> httpx.Response:
    """The answer to one `POST /files/upload` of these files."""
    return running.client.post("/files/upload", files=parts(*files), **options)


def put(running: Daemon, path: str | Path, content: Any = b"new", **options: Any) -> httpx.Response:
    """The answer to one `PUT /files/content`; `query` has more parameters, `headers` go as they are."""
    query = {"path": str(path), **options.pop("query", {})}
    return running.client.put("/files/content", params=query, content=content, **options)


def parts(*files: New) -> Parts:
    """The parts, as clients send them."""
    found: Parts = []
    for file in files:
        found.append(("metadata", ("metadata", file.metadata, "application/json")))
        found.append(("file", (Path(file.path).name, file.content, "application/octet-stream")))
    return found


def part(name: str, content: bytes, *headers: str, filename: str | None = None) -> bytes:
    """One part with the boundary before it."""
    named = f'; filename="{filename}"' if filename else ""
    lines = [f"--{BOUNDARY}", f'Content-Disposition: form-data; name="{name}"{named}', *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content + b"\r\n"


def body(*pieces: bytes) -> bytes:
    """Parts made by `part`, closed."""
    return b"".join(pieces) + f"--{BOUNDARY}--\r\n".encode()


def pair(file: New) -> bytes:
    """The two parts of one file, without file names."""
    return part("metadata", file.metadata) + part("file", file.content)


def post(running: Daemon, content: bytes | Iterable[bytes], content_type: str = TYPE) -> httpx.Response:
    """The answer to an upload of exactly this body; chunked if it comes in pieces."""
    headers = {"Content-Type": content_type} if content_type else {}
    return running.client.post("/files/upload", content=content, headers=headers)


def chunks(data: bytes, size: int = 8192) -> Iterator[bytes]:
    """The data in pieces."""
    for at in range(0, len(data), size):
        yield data[at : at + size]


def everything(directory: str | Path) -> dict[str, bytes]:
    """All that is below a directory, by its path there: a file's content; directories end in a slash."""
    found: dict[str, bytes] = {}
    for place, directories, files in os.walk(directory):
        below = os.path.relpath(place, directory)
        for name in directories:
            found[os.path.normpath(os.path.join(below, name)) + "/"] = b""
        for name in files:
            path = os.path.join(place, name)
            found[os.path.normpath(os.path.join(below, name))] = (
                Path(path).read_bytes() if os.path.isfile(path) else b""
            )
    return found
