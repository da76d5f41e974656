"""What lstat(2) says of a file, as the API shows it. Owner and group by name, else by number."""

from __future__ import annotations

import os
import stat
import time
from functools import lru_cache
from urllib.parse import quote_from_bytes

from execd.posix import users

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
FIELDS = ("path", "type", "size", "modified_at", "created_at", "owner", "group", "mode")


def describe(path: str, info: os.stat_result) -> dict[str, object]:
    """A `FileInfo` of the contract. `path` may hold undecodable bytes as surrogates: it is then shown with
    U+FFFD in their place, and `path_encoded` has the exact bytes, percent-encoded, for use in a query.
    """
    return named(path) | {
        "type": _TYPES.get(stat.S_IFMT(info.st_mode), "other"),
        "size": info.st_size,
        "modified_at": timestamp(info.st_mtime_ns),
        "created_at": timestamp(info.st_ctime_ns),  # Linux tells no other time of creation through lstat
        "owner": users.user_name(info.st_uid),
        "group": users.group_name(info.st_gid),
        "mode": octal_digits(info.st_mode),
    }


def named(path: str) -> dict[str, object]:
    """How an answer names a file: `path`, and its exact bytes as `path_encoded` if they are no UTF-8."""
    if is_text(path):
        return {"path": path}
    return {"path": os.fsencode(path).decode("utf-8", "replace"), "path_encoded": encoded(path)}


def is_text(path: str) -> bool:
    """False if the path holds bytes that are no UTF-8 (as surrogates)."""
    return path.isascii() or not any("\udc80" <= char <= "\udcff" for char in path)


def encoded(path: str) -> str:
    """The path's bytes, percent-encoded: what a `path` query parameter takes for any name."""
    return quote_from_bytes(os.fsencode(path))


def octal_digits(mode: int) -> int:
    """Permission bits as the wire has them: 0o644 is the number 644."""
    return int(f"{stat.S_IMODE(mode):o}")


def timestamp(nanoseconds: int) -> str:
    """RFC 3339 in UTC with nanoseconds."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_second(seconds)}.{rest:09d}Z"


def etag(info: os.stat_result) -> str:
    """A strong entity tag (RFC 9110 8.8.3) of the file's content: another file, size or time is another tag.

    Every file that execd writes is a new inode. What others write in place, with the same size and within
    the same tick of the kernel's clock (up to 10 ms), is not told apart.
    """
    return f'"{info.st_dev:x}-{info.st_ino:x}-{info.st_size:x}-{info.st_mtime_ns:x}-{info.st_ctime_ns:x}"'


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
