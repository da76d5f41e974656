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
_SECOND: Final = 1_000_000_000  # in nanoseconds


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
        if self._quoted and (name.isascii() or entries.is_text(name)):
            path = self._quoted + quoted(name)[1:]
        else:
            whole = self._root + prefix + name
            path = quoted(os.fsencode(whole).decode("utf-8", "replace"))
            encoded = f',"path_encoded":{quoted(entries.encoded(whole))}'
        if info is None or not self._whole:
            return self._some(path, encoded, kind, info)
        # What `_some` does for all fields, spelled out: nearly every entry comes here.
        mode, who = info.st_mode, (info.st_uid, info.st_gid)
        kind, digits = self._modes.get(mode) or self._mode(mode)
        owner, group = self._owners.get(who) or self._names(who)
        second, rest = divmod(info.st_mtime_ns, _SECOND)
        modified = f"{self._seconds.get(second) or self._second(second)}{rest:09d}Z"
        if info.st_ctime_ns == info.st_mtime_ns:
            created = modified
        else:
            second, rest = divmod(info.st_ctime_ns, _SECOND)
            created = f"{self._seconds.get(second) or self._second(second)}{rest:09d}Z"
        return (
            f'{{"path":{path},"type":"{kind}","size":{info.st_size},"modified_at":"{modified}",'
            f'"created_at":"{created}","owner":{owner},"group":{group},"mode":{digits}{encoded}}}'
        )

    def _some(self, path: str, encoded: str, kind: str, info: os.stat_result | None) -> str:
        pieces = {"path": path + encoded, "type": f'"{_KINDS[kind]}"'}
        if info is not None:
            kind, digits = self._mode(info.st_mode)
            owner, group = self._names((info.st_uid, info.st_gid))
            pieces |= {
                "type": f'"{kind}"',
                "size": str(info.st_size),
                "modified_at": quoted(entries.timestamp(info.st_mtime_ns)),
                "created_at": quoted(entries.timestamp(info.st_ctime_ns)),
                "owner": owner,
                "group": group,
                "mode": str(digits),
            }
        return "{" + ",".join(f'"{k}":{v}' for k, v in pieces.items() if k in self._fields) + "}"

    def _second(self, second: int) -> str:
        if len(self._seconds) >= _REMEMBERED:
            self._seconds.clear()
        text = self._seconds[second] = entries.timestamp(second * _SECOND).removesuffix("000000000Z")
        return text

    def _mode(self, mode: int) -> tuple[str, int]:
        kind = _TYPES.get(stat.S_IFMT(mode), "other")
        found = self._modes[mode] = (kind, entries.octal_digits(mode))
        return found

    def _names(self, who: tuple[int, int]) -> tuple[str, str]:
        if len(self._owners) >= _REMEMBERED:
            self._owners.clear()
        found = (quoted(users.user_name(who[0])), quoted(users.group_name(who[1])))
        self._owners[who] = found
        return found
