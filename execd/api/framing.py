"""Events as bytes: the only writer of stream frames.

Three framings of the same compact, ASCII-only JSON: `data:` frames with an `id:` (text/event-stream),
a line (application/x-ndjson), and a line followed by an empty one (older clients, any other Accept).

The `eid` of `init` is 1, of the end of a background start 2; `execd.api.encoders` has those of output.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

import orjson

INIT_EID: Final = 1
STARTED_EID: Final = 2
OUTPUT_EID: Final = 2
"""Added to a log offset; the terminal event has one more than the last output event can have."""


class Framing(Enum):
    """How events are separated; the value is the Content-Type."""

    SSE = "text/event-stream; charset=utf-8"
    NDJSON = "application/x-ndjson"
    BARE = "text/event-stream"

    @classmethod
    def from_accept(cls, accept: str) -> Framing:
        """The framing that an Accept header asks for: the acceptable one with the highest q, else BARE."""
        best, best_quality = cls.BARE, 0.0
        for part in accept.lower().split(","):
            media, *parameters = (item.strip() for item in part.split(";"))
            framing = {"text/event-stream": cls.SSE, "application/x-ndjson": cls.NDJSON}.get(media)
            if framing is not None and (quality := _quality(parameters)) > best_quality:
                best, best_quality = framing, quality
        return best

    def frame(self, json: bytes, eid: int | None) -> bytes:
        """One event. `eid` None: an event outside the execution's own order, such as a ping."""
        if self is Framing.NDJSON:
            return json + b"\n"
        if self is Framing.BARE:
            return json + b"\n\n"
        return b"data: %b\n\n" % json if eid is None else b"id: %d\ndata: %b\n\n" % (eid, json)


def prefers_ndjson(accept: str) -> bool:
    """True if an Accept header wants a JSON object a line rather than one JSON document."""
    best, best_quality = "", 0.0
    for part in accept.lower().split(","):
        media, *parameters = (item.strip() for item in part.split(";"))
        known = media in ("application/x-ndjson", "application/json")
        if known and (quality := _quality(parameters)) > best_quality:
            best, best_quality = media, quality
    return best == "application/x-ndjson"


def _quality(parameters: Sequence[str]) -> float:
    quality = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                quality = float(parameter[2:])
            except ValueError:
                quality = 0.0
    return quality


def ascii_json(value: object) -> bytes:
    """Compact JSON in ASCII: a raw U+2028 or U+0085 makes some clients lose the event."""
    import json

    try:
        encoded = orjson.dumps(value)
        if encoded.isascii():
            return encoded
    except orjson.JSONEncodeError:  # or a number of more than 64 bits
        value = _sound(value)
    return json.dumps(value, separators=(",", ":")).encode()


def _sound(value: Any) -> Any:
    # A byte of a file's name that is no UTF-8 is half a surrogate pair in a str, which JSON cannot hold.
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {name: _sound(item) for name, item in value.items()}
    return [_sound(item) for item in value] if isinstance(value, list) else value


def milliseconds() -> int:
    """Now, as `timestamp` fields have it."""
    return int(time.time() * 1000)


def event(framing: Framing, kind: str, eid: int | None, **fields: Any) -> bytes:
    """A framed event that is not output."""
    record = {"type": kind, **fields, "timestamp": milliseconds()}
    if eid is not None:
        record["eid"] = eid
    return framing.frame(ascii_json(record), eid)
