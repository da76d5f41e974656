"""Every route that takes a path, asked for one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote_from_bytes

import httpx

from tests.support.live import Daemon

Wants = Literal["file", "directory", "new file", "new directory"]
PARTS = "multipart/form-data; boundary=part"


@dataclass(frozen=True)
class Route:
    """`wants`: what has to be at the path for it to succeed. `follows`: a symlink there means its target."""

    method: str
    path: str
    wants: Wants
    follows: bool
    send: Callable[[httpx.Client, str], httpx.Response]
    role: str = ""

    def ask(self, running: Daemon, path: str) -> httpx.Response:
        return self.send(running.client, path)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.role}".strip()


def _query(
    method: str, route: str, wants: Wants, *, follows: bool, extra: str = "", content: bytes | None = None
) -> Route:
    def send(client: httpx.Client, path: str) -> httpx.Response:
        query = f"path={quote_from_bytes(os.fsencode(path))}{extra}"
        return client.request(method, f"{route}?{query}", content=content)

    return Route(method, route, wants, follows, send)


def _body(route: str, wants: Wants, body: Callable[[str], Any], *, follows: bool, role: str = "") -> Route:
    return Route(
        "POST", route, wants, follows, lambda client, path: client.post(route, json=body(path)), role
    )


def _upload(client: httpx.Client, path: str) -> httpx.Response:
    metadata = json.dumps({"path": path})
    head = '--part\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    content = head.format("metadata", metadata) + head.format("file", "new") + "--part--\r\n"
    return client.post("/files/upload", content=content.encode(), headers={"Content-Type": PARTS})


def route(name: str) -> Route:
    """The one that is called so."""
    return next(found for found in ROUTES if str(found) == name)


ROUTES = [
    _query("GET", "/files/info", "file", follows=False),
    _query("GET", "/files/download", "file", follows=True),
    _query("DELETE", "/files", "file", follows=False),
    _query("PUT", "/files/content", "new file", follows=True, content=b"new"),
    _body("/files/permissions", "file", lambda path: {path: {"mode": 640}}, follows=True),
    _body("/files/replace", "file", lambda path: {path: {"old": "old", "new": "new"}}, follows=True),
    Route("POST", "/files/upload", "new file", True, _upload),
    _body(
        "/files/mv", "file", lambda path: [{"src": path, "dest": f"{path}.moved"}], follows=False, role="src"
    ),
    _body("/directories", "new directory", lambda path: {path: {}}, follows=True),
    _query("DELETE", "/directories", "directory", follows=False),
    _query("GET", "/directories/list", "directory", follows=False),
    _body("/directories/list", "directory", lambda path: {"path": path}, follows=False),
    _query("GET", "/files/search", "directory", follows=False),
    _body("/files/search", "directory", lambda path: {"path": path}, follows=False),
]
"""A move to a path is not here: it needs a second one."""
