"""What a write demands of the file that is there: If-Match and If-None-Match (RFC 9110 13.1). Pure."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from execd.errors import PreconditionFailed
from execd.posix.entries import etag

_TAG: Final = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')


@dataclass(frozen=True, slots=True)
class Precondition:
    """Header fields of a request, as they were sent; None: absent."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, current: os.stat_result | None) -> None:
        """`current`: the file as it is now, None if there is none.

        Raises:
            PreconditionFailed: it is another than the one demanded, or is there and should not be.
        """
        tag = None if current is None else etag(current)
        if self.if_match is not None and not _names(self.if_match, tag, strong=True):
            raise PreconditionFailed(f"If-Match is {self.if_match[:200]}, {_state(tag)}", _details(tag))
        if self.if_none_match is not None and _names(self.if_none_match, tag, strong=False):
            raise PreconditionFailed(
                f"If-None-Match is {self.if_none_match[:200]}, {_state(tag)}", _details(tag)
            )


def _names(given: str, tag: str | None, *, strong: bool) -> bool:
    if tag is None:
        return False
    if given.strip(" \t") == "*":
        return True
    # A weak tag never matches where a strong one is demanded (RFC 9110 8.8.3.2).
    return any(found[2] == tag and not (strong and found[1]) for found in _TAG.finditer(given))


def _state(tag: str | None) -> str:
    return "and there is no such file" if tag is None else f"and the file's entity tag is {tag}"


def _details(tag: str | None) -> dict[str, object]:
    return {} if tag is None else {"etag": tag}
