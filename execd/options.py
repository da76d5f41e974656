"""Settings from flags and environment, as Go's `flag` package reads them; and what `--help` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from execd.settings import Settings


class SettingError(ValueError):
    """A flag or variable has a value that is not allowed. The message is one line for the user."""


class HelpRequested(Exception):
    """`--help` was given."""


class VersionRequested(Exception):
    """`--version` was given."""


def from_sources(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from flags (which win) and environment. Empty variables count as unset.

    Flags as Go's `flag` package takes them: `-flag v`, `--flag v`, `--flag=v`; the first argument that
    is no flag ends them, and what follows is ignored (image entrypoints get arguments such as
    `tail -f /dev/null`).

    Raises:
        SettingError: one line that names the flag or variable, its value and what is allowed.
        HelpRequested, VersionRequested: the flag was given.
    """
    by_flag = {spec.metadata["flag"]: spec for spec in fields(Settings)}
    chosen: dict[str, object] = {}
    for spec in fields(Settings):
        text = environ.get(spec.metadata["env"], "")
        if text:
            chosen[spec.name] = _parsed(spec.metadata, spec.metadata["env"], text)
    arguments = list(argv)
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-", "--"):
        name, has_value, text = arguments.pop(0).lstrip("-").partition("=")
        if name in ("h", "help"):
            raise HelpRequested
        if name == "version":
            raise VersionRequested
        if name not in by_flag:
            raise SettingError(f"unknown flag {'--' + name[:80]!r}; execd --help lists them")
        if not has_value:
            if not arguments:
                raise SettingError(f"flag --{name} needs a value")
            text = arguments.pop(0)
        chosen[by_flag[name].name] = _parsed(by_flag[name].metadata, f"--{name}", text)
    return Settings(**chosen)  # type: ignore[arg-type]


def _parsed(metadata: Mapping[str, Any], source: str, text: str) -> object:
    try:
        if "\0" in text:
            raise ValueError("a value without NUL")
        return metadata["parse"](text)
    except ValueError as problem:
        shown = "(hidden)" if metadata["secret"] else repr(text[:80])
        raise SettingError(f"{source} is {shown}, allowed is {problem}") from None


def help_text() -> str:
    """What `execd --help` prints."""
    lines = [
        "usage: execd [flags]",
        "",
        "Runs commands for HTTP callers. Flags win over environment variables.",
        "Durations are written 300ms, 1.5s, 1h30m; sizes 512KiB, 64MiB, 1GiB.",
        "",
        "  --help, --version",
    ]
    for spec in fields(Settings):
        metadata = spec.metadata
        default = metadata["show"](spec.default) if spec.default != "" else "empty"
        lines += [
            f"  --{metadata['flag']}  ({metadata['env']})",
            f"        {metadata['help']} (default {default})",
        ]
    return "\n".join(lines)
