"""Mode, owner and group of a file: names become numbers, and both are set on what was opened."""

from __future__ import annotations

import os
from dataclasses import dataclass

from execd.posix import users


class UnknownName(LookupError):
    """There is no such user or group. `field` is `owner` or `group`."""

    def __init__(self, field: str, name: str) -> None:
        super().__init__(f"there is no {'user' if field == 'owner' else 'group'} {name!r}")
        self.field = field
        self.name = name


@dataclass(frozen=True, slots=True)
class Ownership:
    """What to set; None leaves that part as it is. `mode` is permission bits, 07777 at most."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None

    @classmethod
    def named(cls, mode: int | None, owner: str | None, group: str | None) -> Ownership:
        """Look the names up in passwd and group; digits are taken as the number itself.

        Raises:
            UnknownName: there is no such user or group.
        """
        return cls(mode, _number("owner", owner), _number("group", group))

    def apply(self, fd: int) -> None:
        """Set it on an open file, of which only its path may be open (O_PATH).

        The owner first: chown(2) takes setuid and setgid away.

        Raises:
            OSError: EPERM, EROFS, ...
        """
        path = f"/proc/self/fd/{fd}"
        if self.uid is not None or self.gid is not None:
            os.chown(path, -1 if self.uid is None else self.uid, -1 if self.gid is None else self.gid)
        if self.mode is not None:
            os.chmod(path, self.mode)


def _number(field: str, name: str | None) -> int | None:
    if not name:
        return None
    if name.isascii() and name.isdigit() and len(name) < 20 and int(name) < 2**32 - 1:
        return int(name)
    if field == "owner":
        user = users.user_by_name(name)
        found = user.uid if user else None
    else:
        found = users.group_by_name(name)
    if found is None:
        raise UnknownName(field, name)
    return found
