"""Generated requests of the file routes made safe to send: paths lead into a directory of the test's own.

Two fences: paths are mapped here, and the daemon is started with that directory as its only root.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROUTES = ("/files", "/directories")
FILES = (
    *("file", "other file", "link", "directory/inner") * 3,
    *("missing", "new/file", "directory", "f\nq'\"%41é"),
)
DIRECTORIES = (
    *("directory", "tree", "tree/a") * 3,
    *("missing", "link to directory", "new/a/b", "file", "directory/d\nq'\"%é"),
)
"""Most are there and of the right kind."""
_OWNED = {"owner", "group"}


class Sandbox:
    """The directory that generated requests work in."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def fill(self) -> None:
        """Make it what it was at first."""
        for path in self.top.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name in ("directory", "tree/a/b", "tree/c"):
            (self.top / name).mkdir(parents=True)
        for name in ("file", "other file", "directory/inner", "tree/a/file"):
            (self.top / name).write_text("old content\n")
        (self.top / "link").symlink_to("file")
        (self.top / "link to directory").symlink_to("directory")

    def query(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """The same parameters with every `path` in the directory, and no owner but ours."""
        safe = dict(query)
        for name, value in query.items():
            if name == "path":
                safe[name] = self._each(value, lambda item: self._path(path, item, whatever=True))
            elif name in _OWNED:
                safe[name] = self._each(value, _owner)
            elif name == "mode":
                safe[name] = self._each(value, _mode)
        return safe

    def body(self, path: str, body: Any) -> Any:
        """The same body with paths in the directory and no owner but ours. What makes it invalid stays."""
        if isinstance(body, bytes):
            try:
                return json.dumps(self.body(path, json.loads(body))).encode()
            except ValueError:
                return body
        if path == "/files/mv":
            return [self._fields(path, item) for item in body] if isinstance(body, list) else body
        if not isinstance(body, Mapping) or path in ("/files/search", "/directories/list"):
            return self._fields(path, body)
        if path == "/files/upload":
            metadata = {"metadata": self._fields(path, body["metadata"])} if "metadata" in body else {}
            return {**body, **metadata}
        return {self._path(path, name): self._fields(path, value) for name, value in body.items()}

    def _fields(self, path: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        safe = dict(value)
        for name in safe:
            if name in ("path", "src", "dest"):
                safe[name] = self._path(path, safe[name])
            elif name in _OWNED:
                safe[name] = _owner(safe[name])
            elif name == "mode":
                safe[name] = _mode(safe[name])
            elif name == "expected_count" and type(safe[name]) is int and safe[name] >= 0:
                safe[name] = 0  # what is made up is hardly ever found
        return safe

    def _path(self, route: str, value: Any, *, whatever: bool = False) -> Any:
        """`whatever`: what is no text becomes text on its way, as in a query."""
        if not isinstance(value, str):
            return self._path(route, f"{value!r}") if whatever else value
        if not value:
            return value
        names = DIRECTORIES if route.startswith("/directories") or route == "/files/search" else FILES
        safe = f"{self.top}/{names[zlib.crc32(value.encode(errors='replace')) % len(names)]}"
        return safe + "\0" if "\0" in value else safe

    @staticmethod
    def _each(value: Any, change: Callable[[Any], Any]) -> Any:
        return [change(item) for item in value] if isinstance(value, list) else change(value)


def _owner(value: Any) -> Any:
    return "root" if isinstance(value, str) and value and "\0" not in value else value


def _mode(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 7777:
        return value
    return int(f"{value % 0o10000:o}")
