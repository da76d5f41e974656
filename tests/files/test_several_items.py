"""Calls of several items: all are checked first, done in order, and a failure says how far it came."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from execd.errors import ExecdError, FileMissing, Forbidden, ResourceExhausted
from execd.services.items import each
from tests.support.files import Api, as_user, ok, open_directory, refused, root_only


def _nothing(_: str) -> None:
    pass


def test_each_item_is_checked_before_the_first_is_changed() -> None:
    seen: list[str] = []

    def check(item: str) -> str:
        seen.append(f"check {item}")
        return item.upper()

    each(["a", "b"], check, lambda item, found: seen.append(f"change {item} {found}"))
    assert seen == ["check a", "check b", "change a A", "change b B"]


def test_a_check_that_fails_changes_nothing_and_names_nothing_done() -> None:
    def check(item: str) -> None:
        if item == "b":
            raise FileMissing("b")

    changed: list[str] = []
    with pytest.raises(FileMissing) as error:
        each(["a", "b"], check, lambda item, _: changed.append(item))
    assert (changed, error.value.details, error.value.executed) == ([], None, "not_executed")


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_change_that_fails_ends_it_and_names_what_was_done(failing: int) -> None:
    changed: list[str] = []

    def change(item: str, _: None) -> None:
        if item == "abc"[failing]:
            raise Forbidden(item)
        changed.append(item)

    with pytest.raises(Forbidden) as error:
        each(list("abc"), _nothing, change)
    assert changed == list("abc")[:failing]
    assert error.value.details == {"done": changed}
    assert error.value.executed == ("executed" if failing else "not_executed")


def test_what_clients_would_repeat_is_not_repeatable_once_something_was_done() -> None:
    def change(item: str, _: None) -> None:
        if item == "b":
            raise ResourceExhausted("no descriptor")

    with pytest.raises(ExecdError) as error:
        each(["a", "b"], _nothing, change)
    assert (error.value.status, error.value.retryable, error.value.executed) == (500, False, "executed")
    assert error.value.details == {"cause": "RESOURCE_EXHAUSTED", "done": ["a"]}


def test_an_item_that_was_done_although_it_failed_is_among_those_done() -> None:
    def change(item: str, _: None) -> None:
        if item == "b":
            raise Forbidden("b").partly_done(["b"])

    with pytest.raises(Forbidden) as error:
        each(["a", "b"], _nothing, change)
    assert error.value.details == {"done": ["a", "b"]}


@root_only
def test_permissions_that_fail_on_the_way_say_which_were_set() -> None:
    with open_directory() as top, as_user() as api:
        for name in ("mine", "theirs", "last"):
            (top / name).touch()
            os.chown(top / name, 1000 if name != "theirs" else 0, 1000)
            (top / name).chmod(0o600)
        asked = [top / name for name in ("mine", "theirs", "last")]
        body = refused(api.chmod(*asked, mode=644), "PERMISSION_DENIED", path=str(asked[1]), errno="EPERM")
        assert (body["details"]["done"], body["executed"]) == ([str(asked[0])], "executed")
        assert [stat.S_IMODE(path.stat().st_mode) for path in asked] == [0o644, 0o600, 0o600]


@root_only
def test_directories_that_fail_on_the_way_say_which_were_made() -> None:
    with open_directory() as top, as_user() as api:
        wanted = {str(top / "a"): {}, str(top / "b"): {"owner": "root"}, str(top / "c"): {}}
        body = refused(api.post("/directories", wanted), "PERMISSION_DENIED", path=str(top / "b"))
        assert (body["details"]["done"], body["executed"]) == ([str(top / "a")], "executed")
        assert os.listdir(top) == ["a"]


def test_thousands_of_items_are_one_call(api: Api, tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(2000)]
    ok(api.mkdir(*paths))
    ok(api.chmod(*paths, mode=700))
    ok(api.move(*((path, path.with_name(f"{path.name}-moved")) for path in paths)))
    assert {path.name for path in tmp_path.iterdir()} == {f"{number}-moved" for number in range(2000)}


@pytest.mark.parametrize("path", ["/directories", "/files/permissions", "/files/replace"])
def test_more_items_than_may_be_are_refused(api: Api, path: str) -> None:
    edit = {"old": "a", "new": "b"} if path == "/files/replace" else {}
    body = {f"/nowhere/{number}": edit for number in range(10_001)}
    refused(api.post(path, body), "INVALID_REQUEST_BODY")
    refused(api.post("/files/mv", [{"src": "/a", "dest": "/b"}] * 10_001), "INVALID_REQUEST_BODY")


@pytest.mark.parametrize("path", ["/directories", "/files/permissions", "/files/replace", "/files/mv"])
def test_no_item_is_success(api: Api, path: str) -> None:
    ok(api.post(path, [] if path == "/files/mv" else {}))
