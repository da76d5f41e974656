"""The SDK's handlers: called as things happen, in order, with exactly one end."""

from __future__ import annotations

import os
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tests.support.sdk import SECONDS, Sdk


def called(sdk: Sdk, command: str, **opts: Any) -> list[tuple[str, Any]]:
    """Every call of a handler during one command."""
    calls: list[tuple[str, Any]] = []
    execution = sdk.run(command, lambda name, message: calls.append((name, message)), **opts)
    assert calls[0][1].id == execution.id
    return calls


@pytest.mark.parametrize(
    ("command", "end"),
    [("echo out; echo err >&2", "on_execution_complete"), ("echo out; exit 3", "on_error")],
)
def test_handlers_are_called_from_the_start_to_the_only_end(sdk: Sdk, command: str, end: str) -> None:
    names = [name for name, _ in called(sdk, command)]
    assert names[0] == "on_init"
    assert names[-1] == end
    assert names.count("on_init") == 1
    assert names.count("on_error") + names.count("on_execution_complete") == 1
    assert "on_stdout" in names
    assert ("on_stderr" in names) == ("err" in command)


def test_a_background_start_is_told_as_begun_and_complete(sdk: Sdk) -> None:
    names = [name for name, _ in called(sdk, "echo unseen", background=True)]
    assert names == ["on_init", "on_execution_complete"]


def test_timestamps_never_run_backwards(sdk: Sdk) -> None:
    calls = called(sdk, "for i in 1 2 3; do echo $i; sleep 0.01; done")
    stamps = [message.timestamp for _, message in calls]
    assert stamps == sorted(stamps)
    assert "".join(m.text for name, m in calls if name == "on_stdout").replace("\n", "") == "123"


def test_output_is_handed_over_while_the_command_runs(sdk: Sdk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    seen: Queue[tuple[str, Any]] = Queue()
    running = sdk.submit(
        f"printf 'Name? '; read name < {tmp_path}/go; echo; echo \"Hello $name\" >&2",
        lambda name, message: seen.put((name, message)),
    )
    assert seen.get(timeout=SECONDS)[0] == "on_init"
    if sdk.line_endings == "keep":  # the other mode waits for the end of a line
        name, prompt = seen.get(timeout=SECONDS)
        assert (name, prompt.text) == ("on_stdout", "Name? ")
    (tmp_path / "go").write_text("Ada\n")
    assert "".join(m.text for m in running.result(SECONDS).logs.stderr).rstrip() == "Hello Ada"
