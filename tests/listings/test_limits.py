"""Limits of a page, at their edges: entries, time, bytes, depth; and cursors, good for one query each."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import trees
from tests.support.listings import FORMS, LIST, SEARCH, ask, asked, pages
from tests.support.live import Daemon, daemon


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    trees.make(tmp_path, *(f"{number}/x" for number in range(5)))
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_a_page_is_truncated_exactly_if_there_is_more(live: Daemon, ten: Path, form: str) -> None:
    for limit in range(1, 13):
        page = ask(live, LIST, form, path=str(ten), depth=2, limit=limit)
        assert len(page.entries) == min(limit, 10)
        assert page.truncated == (limit < 10)
        assert (page.reason, bool(page.next_cursor)) == (("entries", True) if limit < 10 else (None, False))


@pytest.mark.parametrize("form", FORMS)
def test_pages_may_differ_in_limit_and_fields(live: Daemon, ten: Path, form: str) -> None:
    whole = ask(live, LIST, path=str(ten), depth=2).entries
    first = ask(live, LIST, form, path=str(ten), depth=2, limit=3)
    rest = ask(live, LIST, form, path=str(ten), depth=2, cursor=first.next_cursor, fields=["path"])
    assert first.entries == whole[:3]
    assert rest.entries == [{"path": entry["path"]} for entry in whole[3:]]


def test_default_and_ceiling_are_settings_that_are_shown(ten: Path) -> None:
    with daemon("--list-limit", "4", "--list-ceiling", "7", "--list-depth", "1") as running:
        limits = running.client.get("/capabilities").json()["limits"]
        assert (limits["list_limit"], limits["list_ceiling"], limits["list_depth"]) == (4, 7, 1)
        assert limits["list_page_bytes"] == 32 * 1024 * 1024
        trees.make(ten, *(f"more{number}" for number in range(5)))
        for asked_for, limit in ((None, 4), (1, 1), (7, 7), (8, 7), (2**63 - 1, 7)):
            query: dict[str, Any] = {} if asked_for is None else {"limit": asked_for}
            for form in FORMS:
                page = ask(running, LIST, form, path=str(ten), **query)
                assert (len(page.entries), page.reason) == (limit, "entries")
            shown = asked(running, LIST, "object", path=str(ten), **query).json()["limit"]
            assert shown == limit


@pytest.mark.parametrize("form", FORMS)
def test_a_tree_deeper_than_is_walked_says_so_once_its_pages_are_through(tmp_path: Path, form: str) -> None:
    trees.make(tmp_path, "a/b/c/d", "a/b/z", "y/x")
    with daemon("--list-depth", "3") as running:
        for limit in (1, 2, 100):
            parts = list(pages(running, LIST, form, path=str(tmp_path), depth=9, limit=limit))
            assert sum(len(part.entries) for part in parts) == 6
            assert (parts[-1].truncated, parts[-1].reason, parts[-1].next_cursor) == (True, "depth", None)
            parts = list(pages(running, SEARCH, form, path=str(tmp_path), limit=limit))
            assert [path for part in parts for path in part.paths] == [f"{tmp_path}/a/b/z", f"{tmp_path}/y/x"]
            assert (parts[-1].truncated, parts[-1].reason) == (True, "depth")
        as_deep = ask(running, LIST, form, path=str(tmp_path), depth=3)
        assert (as_deep.truncated, len(as_deep.entries)) == (False, 6)
        assert not ask(running, SEARCH, form, path=f"{tmp_path}/a").truncated
        assert not ask(running, SEARCH, form, path=str(tmp_path), pattern="y/**").truncated


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("route", [LIST, SEARCH])
def test_a_walk_that_runs_out_of_time_goes_on_with_its_cursor(tmp_path: Path, form: str, route: str) -> None:
    trees.make(tmp_path, *(f"{n % 20:02}/{n:05}" for n in range(8000)))
    query = {"path": str(tmp_path), **({"depth": 2} if route == LIST else {})}
    with daemon("--list-timeout", "10ms") as running:
        parts = list(pages(running, route, form, **query, limit=100_000))
    assert {part.reason for part in parts[:-1]} == {"deadline"}
    assert not parts[-1].truncated
    paths = [path for part in parts for path in part.paths]
    expected = [f"{tmp_path}/{os.fsdecode(path)}" for path in trees.everything(tmp_path)]
    assert paths == [path for path in expected if route == LIST or not os.path.isdir(path)]


def test_a_page_that_is_held_is_limited_in_bytes_and_a_stream_is_not(live: Daemon, tmp_path: Path) -> None:
    directory = tmp_path.joinpath(*["名" * 85] * 7)
    trees.make(directory, *(f"{number:05}" + "前" * 80 for number in range(9000)))
    query: dict[str, Any] = {"path": str(directory), "limit": 100_000, "fields": ["path"]}
    whole = ask(live, LIST, "stream", **query)
    assert (len(whole.entries), whole.truncated) == (9000, False)
    for form in ("array", "object"):
        parts = list(pages(live, LIST, form, **query))
        assert [part.reason for part in parts] == ["bytes", None]
        assert parts[0].entries + parts[1].entries == whole.entries
    size = int(asked(live, LIST, **query).headers["content-length"])
    assert 32 * 1024 * 1024 <= size < 32 * 1024 * 1024 + 10_000


def test_a_cursor_is_good_for_its_own_query_only(live: Daemon, ten: Path) -> None:
    def cursor(route: str, **query: Any) -> str:
        found = ask(live, route, path=str(ten), limit=2, **query).next_cursor
        assert found
        return found

    ours = cursor(LIST, depth=2)
    raw = bytearray(base64.urlsafe_b64decode(ours + "=" * (-len(ours) % 4)))
    raw[-1] ^= 1
    for wrong in (
        cursor(LIST),
        cursor(SEARCH),
        ours[:-2],
        ours + "AA",
        ours[1:],
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "x",
        "é",
        "=",
        "....",
        "A" * 20_000,
    ):
        for form in FORMS:
            answer = asked(live, LIST, form, path=str(ten), depth=2, cursor=wrong)
            code = "INVALID_REQUEST_BODY" if form == "object" else "INVALID_QUERY"
            assert (answer.status_code, answer.json()["code"]) == (400, code)
            assert answer.json()["details"] == {"field": "cursor"}
    assert asked(live, LIST, path=str(ten), cursor=ours, depth=3).status_code == 400
    assert asked(live, LIST, path=f"{ten}/1", cursor=ours, depth=2).status_code == 400
    assert asked(live, SEARCH, path=str(ten), cursor=cursor(SEARCH), pattern="*").status_code == 400
    assert ask(live, LIST, path=f"{ten}/", depth=2, cursor=ours).entries
    assert ask(live, LIST, path=str(ten), cursor="").entries


def test_a_cursor_outlives_what_it_points_at(live: Daemon, tmp_path: Path) -> None:
    trees.make(tmp_path, "a/1", "a/2/x", "a/3", "b")
    found = {}
    for limit in range(1, 6):
        found[limit] = ask(live, LIST, path=str(tmp_path), depth=3, limit=limit).next_cursor
    trees.make(tmp_path, "a/0", "a/2/w", "a/2/y", "aa")
    (tmp_path / "a/1").unlink()

    def rest(limit: int) -> list[str]:
        listed = ask(live, LIST, path=str(tmp_path), depth=3, cursor=found[limit])
        return [path.removeprefix(f"{tmp_path}/") for path in listed.paths]

    assert rest(1) == ["a/0", "a/2", "a/2/w", "a/2/x", "a/2/y", "a/3", "aa", "b"]
    assert rest(2) == ["a/2", "a/2/w", "a/2/x", "a/2/y", "a/3", "aa", "b"]
    assert rest(3) == ["a/2/w", "a/2/x", "a/2/y", "a/3", "aa", "b"]
    assert rest(4)[-3:] == ["a/3", "aa", "b"]  # a/2/y was not there when the page ended
    (tmp_path / "a").rename(tmp_path / "gone")
    assert rest(4) == ["aa", "b", "gone", "gone/0", "gone/2", "gone/2/w", "gone/2/x", "gone/2/y", "gone/3"]
