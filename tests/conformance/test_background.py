"""Commands in the background, their state and their output, and ending any command, through the SDK."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

from tests.support.live import alive, wait_until
from tests.support.sdk import SECONDS, Sdk


def all_logs(sdk: Sdk, command_id: str) -> str:
    """Follow the cursor until it moves no more."""
    found, cursor = "", None
    while True:
        page = sdk.logs(command_id, cursor)
        assert page.cursor is not None
        if page.cursor == cursor:
            assert page.content == ""
            return found
        found, cursor = found + page.content, page.cursor


def ended(sdk: Sdk, command_id: str) -> None:
    wait_until(lambda: not sdk.status(command_id).running, what="end of the command")


def test_a_background_start_answers_at_once_without_an_exit_code(sdk: Sdk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    execution = sdk.run(f"read _ < {tmp_path}/go; exit 4", background=True)
    assert execution.id
    assert execution.exit_code is None
    assert execution.error is None
    assert execution.complete
    assert sdk.status(execution.id).running
    (tmp_path / "go").write_text("\n")
    ended(sdk, execution.id)
    assert sdk.status(execution.id).exit_code == 4


def test_the_status_tells_what_ran_and_how_it_ended(sdk: Sdk) -> None:
    command_id = sdk.background("echo content; exit 3")
    ended(sdk, command_id)
    status = sdk.status(command_id)
    assert (status.id, status.content, status.running) == (command_id, "echo content; exit 3", False)
    assert (status.exit_code, status.error) == (3, "exit status 3")
    assert status.started_at
    assert status.finished_at
    assert datetime.now(UTC) - timedelta(minutes=1) < status.started_at <= status.finished_at


def test_a_running_command_has_no_end_in_its_status(sdk: Sdk) -> None:
    command_id = sdk.background("sleep 60")
    status = sdk.status(command_id)
    assert (status.running, status.exit_code, status.error, status.finished_at) == (True, None, None, None)
    sdk.interrupt(command_id)


def test_a_foreground_command_has_status_and_logs_too(sdk: Sdk) -> None:
    execution = sdk.run("echo seen; echo heard >&2")
    assert execution.id
    status = sdk.status(execution.id)
    assert (status.running, status.exit_code, status.error) == (False, 0, None)
    assert sorted(all_logs(sdk, execution.id).splitlines()) == ["heard", "seen"]


def test_logs_are_read_on_from_where_the_last_page_ended(sdk: Sdk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    command_id = sdk.background(f"echo one; read _ < {tmp_path}/go; echo two >&2; printf drei-ß")
    wait_until(lambda: sdk.logs(command_id).content == "one\n")
    first = sdk.logs(command_id)
    assert sdk.logs(command_id, first.cursor).content == ""
    (tmp_path / "go").write_text("\n")
    ended(sdk, command_id)
    assert sdk.logs(command_id, first.cursor).content == "two\ndrei-ß"
    assert all_logs(sdk, command_id) == "one\ntwo\ndrei-ß"


def test_logs_of_several_pages_are_complete(sdk: Sdk) -> None:
    command_id = sdk.background("seq -f '%07.0f ä' 1 250000")
    ended(sdk, command_id)
    shown = all_logs(sdk, command_id)
    assert len(shown) == 250_000 * 10
    assert shown == "".join(f"{number:07} ä\n" for number in range(1, 250_001))


def test_logs_of_a_silent_command_are_empty(sdk: Sdk) -> None:
    command_id = sdk.background("true")
    ended(sdk, command_id)
    page = sdk.logs(command_id)
    assert (page.content, page.cursor) == ("", 0)


def test_a_running_command_is_interrupted_from_elsewhere(sdk: Sdk) -> None:
    seen: Queue[tuple[str, Any]] = Queue()
    running = sdk.submit("sleep 60 & echo $!; wait", lambda name, message: seen.put((name, message)))
    name, init = seen.get(timeout=SECONDS)
    assert name == "on_init"
    _, output = seen.get(timeout=SECONDS)
    child = int(output.text)
    assert alive(child)
    sdk.interrupt(init.id)
    execution = running.result(SECONDS)
    assert execution.exit_code == 130
    assert execution.error
    assert (execution.error.name, execution.error.value) == ("CommandExecError", "130")
    assert execution.complete is None
    assert not alive(child)


def test_a_background_command_is_interrupted(sdk: Sdk) -> None:
    command_id = sdk.background("trap 'echo told; exit 21' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: "ready" in sdk.logs(command_id).content)
    sdk.interrupt(command_id)
    status = sdk.status(command_id)
    assert (status.running, status.exit_code) == (False, 21)
    wait_until(lambda: "\ntold\n" in sdk.logs(command_id).content)


def test_interrupting_what_has_ended_changes_nothing(sdk: Sdk) -> None:
    execution = sdk.run("exit 6")
    assert execution.id
    before = sdk.status(execution.id)
    sdk.interrupt(execution.id)
    sdk.interrupt(execution.id)
    assert sdk.status(execution.id) == before
    assert before.exit_code == 6
