"""Asking a live daemon for listings, in each of its forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.contract import assert_documented, header_value
from tests.support.live import Daemon

LIST, SEARCH = "/directories/list", "/files/search"
FORMS = ("array", "object", "stream")
_CHECKED = 200_000  # bytes: a schema takes its time


@dataclass(frozen=True)
class Listed:
    """One answer, whatever its form."""

    entries: list[dict[str, Any]]
    truncated: bool
    reason: str | None
    next_cursor: str | None
    skipped: int

    @property
    def paths(self) -> list[str]:
        return [entry["path"] for entry in self.entries]


def ask(running: Daemon, route: str, form: str = "array", **query: Any) -> Listed:
    """The answer to a query that is right; it is as the contract has it (looked at if it is not huge)."""
    answer = asked(running, route, form, **query)
    assert answer.status_code == 200, answer.text[:500]
    if len(answer.content) < _CHECKED:
        assert_documented("POST" if form == "object" else "GET", route, answer)
    if form == "array":
        reason, cursor = (
            answer.headers.get("x-execd-truncated-reason"),
            answer.headers.get("x-execd-next-cursor"),
        )
        truncated = header_value(answer.headers["x-execd-truncated"], {"type": "boolean"})
        return Listed(answer.json(), bool(truncated), reason, cursor, int(answer.headers["x-execd-skipped"]))
    if form == "object":
        end = answer.json()
        entries = end.pop("entries")
    else:
        *entries, end = [json.loads(line) for line in answer.content.splitlines()]
    return Listed(entries, end["truncated"], end["reason"], end["next_cursor"], end["skipped"])


def asked(running: Daemon, route: str, form: str = "array", **query: Any) -> httpx.Response:
    """The answer as it is."""
    if form == "object":
        return running.client.post(route, json=query)
    if "fields" in query:
        query["fields"] = ",".join(query["fields"])
    accept = "application/x-ndjson" if form == "stream" else "application/json"
    return running.client.get(route, params=query, headers={"Accept": accept})


def pages(running: Daemon, route: str, form: str = "array", **query: Any) -> Iterator[Listed]:
    """All pages to the end."""
    cursor = ""
    while True:
        page = ask(running, route, form, **query, **({"cursor": cursor} if cursor else {}))
        yield page
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
