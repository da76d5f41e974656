"""Generated bodies of `POST /command` made safe to send: their form is kept, what they would run is not."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

COMMANDS = (
    "echo out; echo err >&2",
    "seq 3000",
    "exit 7",
    "kill -9 $$",
    "printf 'caf\\303\\251 \\377 half'",
    "sleep 0.15; echo late",
    "true",
)
ARGUMENTS = (["true"], ["false"], ["seq", "3"], ["sh", "-c", "echo out >&2; exit 3"])
LONGEST_MS = 5000


def harmless(body: Any) -> Any:
    """The same body with commands, identities, directories, variables and times that do no harm.

    What makes a body invalid stays: a missing field, a wrong type, a NUL, a number out of range.
    """
    if isinstance(body, bytes):
        return _harmless_bytes(body)
    if not isinstance(body, Mapping):
        return body
    safe = dict(body)
    for name, replace in _REPLACE.items():
        if name in safe:
            safe[name] = replace(safe[name])
    return safe


def _harmless_bytes(body: bytes) -> bytes:
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return json.dumps(harmless(value)).encode()


def _pick(options: tuple[Any, ...], value: object) -> Any:
    return options[zlib.crc32(repr(value).encode()) % len(options)]


def _text(value: Any, safe: str) -> Any:
    if not isinstance(value, str):
        return value
    return safe + "\0" if "\0" in value else safe


def _command(value: Any) -> Any:
    return _text(value, _pick(COMMANDS, value)) if value else value


def _argv(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(item, str) and "\0" not in item for item in value) and value[0]:
        return _pick(ARGUMENTS, value)
    first = _text(value[0], "true") if value[0] else value[0]
    return [first, *(_text(item, "x") for item in value[1:])]


def _directory(value: Any) -> Any:
    return _text(value, "/") if value else value


def _number(value: Any, low: int, high: int, safe: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        return value
    return value if value != int(value) else type(value)(safe)


def _timeout(value: Any) -> Any:
    return _number(value, LONGEST_MS, 316_224_000_000, LONGEST_MS)


def _uid(value: Any) -> Any:
    return _number(value, 0, 2**32 - 2, os.geteuid())


def _gid(value: Any) -> Any:
    return _number(value, 0, 2**32 - 2, os.getegid())


def _variables(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {f"FUZZ_{name}" if name else name: content for name, content in value.items()}


_REPLACE = {
    "command": _command,
    "argv": _argv,
    "cwd": _directory,
    "timeout": _timeout,
    "uid": _uid,
    "gid": _gid,
    "envs": _variables,
}
