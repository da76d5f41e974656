"""Which file systems are no files on a disk but the kernel's own tables."""

from __future__ import annotations

import os
from typing import Final

_PSEUDO: Final = frozenset(
    b"autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts efivarfs fusectl mqueue nsfs proc "
    b"pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sysfs tracefs".split()
)
_TABLE: Final = "/proc/self/mountinfo"
_LIMIT: Final = 4 * 1024 * 1024  # bytes read of it


def is_pseudo(device: int) -> bool:
    """True if the device number (`st_dev`) is that of /proc, /sys or another such mount.

    False if the table of mounts cannot be read, or does not have it.
    """
    wanted = b"%d:%d" % (os.major(device), os.minor(device))
    try:
        with open(_TABLE, "rb") as table:
            lines = table.read(_LIMIT).splitlines()
    except OSError:
        return False
    for line in lines:  # proc(5): 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
        before, _, after = line.partition(b" - ")
        if before.split(b" ", 3)[2:3] == [wanted]:
            return after.split(b" ", 1)[0] in _PSEUDO
    return False
