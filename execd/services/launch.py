"""From what a client asked for to a started process, with every mistake found first. Runs in a spawn
thread: it reads files and may block.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from execd.errors import (
    ExecdError,
    IdentityNotPermitted,
    InvalidBody,
    ResourceExhausted,
    StartFailed,
)
from execd.posix import identity as identities
from execd.posix import paths, spawn
from execd.posix.environment import Environments
from execd.posix.identity import Identity
from execd.posix.process import MARK, Process

_OUT_OF_RESOURCES: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC})


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run: `command` (shell text) or `argv`, never both. `timeout` in seconds, None: none."""

    command: str | None = None
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    uid: int | None = None
    gid: int | None = None
    timeout: float | None = None

    @property
    def content(self) -> str:
        """The command as text."""
        return self.command if self.command is not None else shlex.join(self.argv)


def launch(request: Launch, execution_id: str, environments: Environments) -> Process:
    """Check everything, then start it.

    Raises:
        InvalidBody: cwd is missing, is no directory, or names undefined variables.
        IdentityNotPermitted: the daemon may not become that uid or gid.
        StartFailed: the program is missing, not executable, or refused by the kernel.
        ResourceExhausted: no process, memory or descriptor is left. Worth a retry.
    """
    environment = environments.merged(request.environment)
    identity = _identity(request)
    if identity is not None:
        explicit = request.environment
        environment |= {k: v for k, v in identity.environment.items() if k not in explicit}
    cwd = _directory(request.cwd, environment, identity) if request.cwd else None
    if cwd is not None and "PWD" not in request.environment:
        environment["PWD"] = cwd
    environment[MARK] = execution_id
    try:
        return spawn.spawn(spawn.Request(request.command, request.argv, environment, cwd, identity))
    except spawn.SpawnError as error:
        raise _explained(error, request) from error


def _identity(request: Launch) -> Identity | None:
    if request.uid is None:
        return None
    identity = identities.resolve(request.uid, request.gid)
    if identity is not None:
        missing = identities.missing_capabilities(identity)
        if missing:
            named = f"uid {identity.uid}, gid {identity.gid}"
            raise IdentityNotPermitted(
                f"uid: the daemon (uid {os.geteuid()}) may not run a command as {named}: "
                f"it lacks {' and '.join(missing)}",
                {"field": "uid", "missing_capabilities": missing},
            )
    return identity


def _directory(asked: str, environment: Mapping[str, str], identity: Identity | None) -> str:
    try:
        path = paths.expand(asked, environment)
        with identities.file_access_as(identity):
            os.stat(os.path.join(path, "."))
    except paths.UndefinedVariables as error:
        raise InvalidBody(f"cwd: {error}", {"field": "cwd", "undefined": error.names}) from error
    except OSError as error:
        raise InvalidBody(f"cwd: {asked!r}: {error.strerror}", {"field": "cwd"}) from error
    return path


def _explained(error: spawn.SpawnError, request: Launch) -> ExecdError:
    name = errno.errorcode.get(error.errno, str(error.errno))
    details: dict[str, object] = {"errno": name, "stage": error.stage}
    if error.errno in _OUT_OF_RESOURCES:
        return ResourceExhausted(f"cannot start the command: {error}", details)
    if error.errno == errno.E2BIG:
        return StartFailed(
            "argv and envs: together longer than the kernel takes for one program (E2BIG); "
            "shell text in command has no such limit",
            details | {"field": "argv" if request.command is None else "envs"},
        )
    if error.stage == "chdir":
        return InvalidBody(f"cwd: {request.cwd!r}: {error}", details | {"field": "cwd"})
    if error.stage == "lookup" and request.command is None:
        details["field"] = "argv"
        return StartFailed(f"argv: {error}", details)
    return StartFailed(f"cannot start the command: {error}", details)
