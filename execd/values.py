"""Reading and showing the values of settings: durations, sizes, choices. Stdlib only."""

from __future__ import annotations

import re
from collections.abc import Callable

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SIZES = {"": 1, "B": 1, "K": KIB, "KIB": KIB, "M": MIB, "MIB": MIB, "G": GIB, "GIB": GIB}
_LEVELS = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")


def duration(text: str) -> float:
    """Seconds in a Go duration: `300ms`, `1.5s`, `1h30m`, `0`."""
    if text == "0":
        return 0.0
    if not text or _DURATION_PART.sub("", text):
        raise ValueError("a duration like 300ms, 1.5s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def size(text: str) -> int:
    """Bytes in `1048576`, `512KiB`, `64MiB`, `1GiB`."""
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", text)
    if not match or match[2].upper() not in _SIZES:
        raise ValueError("a size like 1048576, 512KiB, 64MiB or 1GiB")
    return int(match[1]) * _SIZES[match[2].upper()]


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def size_from(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = size(text)
        if not low <= value <= high:
            raise ValueError(f"a size from {show_size(low)} to {show_size(high)}")
        return value

    return parse


def duration_from(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = duration(text)
        if not low <= value <= high:
            raise ValueError(f"a duration from {show_duration(low)} to {show_duration(high)}")
        return value

    return parse


def one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return text

    return parse


def token(text: str) -> str:
    """What can be sent as the value of a header."""
    if not text.isprintable():
        raise ValueError("printable characters")
    return text


def directories(text: str) -> str:
    """A colon-separated list of absolute paths, as it is."""
    if not all(part.startswith("/") for part in text.split(":") if part):
        raise ValueError("absolute paths separated by colons")
    return text


def log_level(text: str) -> int:
    if text.lower() in _LEVELS:
        return _LEVELS.index(text.lower())
    if re.fullmatch(r"\d{1,3}", text):
        return min(int(text), 7)
    raise ValueError(f"a number from 0 to 7 or one of {', '.join(_LEVELS)}")


def jupyter_host(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("an address that starts with http:// or https://")
    return text


def text(text: str) -> str:
    return text


def show_size(value: float) -> str:
    """`size` the other way round, in the largest unit that leaves no fraction."""
    for unit, factor in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if value >= factor and value % factor == 0:
            return f"{int(value // factor)}{unit}"
    return str(int(value))


def show_duration(value: float) -> str:
    """`duration` the other way round."""
    for unit, factor in (("h", 3600.0), ("m", 60.0), ("s", 1.0)):
        if value >= factor and value % factor == 0:
            return f"{int(value // factor)}{unit}"
    return f"{value * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
