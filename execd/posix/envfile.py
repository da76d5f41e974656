"""The EXECD_ENVS file: variables for every command, in a defined subset of dotenv syntax.

    KEY=value            up to the end of the line, blanks around it cut off; `$NAME` and `${NAME}` of a
                         variable that is set are replaced, any other `$` stays as it is
    KEY='value'          literal, may span lines
    KEY="value"          `\\\\ \\" \\$ \\n \\r \\t` are escapes, `$NAME` as above, may span lines
    export KEY=value     the same as without `export`
    # comment            and empty lines are skipped, as is any line that is none of these

A later line wins over an earlier one and may use its value. CRLF line ends are accepted.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping

FILE_LIMIT = 1024 * 1024
"""Bytes read of the file; what is beyond is not used."""
EXPANSION_LIMIT = 1024 * 1024
"""Characters that replace `$NAME` in one file; then the rest stays as it is. A few lines that double each
other would otherwise fill the memory.
"""

_KEY = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=")
_SINGLE = re.compile(r"'([^']*)'[ \t]*(?=\r?\n|\r?\Z)")
_DOUBLE = re.compile(r'"((?:[^"\\]++|\\.)*+)"[ \t]*(?=\r?\n|\r?\Z)', re.DOTALL)
_LINE = re.compile(r"[^\n]*")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_IN_QUOTES = re.compile(r'\\([\\"$nrt])|' + _VARIABLE.pattern)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read(path: str) -> str:
    """The text of the file; empty if it is missing.

    Undecodable bytes survive as surrogates. Never blocks on a FIFO.

    Raises:
        OSError: it is there, but cannot be read, or is no regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
        with open(fd, encoding="utf-8", errors="surrogateescape", newline="", closefd=False) as file:
            return file.read(FILE_LIMIT)
    finally:
        os.close(fd)


def parse(text: str, base: Mapping[str, str]) -> dict[str, str]:
    """The variables that `text` sets; `$NAME` looks at earlier lines first, then at `base`."""
    found: dict[str, str] = {}
    room = EXPANSION_LIMIT

    def variable(match: re.Match[str]) -> str:
        nonlocal room
        name = match.group(match.lastindex or 0)
        value = found.get(name, base.get(name, match[0]))
        if len(value) > room:
            return match[0]
        room -= len(value)
        return value

    def quoted(match: re.Match[str]) -> str:
        if match[1]:
            return _ESCAPES.get(match[1], match[1])
        return variable(match)

    position = 0
    while position < len(text):
        key = _KEY.match(text, position)
        if key is None:
            position = _LINE.match(text, position).end() + 1  # type: ignore[union-attr]
            continue
        if match := _SINGLE.match(text, key.end()):
            value = match[1]
        elif match := _DOUBLE.match(text, key.end()):
            value = _IN_QUOTES.sub(quoted, match[1])
        else:
            match = _LINE.match(text, key.end())
            assert match is not None
            value = _VARIABLE.sub(variable, match[0].strip(" \t\r"))
        if "\0" not in value:
            found[key[1]] = value
        position = _LINE.match(text, match.end()).end() + 1  # type: ignore[union-attr]
    return found
