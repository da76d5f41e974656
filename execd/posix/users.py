"""Users and groups from /etc/passwd and /etc/group, cached until the files change.

Not through NSS: its plug-ins belong to an image we know nothing about, and a lookup per call is slow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

FILE_LIMIT = 4 * 1024 * 1024
"""Bytes read of either file."""


@dataclass(frozen=True, slots=True)
class User:
    """One line of passwd(5)."""

    name: str
    uid: int
    gid: int
    home: str


class _Table:
    """The lines of one colon-separated file, read again when the file changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version: tuple[int, int, int] | None = None
        self._rows: list[list[str]] = []

    def rows(self) -> list[list[str]]:
        try:
            stat = os.stat(self._path)
            version = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if version != self._version:
                with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
                    lines = file.read(FILE_LIMIT).split("\n")
                self._rows = [line.split(":") for line in lines if not line.startswith("#")]
                self._version = version
        except OSError:
            return []
        return self._rows


_passwd = _Table("/etc/passwd")
_group = _Table("/etc/group")


def user_by_id(uid: int) -> User | None:
    """The first user with that uid, or None."""
    for row in _passwd.rows():
        if len(row) >= 6 and row[2] == str(uid) and row[3].isdigit():
            return User(row[0], uid, int(row[3]), row[5])
    return None


def groups_of(name: str) -> list[int]:
    """The supplementary groups that list the user as a member, in file order, 1024 at most."""
    found = [
        int(row[2])
        for row in _group.rows()
        if len(row) >= 4 and row[2].isdigit() and name in row[3].split(",")
    ]
    return found[:1024]
