"""Whom a command runs as, and whether this daemon may switch to them."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass

from execd.posix import libc, users

_CAP_SETGID = 6  # capability.h
_CAP_SETUID = 7
_SETGROUPS = {"x86_64": 116, "aarch64": 159}  # system call numbers: libc's setgroups is for all threads


@dataclass(frozen=True, slots=True)
class Identity:
    """A uid, its primary gid and its supplementary groups, and the variables that go with them."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """HOME, USER and LOGNAME of this identity."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


@contextlib.contextmanager
def file_access_as(identity: Identity | None) -> Iterator[None]:
    """Within the block, this thread's file accesses are checked as `identity`'s (None: as our own).

    No other thread is affected: setfsuid(2) and the bare setgroups(2) are per thread.
    """
    number = _SETGROUPS.get(platform.machine())
    if identity is None or number is None:
        yield
        return
    own_groups = os.getgroups()
    libc.set_thread_groups(number, list(identity.groups))
    libc.set_file_ids(identity.uid, identity.gid)
    try:
        yield
    finally:
        libc.set_file_ids(os.geteuid(), os.getegid())
        libc.set_thread_groups(number, own_groups)


def resolve(uid: int, gid: int | None) -> Identity | None:
    """The identity to switch to, or None if that is who we are already.

    A uid that is in no passwd file is allowed: it has no groups, HOME is `/`, and its name is its number.
    """
    if uid == os.geteuid() and gid in (None, os.getegid()):
        return None
    user = users.user_by_id(uid)
    if user is None:
        return Identity(uid, uid if gid is None else gid, (), "/", str(uid))
    primary = user.gid if gid is None else gid
    groups = dict.fromkeys([primary, *users.groups_of(user.name)])
    return Identity(uid, primary, tuple(groups), user.home or "/", user.name)


def missing_capabilities(identity: Identity) -> list[str]:
    """Names of the capabilities that we lack to become `identity`; empty if we may."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        effective = next((int(line[7:], 16) for line in file if line.startswith("CapEff:")), 0)
    missing = []
    if identity.uid != os.geteuid() and not effective >> _CAP_SETUID & 1:
        missing.append("CAP_SETUID")
    if not effective >> _CAP_SETGID & 1:
        missing.append("CAP_SETGID")
    return missing
