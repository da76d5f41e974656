"""A reader of `text/event-stream` written from the WHATWG specification, independent of execd."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSentEvent:
    """One dispatched event: its data, and the last event id at that moment."""

    data: str
    last_id: str
    kind: str = "message"


def parse(body: bytes) -> list[ServerSentEvent]:
    """Every event of a whole stream. An event without data is not dispatched, nor is an unfinished one."""
    found: list[ServerSentEvent] = []
    data: list[str] = []
    last_id, kind = "", "message"
    text = body.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for line in text.split("\n")[:-1]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                found.append(ServerSentEvent("\n".join(data), last_id, kind))
            data, kind = [], "message"
        elif name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            last_id = value
        elif name == "event":
            kind = value
    return found
