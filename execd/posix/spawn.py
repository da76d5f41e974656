"""Starting a process. Everything here may block and belongs in a spawn thread, not on the event loop."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from execd.posix import libc
from execd.posix.identity import Identity
from execd.posix.process import Process

MAX_ARGUMENT: Final = 128 * 1024 - 1
"""Bytes in one argument that the kernel accepts (MAX_ARG_STRLEN without its NUL)."""

_FALLBACK_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_READ_SCRIPT: Final = 'eval " $({cat} || echo exit 126)" </dev/null'
"""How a script that is too long for one argument is run: the shell reads it from its stdin, a memfd."""

_shells: dict[str, str] = {}  # the shell found last, by the PATH it was found with


class DescriptorLimit:
    """Ours is as high as it may be; that of children is the one we were started with."""

    def __init__(self) -> None:
        self.original = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._raised = False
        self._starting = 0
        self._lock = threading.Lock()

    def raise_ours(self) -> None:
        """From now on. No effect if it is as high already."""
        soft, hard = self.original
        if soft != hard:
            self._raised = self._set(hard)

    @contextlib.contextmanager
    def for_child(self, newest_fd: int) -> Iterator[None]:
        """While in it, what is started gets the original limit.

        posix_spawn has no way to set one, and a program may look at its own at once. So ours is lowered
        meanwhile, unless `newest_fd`, the descriptor opened last, says that we may need more.
        """
        soft, hard = self.original
        lower = self._raised and newest_fd < soft // 2
        if lower:
            with self._lock:
                self._starting += 1
                self._set(soft)
        try:
            yield
        finally:
            if lower:
                with self._lock:
                    self._starting -= 1
                    if not self._starting:
                        self._set(hard)

    def restore_of(self, pid: int) -> None:
        """For a child that was started without `for_child` being able to lower ours."""
        if self._raised:
            with contextlib.suppress(OSError, ValueError):  # gone already, or another user's by now
                resource.prlimit(pid, resource.RLIMIT_NOFILE, self.original)

    def _set(self, soft: int) -> bool:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, self.original[1]))
            return True
        return False


descriptor_limit: Final = DescriptorLimit()
"""A process has one."""


class SpawnError(Exception):
    """A process could not be started. `stage`: lookup, pipe, chdir, exec, spawn or identity."""

    def __init__(self, error: OSError, stage: str, subject: str) -> None:
        super().__init__(f"{subject}: {error.strerror or error}")
        self.errno = error.errno or 0
        self.stage = stage


@dataclass(frozen=True, slots=True)
class Request:
    """What to start: shell text or an argument list, already validated. `cwd` None: the daemon's."""

    command: str | None
    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str | None
    identity: Identity | None


def raise_descriptor_limit() -> None:
    """Use all the descriptors that we may; children get the limit that we were started with."""
    descriptor_limit.raise_ours()


def hold_sigchld() -> None:
    """Keep SIGCHLD away from this spawn thread: the event loop's thread is who has to wake up for it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})


def find_shell(path: str) -> str:
    """bash, else sh, from `path`, else from the usual places.

    Raises:
        SpawnError: there is neither (stage lookup).
    """
    known = _shells.get(path)
    if known is not None and os.access(known, os.X_OK):
        return known
    for name in ("bash", "sh"):
        found = shutil.which(name, path=path) or shutil.which(name, path=_FALLBACK_PATH)
        if found:
            _shells.clear()
            _shells[path] = found
            return found
    raise SpawnError(FileNotFoundError(2, "not found in PATH"), "lookup", "neither bash nor sh")


def _find_cat(path: str) -> str:
    found = shutil.which("cat", path=path) or shutil.which("cat", path=_FALLBACK_PATH)
    if found is None:
        raise SpawnError(FileNotFoundError(2, "not found in PATH"), "lookup", "cat, for a command this long")
    return found


def find_program(name: str, path: str, cwd: str | None) -> str:
    """The program that `name` means, as execvp(3) finds it: in `path`, or itself if it holds a slash.

    Raises:
        SpawnError: there is none (ENOENT) or it is not executable (EACCES), stage lookup.
    """
    if "/" in name:
        program = os.path.join(cwd or os.getcwd(), name)
        if not os.path.exists(program):
            raise SpawnError(FileNotFoundError(2, "no such file"), "lookup", name)
        if os.path.isdir(program) or not os.access(program, os.X_OK):
            raise SpawnError(PermissionError(13, "not executable"), "lookup", name)
        return program
    found = shutil.which(name, path=path)
    if found is None:
        raise SpawnError(FileNotFoundError(2, "not found in PATH"), "lookup", name)
    return found


def spawn(request: Request) -> Process:
    """Start the process: own session and group, stdin /dev/null, two pipes, all signals at default.

    Raises:
        SpawnError: with errno and stage; nothing is left behind.
    """
    path = request.environment.get("PATH", _FALLBACK_PATH)
    script = None
    if request.command is None:
        program = find_program(request.argv[0], path, request.cwd)
        argv = list(request.argv)
    else:
        program = find_shell(path)
        text = request.command
        if text[:1] in ("-", "+"):
            text = " " + text  # or the shell would take it for an option
        if len(os.fsencode(text)) > MAX_ARGUMENT:
            script, text = os.fsencode(text), _READ_SCRIPT.format(cat=shlex.quote(_find_cat(path)))
        argv = [os.path.basename(program), "-c", text]
    with contextlib.ExitStack() as always, contextlib.ExitStack() as on_failure:
        try:
            stdin = _null()
            if script:
                stdin = _memory_file(script)
                always.callback(os.close, stdin)
            out, child_out = os.pipe()
            on_failure.callback(os.close, out)
            always.callback(os.close, child_out)
            err, child_err = os.pipe()
            on_failure.callback(os.close, err)
            always.callback(os.close, child_err)
        except OSError as error:
            raise SpawnError(error, "pipe", "stdin and pipes") from error
        os.set_blocking(out, False)
        os.set_blocking(err, False)
        with descriptor_limit.for_child(child_err):
            pid = _start(request, program, argv, (stdin, child_out, child_err))
        always.close()  # makes sure of a free descriptor: what has started must not be called a failure
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise SpawnError(error, "spawn", program) from error
        on_failure.pop_all()
    _prefer_child_for_oom(pid)
    descriptor_limit.restore_of(pid)
    return Process(pid, pidfd, out, err)


def _start(request: Request, program: str, argv: list[str], fds: tuple[int, int, int]) -> int:
    stage = "chdir" if request.cwd and not os.path.isdir(request.cwd) else "exec"
    try:
        if request.identity is None and libc.CAN_SPAWN:
            return libc.posix_spawn(
                os.fsencode(program),
                [os.fsencode(argument) for argument in argv],
                [os.fsencode(f"{name}={value}") for name, value in request.environment.items()],
                os.fsencode(request.cwd) if request.cwd else None,
                fds,
            )
        return _start_as(request, program, argv, fds)
    except PermissionError as error:
        raise SpawnError(error, "identity" if request.identity else stage, program) from error
    except OSError as error:
        raise SpawnError(error, stage, program) from error


def _start_as(request: Request, program: str, argv: list[str], fds: tuple[int, int, int]) -> int:
    # A fork, slower than posix_spawn, which has no way to set ids.
    identity = request.identity

    def in_child() -> None:
        # Called when the ids are set: the directory must be one that this user may enter, and a limit
        # on another user's process cannot be set from outside.
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptor_limit.original)
        if request.cwd is not None:
            os.chdir(request.cwd)

    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the child inherits the mask
    try:
        child = subprocess.Popen(
            argv,
            executable=program,
            stdin=fds[0],
            stdout=fds[1],
            stderr=fds[2],
            env=request.environment,
            preexec_fn=in_child,  # it takes no lock that a thread of ours could hold
            start_new_session=True,
            user=identity.uid if identity else None,
            group=identity.gid if identity else None,
            extra_groups=identity.groups if identity else None,
        )
    except subprocess.SubprocessError as error:  # all that is told of a failure in `in_child`
        refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        raise SpawnError(refused, "chdir", str(request.cwd)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    child.returncode = 0  # we reap it: keep subprocess from doing so
    return child.pid


@cache
def _null() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("execd-command", os.MFD_CLOEXEC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _prefer_child_for_oom(pid: int) -> None:
    # Raising the badness of a process of ours needs no privilege; the daemon should be the last to go.
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, _child_badness())
        finally:
            os.close(fd)


@cache
def _child_badness() -> bytes:
    with open("/proc/self/oom_score_adj", encoding="ascii") as file:
        return b"%d" % min(1000, int(file.read()) + 200)
