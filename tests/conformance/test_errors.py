"""Refusals, as the SDK raises them: our status, code and message, and never a second try."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from opensandbox.exceptions import SandboxApiException, SandboxRateLimitException

from tests.support.live import Daemon, wait_until
from tests.support.sdk import Kind, Sdk, Target

ODD_IDS = ("50%", "ünknown 🌍", "a&b=c", "a+b", "a;b", "%00")
Ask = Callable[[Sdk, str], object]
ASKS: dict[str, Ask] = {
    "status": lambda sdk, command_id: sdk.status(command_id),
    "logs": lambda sdk, command_id: sdk.logs(command_id),
    "interrupt": lambda sdk, command_id: sdk.interrupt(command_id),
}


def refused(
    call: Callable[[], object], status: int, code: str, *, parsed: bool = True
) -> SandboxApiException:
    """The exception of a call that the daemon refuses.

    `parsed` False: the SDK knows no such status of that route, and tells of the body as it is.
    """
    with pytest.raises(SandboxApiException) as raised:
        call()
    error = raised.value
    assert error.status_code == status
    assert error.request_id
    assert error.response_body
    body = json.loads(error.response_body)
    assert body["code"] == code
    assert (body["message"] if parsed else error.response_body.decode()) in str(error)
    assert body["executed"] == "not_executed"
    assert body["retryable"] == error.is_retryable
    if parsed:
        assert (error.error.code, error.error.message) == (code, body["message"])
    return error


@contextlib.contextmanager
def one_request(daemon: Daemon) -> Iterator[None]:
    """The block sends the daemon one request and no second."""
    before = mark(daemon)
    yield
    after = mark(daemon)
    paths = [line.get("path") for line in daemon.log_lines()]
    assert paths.index(after) == paths.index(before) + 2


def mark(daemon: Daemon) -> str:
    """Leave a line in the daemon's log, and wait until it is there."""
    path = f"/mark/{uuid.uuid4().hex}"
    assert daemon.client.get(path).status_code == 404
    wait_until(lambda: path in daemon.log_text(), what="the mark in the log")
    return path


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_an_unknown_id_is_not_found(keep_sdk: Sdk, ask: Ask) -> None:
    known = ask is not ASKS["interrupt"]
    with one_request(keep_sdk.daemon):
        refused(partial(ask, keep_sdk, "0" * 32), 404, "COMMAND_NOT_FOUND", parsed=known)
    for command_id in ODD_IDS:
        refused(partial(ask, keep_sdk, command_id), 404, "COMMAND_NOT_FOUND", parsed=known)


@pytest.mark.parametrize("background", [False, True])
def test_a_directory_that_is_none_is_refused_and_not_tried_again(keep_sdk: Sdk, background: bool) -> None:
    def call() -> object:
        return keep_sdk.run("echo ran", working_directory="/no/such/dir", background=background)

    with one_request(keep_sdk.daemon):
        error = refused(call, 400, "INVALID_REQUEST_BODY")
    assert "cwd" in str(error)
    assert "/no/such/dir" in str(error)
    assert not error.is_retryable


def test_an_undefined_variable_in_the_directory_is_named(keep_sdk: Sdk) -> None:
    def call() -> object:
        return keep_sdk.run("echo ran", working_directory="$NO_SUCH_VARIABLE/x")

    assert "NO_SUCH_VARIABLE" in str(refused(call, 400, "INVALID_REQUEST_BODY"))


def test_the_right_token_is_accepted(guarded_sdk: Sdk) -> None:
    assert guarded_sdk.run("echo in").text == "in"
    assert "t0ken" not in guarded_sdk.run("env").text


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_wrong_token_is_unauthorized(
    guarded_sdk: Sdk, client: Callable[[Kind, Target], Sdk], token: str
) -> None:
    stranger = client(guarded_sdk.kind, replace(guarded_sdk.target, token=token))
    refused(lambda: stranger.run("echo in"), 401, "UNAUTHORIZED")
    for ask in ASKS.values():
        refused(partial(ask, stranger, "any"), 401, "UNAUTHORIZED", parsed=False)
    assert stranger.healthy()


def test_a_healthy_daemon_is_healthy(sdk: Sdk) -> None:
    assert sdk.healthy()


def test_one_command_too_many_is_a_rate_limit_with_a_time_to_wait(guarded_sdk: Sdk) -> None:
    running = guarded_sdk.background("sleep 60")
    try:
        with one_request(guarded_sdk.daemon):
            error = refused(lambda: guarded_sdk.run("echo ran"), 429, "TOO_MANY_EXECUTIONS")
        assert isinstance(error, SandboxRateLimitException)
        assert error.retry_after == timedelta(seconds=1)
        assert error.is_retryable
        assert guarded_sdk.status(running).running
        assert guarded_sdk.healthy()
    finally:
        guarded_sdk.interrupt(running)
    assert guarded_sdk.run("echo ran").text == "ran"
