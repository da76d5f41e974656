"""Which bytes of a file a request wants, and whether it wants them at all (RFC 9110 13 and 14). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

_SET: Final = re.compile(r"bytes=(.*)", re.IGNORECASE | re.DOTALL)
_SPEC: Final = re.compile(r"([0-9]+)-([0-9]*)|-([0-9]+)")
_TAG: Final = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_BLANK: Final = " \t"
_BEYOND: Final = 2**63
"""No file is so large: what is larger is taken for this."""


class Unsatisfiable(Exception):
    """No byte of the file is in any of the ranges."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Header fields of a request, as they were sent; None: absent."""

    range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None

    def known(self, tag: str) -> bool:
        """True if the client has what the strong entity tag `tag` stands for (RFC 9110 13.1.2)."""
        given = self.if_none_match
        if given is None:
            return False
        return given.strip(_BLANK) == "*" or tag in (match[2] for match in _TAG.finditer(given))

    def selected(self, size: int, tag: str, modified: int) -> tuple[int, int] | None:
        """Where the range begins, and where the bytes after it do; None: all of the file is wanted.

        Of several ranges the first that has bytes. A header that is malformed, in other units, or guarded by
        an If-Range that does not hold, is as if it were not there (RFC 9110 14.2). `modified`: seconds.

        Raises:
            Unsatisfiable: there are ranges, none with bytes.
        """
        if self.range is None or not self._still(tag, modified):
            return None
        ranges = parse_ranges(self.range)
        if ranges is None:
            return None
        for first, last in ranges:
            if first is None:
                start, stop = max(0, size - last), size
            else:
                start, stop = first, min(last + 1, size)
            if start < stop:
                return start, stop
        raise Unsatisfiable

    def _still(self, tag: str, modified: int) -> bool:
        if self.if_range is None:
            return True
        given = self.if_range.strip(_BLANK)
        if given.startswith(('"', "W/")):
            return given == tag  # strong comparison: a weak tag never matches
        try:
            return parsedate_to_datetime(given).timestamp() == modified
        except (ValueError, OverflowError):
            return False


def parse_ranges(header: str) -> list[tuple[int | None, int]] | None:
    """The ranges of a header: first and last byte, or None and how many bytes at the end. None if the header
    is malformed or in other units.
    """
    whole = _SET.fullmatch(header.strip(_BLANK))
    if whole is None:
        return None
    found: list[tuple[int | None, int]] = []
    for part in whole[1].split(","):
        text = part.strip(_BLANK)
        if not text:
            continue  # RFC 9110 5.6.1.2: empty elements of a list are ignored
        match = _SPEC.fullmatch(text)
        if match is None:
            return None
        if match[3]:
            found.append((None, _number(match[3])))
            continue
        first, last = _number(match[1]), _number(match[2]) if match[2] else _BEYOND
        if last < first:
            return None
        found.append((first, last))
    return found or None


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return min(int(digits or "0"), _BEYOND) if len(digits) <= 19 else _BEYOND
