"""Cursors of listings: opaque to clients, and good only for the query that they came from."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from execd.posix.plan import Place

_VERSION: Final = 1
_INSIDE: Final = 1
_CUT: Final = 2
_DIGEST: Final = 8  # bytes; against mix-ups, not against forgery: a forged cursor shows nothing else


class WrongCursor(ValueError):
    """It is no cursor, or that of another query."""


def encode(place: Place, query: bytes) -> str:
    """The cursor for going on from `place` with the same `query`."""
    flags = (_INSIDE if place.inside else 0) | (_CUT if place.cut else 0)
    body = bytes([_VERSION, flags]) + place.path
    return base64.urlsafe_b64encode(_digest(body, query) + body).rstrip(b"=").decode()


def decode(cursor: str, query: bytes) -> Place:
    """The place that `encode` was given.

    Raises:
        WrongCursor: it is no cursor of ours, damaged, or from another query.
    """
    try:
        raw = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongCursor("is no cursor") from error
    digest, body = raw[:_DIGEST], raw[_DIGEST:]
    if len(body) < 2 or body[0] != _VERSION:
        raise WrongCursor("is no cursor")
    names = body[2:].split(b"/")
    if digest != _digest(body, query):
        raise WrongCursor("is damaged, or comes from another query")
    if any(name in (b"", b".", b"..") or b"\0" in name for name in names) and body[2:]:
        raise WrongCursor("is no cursor")
    return Place(body[2:], bool(body[1] & _INSIDE), bool(body[1] & _CUT))


def _digest(body: bytes, query: bytes) -> bytes:
    return hashlib.blake2b(len(query).to_bytes(4, "big") + query + body, digest_size=_DIGEST).digest()
