"""`$VAR` and `~` in paths that clients send."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


MAX_NAMED = 20
"""Undefined variables that are named."""


class UndefinedVariables(ValueError):
    """A path names environment variables that are not set."""

    def __init__(self, names: list[str]) -> None:
        names = names[:MAX_NAMED]
        super().__init__(f"path references undefined environment variables: {','.join(names)}")
        self.names = names


def expand(path: str, environment: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`, then a leading `~`, `~/` or `~\\`; make it absolute from our cwd.

    Raises:
        UndefinedVariables: it names variables that are not in `environment`.
    """
    names = [match[1] or match[2] for match in _VARIABLE.finditer(path)]
    undefined = [name for name in dict.fromkeys(names) if name not in environment]
    if undefined:
        raise UndefinedVariables(undefined)
    path = _VARIABLE.sub(lambda match: environment[match[1] or match[2]], path)
    if path == "~" or path.startswith(("~/", "~\\")):
        home = environment.get("HOME")
        if home is None:
            raise UndefinedVariables(["HOME"])
        path = home + path[1:].replace("\\", "/", 1) if path[1:2] == "\\" else home + path[1:]
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
