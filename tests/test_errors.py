"""What an error promises, and what it says once a part of a call was done."""

from __future__ import annotations

import errno
import json
import os

import pytest

from execd.api.errors import error_response
from execd.errors import (
    CODES,
    CommandNotFound,
    ExecdError,
    Forbidden,
    InsufficientStorage,
    RangeNotSatisfiable,
)
from execd.services.filesystem import explained
from tests.support.contract import validate

ERRORS = [error for error in CODES.values() if error not in (CommandNotFound, RangeNotSatisfiable)]


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_done_before_a_failure_stays_done_and_is_not_to_be_repeated(error: type[ExecdError]) -> None:
    answer = error_response(error("why", {"field": "f"}).partly_done(["/a", "/b"]))
    body = json.loads(bytes(answer.body))
    validate(body, "Error")
    assert (body["executed"], body["retryable"]) == ("executed", False)
    assert body["details"]["done"] == ["/a", "/b"]
    assert body["details"]["field"] == "f"
    if error.status in (429, 503):  # clients repeat these by themselves
        assert (answer.status_code, body["details"]["cause"]) == (500, error.code)
        assert "retry-after" not in answer.headers
    else:
        assert (answer.status_code, body["code"]) == (error.status, error.code)


@pytest.mark.parametrize("error", ERRORS)
def test_with_nothing_done_an_error_keeps_its_promises(error: type[ExecdError]) -> None:
    answer = error_response(error("why").partly_done([]))
    body = json.loads(bytes(answer.body))
    assert (answer.status_code, body["code"]) == (error.status, error.code)
    assert (body["executed"], body["retryable"]) == (error.executed, error.retryable)
    assert body["details"] == {"done": []}


def test_what_one_error_says_does_not_change_the_next() -> None:
    Forbidden("one").partly_done(["/a"])
    assert Forbidden("two").executed == "not_executed"
    assert Forbidden("two").details is None


def test_names_that_are_no_text_can_be_told() -> None:
    name = os.fsdecode(b"/a/\xff")
    with pytest.raises(InsufficientStorage) as raised, explained(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    body = json.loads(bytes(error_response(raised.value.partly_done([name])).body))
    validate(body, "Error")
    assert body["details"] == {
        "field": "path",
        "path": "/a/\ufffd",
        "path_encoded": "/a/%FF",
        "errno": "ENOSPC",
        "done": ["/a/\ufffd"],
    }
