"""The environment of a command: request over EXECD_ENVS file over daemon, without what is ours alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from execd.logs import WARNING, log
from execd.posix import envfile

ENV_FILE = "EXECD_ENVS"
_OURS = frozenset({"JUPYTER_TOKEN", "JUPYTER_HOST"})
_INTERPRETER = frozenset({"PYTHONHOME", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"})
_SHELL_STARTUP = frozenset({"BASH_ENV", "ENV"})  # files a shell would run before the command


def is_private(name: str) -> bool:
    """True for variables of the daemon that no command may inherit: all EXECD_* but EXECD_ENVS, and
    Jupyter's address and token.
    """
    return (name.startswith("EXECD_") and name != ENV_FILE) or name in _OURS


def base(environ: Mapping[str, str]) -> dict[str, str]:
    """What a command inherits from the daemon's environment.

    Left out: private variables, start-up files of shells, and what makes our own interpreter run
    (a virtual environment, PYTHONHOME, the PYTHONPATH entry that this package comes from).
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not is_private(name) and name not in _INTERPRETER and name not in _SHELL_STARTUP
    }
    if kept.get("VIRTUAL_ENV") == sys.prefix:
        del kept["VIRTUAL_ENV"]
        kept.pop("VIRTUAL_ENV_PROMPT", None)
        _remove_entry(kept, "PATH", os.path.join(sys.prefix, "bin"))
    _remove_entry(kept, "PYTHONPATH", str(Path(__file__).parents[2]))
    kept.setdefault("PATH", os.defpath)
    return kept


def _remove_entry(environment: dict[str, str], name: str, entry: str) -> None:
    if name in environment:
        entries = [part for part in environment[name].split(os.pathsep) if part != entry]
        if entries:
            environment[name] = os.pathsep.join(entries)
        else:
            del environment[name]


class Environments:
    """Builds command environments. The env file is read anew for each command, parsed when it changed."""

    def __init__(self, environ: Mapping[str, str], env_file: str | None) -> None:
        self._base = base(environ)
        self._env_file = env_file
        self._problem = ""  # what was last said in the log of the file
        if env_file:
            self._base[ENV_FILE] = env_file
        self._common: tuple[str, dict[str, str]] = ("", self._base)  # the file's text, and what it makes

    def merged(self, requested: Mapping[str, str]) -> dict[str, str]:
        """Daemon, then file, then request; the file cannot set what is private to the daemon."""
        text, common = self._common
        if self._env_file:
            current = self._read(self._env_file)
            if current != text:
                parsed = envfile.parse(current, self._base)
                common = self._base | {
                    name: value
                    for name, value in parsed.items()
                    if not is_private(name) and name not in _SHELL_STARTUP
                }
                self._common = (current, common)
        return common | dict(requested)

    def _read(self, path: str) -> str:
        problem, text = "", ""
        try:
            text = envfile.read(path)
        except OSError as error:
            problem = error.strerror or str(error)
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.write(WARNING, "env_file_unusable", path=path, reason=problem)
        return text
