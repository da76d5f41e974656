"""What the daemon does to its own process at start, and undoes for nobody. Best effort throughout."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

from execd.posix import libc, spawn


def open_standard_descriptors() -> None:
    """Make sure 0, 1 and 2 are open, so that no socket or pipe of ours gets one of their numbers."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.dup(fd)
    os.close(fd)


def shed_inheritance() -> None:
    """Undo what our starter may have left us: blocked signals, which would keep us from being stopped, and
    open descriptors, which no command may get.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):  # the one of the listing itself is closed by now
                    os.set_inheritable(int(name), False)


def hide_secrets(secrets: Iterable[str]) -> None:
    """Overwrite secrets in the memory behind /proc/self/environ and /proc/self/cmdline.

    Children of the same uid can read those files. proc(5) gives their addresses as fields 48 to 51 of
    /proc/self/stat. Where /proc is not mounted there is nothing to read them from either.
    """
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        arguments_start, arguments_end, environ_start, environ_end = map(int, fields[45:49])
        for secret in filter(None, secrets):
            for start, end in ((arguments_start, arguments_end), (environ_start, environ_end)):
                if 0 < start < end:
                    libc.overwrite_memory(start, end - start, os.fsencode(secret), b"*")


def settle_in() -> None:
    """Descriptor limit, malloc thresholds, priority over the commands that we run."""
    spawn.raise_descriptor_limit()
    libc.tune_malloc()
    with contextlib.suppress(OSError):
        # Children and threads get the normal priority back (sched(7), SCHED_RESET_ON_FORK).
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, -5)
