"""Entries of a listing as JSON text: the hot path of every walk, so each repeated piece is made once."""

from __future__ import annotations

import os
import stat
from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from execd.posix import entries, users

FIELDS: Final = entries.FIELDS
_KINDS: Final = {"d": "directory", "f": "file", "l": "symlink", "o": "other"}
_TYPES: Final = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
_WITHOUT_STAT: Final = frozenset({"path", "type"})
_REMEMBERED: Final = 4096


def needs_stat(fields: frozenset[str]) -> bool:
    """False if a directory alone tells these fields of its entries."""
    return not fields <= _WITHOUT_STAT


class EntryText:
    """Makes the `FileInfo` of entries below `root`, with only `fields` of it; as `posix.entries.describe`."""

    def __init__(self, root: str, fields: frozenset[str]) -> None:
        self._root = root.rstrip("/") + "/"
        self._fields = fields
        self._whole = fields == frozenset(FIELDS)
        self._prefix: str | None = None
        self._quoted = ""  # root and prefix, with the opening quote only; empty: not text
        self._seconds: dict[int, str] = {}
        self._modes: dict[int, tuple[str, int]] = {}
        self._owners: dict[tuple[int, int], tuple[str, str]] = {}

    def __call__(self, prefix: str, name: str, kind: str, info: os.stat_result | None) -> str:
        """The JSON object of one entry: `prefix` is its directory below the root, with a slash at its end."""
        if prefix is not self._prefix:
            self._prefix = prefix
            directory = self._root + prefix
            self._quoted = quoted(directory)[:-1] if entries.is_text(directory) else ""
        encoded = ""
        if self._quoted and entries.is_text(name):
            path = self._quoted + quoted(name)[1:]
        else:
            whole = self._root + prefix + name
            path = quoted(os.fsencode(whole).decode("utf-8", "replace"))
            encoded = f',"path_encoded":{quoted(entries.encoded(whole))}'
        if not self._whole or info is None:
            return self._some(path, encoded, kind, info)
        kind, mode = self._mode(info.st_mode)
        owner, group = self._names(info.st_uid, info.st_gid)
        modified_ns, created_ns = info.st_mtime_ns, info.st_ctime_ns
        modified = self._time(modified_ns)
        created = modified if created_ns == modified_ns else self._time(created_ns)
        return (
            f'{{"path":{path},"type":"{kind}","size":{info.st_size},"modified_at":"{modified}",'
            f'"created_at":"{created}","owner":{owner},"group":{group},"mode":{mode}{encoded}}}'
        )

    def _some(self, path: str, encoded: str, kind: str, info: os.stat_result | None) -> str:
        pieces = {"path": path + encoded, "type": f'"{_KINDS[kind]}"'}
        if info is not None:
            kind, mode = self._mode(info.st_mode)
            owner, group = self._names(info.st_uid, info.st_gid)
            pieces |= {
                "type": f'"{kind}"',
                "size": str(info.st_size),
                "modified_at": f'"{self._time(info.st_mtime_ns)}"',
                "created_at": f'"{self._time(info.st_ctime_ns)}"',
                "owner": owner,
                "group": group,
                "mode": str(mode),
            }
        return "{" + ",".join(f'"{k}":{v}' for k, v in pieces.items() if k in self._fields) + "}"

    def _time(self, nanoseconds: int) -> str:
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        text = self._seconds.get(seconds)
        if text is None:
            if len(self._seconds) >= _REMEMBERED:
                self._seconds.clear()
            text = self._seconds[seconds] = entries.timestamp(seconds * 1_000_000_000)[:-10]
        return f"{text}{rest:09d}Z"

    def _mode(self, mode: int) -> tuple[str, int]:
        found = self._modes.get(mode)
        if found is None:
            kind = _TYPES.get(stat.S_IFMT(mode), "other")
            found = self._modes[mode] = (kind, entries.octal_digits(mode))
        return found

    def _names(self, uid: int, gid: int) -> tuple[str, str]:
        found = self._owners.get((uid, gid))
        if found is None:
            if len(self._owners) >= _REMEMBERED:
                self._owners.clear()
            found = (quoted(users.user_name(uid)), quoted(users.group_name(gid)))
            self._owners[uid, gid] = found
        return found
