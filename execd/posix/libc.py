"""The few libc calls that Python does not wrap, typed. Called through ctypes, they release the GIL."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
from typing import Final

_libc = ctypes.CDLL(None, use_errno=True)

POSIX_SPAWN_SETSIGDEF: Final = 0x04
POSIX_SPAWN_SETSIGMASK: Final = 0x08
POSIX_SPAWN_SETSID: Final = 0x80  # glibc >= 2.26, musl >= 1.2.0
_FILE_ACTIONS_BYTES: Final = 256  # glibc: 80, musl: 80
_ATTRIBUTES_BYTES: Final = 512  # glibc: 336, musl: 336
_SIGSET_BYTES: Final = 128

_RENAMEAT2: Final = {"x86_64": 316, "aarch64": 276}  # system call numbers: musl has no wrapper
_RENAME_NOREPLACE: Final = 1
_OPENAT2: Final = 437  # on every machine
_RESOLVE_NO_XDEV: Final = 0x01
_RESOLVE_NO_SYMLINKS: Final = 0x04
_SYNC_FILE_RANGE: Final = getattr(_libc, "sync_file_range", None)
_SYNC_FILE_RANGE_WRITE: Final = 2
if _SYNC_FILE_RANGE is not None:
    _SYNC_FILE_RANGE.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_PR_SET_CHILD_SUBREAPER: Final = 36
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

CAN_SPAWN: Final = hasattr(_libc, "posix_spawn") and hasattr(_libc, "posix_spawn_file_actions_addchdir_np")
"""False on a libc without `posix_spawn_file_actions_addchdir_np` (glibc < 2.29, musl < 1.1.24)."""


def posix_spawn(
    program: bytes, argv: list[bytes], env: list[bytes], cwd: bytes | None, fds: tuple[int, int, int]
) -> int:
    """Start `program` as leader of its own session, all signals at their defaults and unblocked.

    `fds` become its descriptors 0, 1 and 2; every other descriptor must be close-on-exec.
    The calling thread waits until the child has called exec, without the GIL (vfork inside).

    Returns its pid.

    Raises:
        OSError: with the errno of the step that failed: chdir or exec.
    """
    actions = ctypes.create_string_buffer(_FILE_ACTIONS_BYTES)
    _libc.posix_spawn_file_actions_init(actions)
    try:
        for target, fd in enumerate(fds):
            _libc.posix_spawn_file_actions_adddup2(actions, fd, target)
        if cwd is not None:
            _libc.posix_spawn_file_actions_addchdir_np(actions, cwd)
        pid = ctypes.c_int()
        error = _libc.posix_spawn(
            ctypes.byref(pid),
            program,
            actions,
            _ATTRIBUTES,
            (ctypes.c_char_p * (len(argv) + 1))(*argv, None),
            (ctypes.c_char_p * (len(env) + 1))(*env, None),
        )
    finally:
        _libc.posix_spawn_file_actions_destroy(actions)
    if error:
        raise OSError(error, os.strerror(error))
    return pid.value


def _sigset(fill: str) -> ctypes.Array[ctypes.c_char]:
    signals = ctypes.create_string_buffer(_SIGSET_BYTES)
    getattr(_libc, fill)(signals)
    return signals


def _spawn_attributes() -> ctypes.Array[ctypes.c_char]:
    # A shell that starts us with `&` ignores SIGINT and SIGQUIT for us (POSIX 2.11), Python ignores
    # SIGPIPE and SIGXFSZ: none of that may reach the child.
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    _libc.posix_spawnattr_init(attributes)
    _libc.posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID
    )
    _libc.posix_spawnattr_setsigdefault(attributes, _sigset("sigfillset"))
    _libc.posix_spawnattr_setsigmask(attributes, _sigset("sigemptyset"))
    return attributes


_ATTRIBUTES: Final = _spawn_attributes() if CAN_SPAWN else ctypes.create_string_buffer(0)


def set_thread_groups(number: int, groups: list[int]) -> None:
    """setgroups(2) for this thread only; `number` is the system call's on this machine.

    Raises:
        OSError: EPERM without CAP_SETGID.
    """
    if _libc.syscall(
        ctypes.c_long(number), ctypes.c_long(len(groups)), (ctypes.c_uint * len(groups))(*groups)
    ):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def set_file_ids(uid: int, gid: int) -> None:
    """setfsuid(2) and setfsgid(2), which are for this thread only."""
    _libc.setfsgid(ctypes.c_uint(gid))
    _libc.setfsuid(ctypes.c_uint(uid))


def rename_new(source_fd: int, source: str, target_fd: int, target: str) -> None:
    """renameat2(2) with RENAME_NOREPLACE; two steps with a gap where kernel or file system lack it.

    Raises:
        OSError: EEXIST if the target exists, and all that rename(2) gives.
    """
    number = _RENAMEAT2.get(platform.machine())
    if number is not None:
        failed = _libc.syscall(
            ctypes.c_long(number),
            ctypes.c_int(source_fd),
            os.fsencode(source),
            ctypes.c_int(target_fd),
            os.fsencode(target),
            ctypes.c_uint(_RENAME_NOREPLACE),
        )
        if not failed:
            return
        error = ctypes.get_errno()
        if error not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(error, os.strerror(error), target)
    with contextlib.suppress(FileNotFoundError):
        os.stat(target, dir_fd=target_fd, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)


def start_writeback(fd: int, offset: int, length: int) -> None:
    """Tell the kernel to begin writing a file's dirty pages to disk, without waiting (sync_file_range(2)).

    A hint: what fails here shows at fsync(2). Nothing where libc lacks it.
    """
    if _SYNC_FILE_RANGE is not None:
        _SYNC_FILE_RANGE(fd, offset, length, _SYNC_FILE_RANGE_WRITE)


def become_subreaper() -> bool:
    """Make orphaned descendants our children (prctl(2)); False if the kernel refuses."""
    return bool(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def tune_malloc() -> None:
    """Keep read and write buffers on the heap instead of mapping and faulting each one anew."""
    if hasattr(_libc, "mallopt"):  # glibc only
        _libc.mallopt(_M_MMAP_THRESHOLD, 4 * 1024 * 1024)
        _libc.mallopt(_M_TRIM_THRESHOLD, 32 * 1024 * 1024)


def overwrite_memory(address: int, length: int, needle: bytes, filler: bytes) -> None:
    """Replace each `needle` in our own memory at [address, address + length) by repeated `filler`."""
    memory = ctypes.string_at(address, length)
    found = memory.find(needle)
    while found >= 0:
        ctypes.memset(address + found, filler[0], len(needle))
        found = memory.find(needle, found + len(needle))


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_on_same_mount(directory_fd: int, name: str, flags: int) -> int:
    """openat2(2) that follows no link and does not leave the mount (bind mounts included).

    Raises:
        OSError: EXDEV if something is mounted there; ENOSYS where the kernel, or a filter, has no openat2.
    """
    how = _OpenHow(flags, 0, _RESOLVE_NO_XDEV | _RESOLVE_NO_SYMLINKS)
    fd = _libc.syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(directory_fd),
        os.fsencode(name),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), name)
    return int(fd)


def sync_file_system(fd: int) -> None:
    """syncfs(2): everything that was written to the file system of `fd` is on its disk afterwards.

    Raises:
        OSError: EIO, ENOSPC, ... of any file there that could not be written (Linux 5.8).
    """
    if _libc.syncfs(ctypes.c_int(fd)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
