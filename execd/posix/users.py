"""Users and groups from /etc/passwd and /etc/group, cached until the files change.

Not through NSS: its plug-ins belong to an image we know nothing about, and a lookup per call is slow.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

FILE_LIMIT = 4 * 1024 * 1024
"""Bytes read of either file."""


_NAMES_SECONDS = 1.0


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
        self._names: dict[int, str] = {}
        self._named_at = float("-inf")

    def name(self, number: int) -> str:
        """The name with that id, or the number as text. A dictionary look-up: listings ask for every entry.

        Looks at the file again at most once a second.
        """
        now = time.monotonic()
        if now - self._named_at > _NAMES_SECONDS:
            self._names = {
                int(row[2]): row[0] for row in reversed(self.rows()) if row[2:3] and row[2].isdigit()
            }
            self._named_at = now
        return self._names.get(number) or str(number)

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


def user_by_name(name: str) -> User | None:
    """The first user of that name, or None."""
    for row in _passwd.rows():
        if len(row) >= 6 and row[0] == name and row[2].isdigit() and row[3].isdigit():
            return User(name, int(row[2]), int(row[3]), row[5])
    return None


def group_by_name(name: str) -> int | None:
    """The gid of the first group of that name, or None."""
    return next(
        (int(row[2]) for row in _group.rows() if row[0] == name and row[2:3] and row[2].isdigit()), None
    )


def user_name(uid: int) -> str:
    """The name of that uid, or the number as text."""
    return _passwd.name(uid)


def group_name(gid: int) -> str:
    """The name of that gid, or the number as text."""
    return _group.name(gid)


def groups_of(name: str) -> list[int]:
    """The supplementary groups that list the user as a member, in file order, 1024 at most."""
    found = [
        int(row[2])
        for row in _group.rows()
        if len(row) >= 4 and row[2].isdigit() and name in row[3].split(",")
    ]
    return found[:1024]
