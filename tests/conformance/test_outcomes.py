"""How a command ended, as the SDK tells it."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from opensandbox.exceptions import SandboxApiException

from tests.support.sdk import Sdk


def test_an_echo_has_an_id_one_text_and_exit_code_zero(sdk: Sdk) -> None:
    before = time.time() * 1000
    execution = sdk.run("echo hello")
    after = time.time() * 1000
    assert execution.id
    assert execution.id.isalnum()
    assert [message.text.rstrip("\n") for message in execution.logs.stdout] == ["hello"]
    assert execution.text == "hello"
    assert execution.logs.stderr == []
    assert execution.error is None
    assert execution.exit_code == 0
    assert execution.complete
    assert execution.complete.execution_time_in_millis >= 0
    assert before - 1 <= execution.logs.stdout[0].timestamp <= execution.complete.timestamp <= after


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 255])
def test_an_exit_code_arrives_as_it_is(sdk: Sdk, code: int) -> None:
    execution = sdk.run(f"exit {code}")
    assert execution.exit_code == code
    assert (execution.error is None) == (code == 0)
    assert (execution.complete is None) == (code != 0)


def test_a_failure_is_an_error_that_clients_know(sdk: Sdk) -> None:
    execution = sdk.run("echo so far; exit 7")
    assert execution.text == "so far"
    assert execution.error
    assert (execution.error.name, execution.error.value) == ("CommandExecError", "7")
    assert execution.error.traceback == ["exit status 7"]


def test_an_unknown_program_is_named_on_stderr_and_ends_with_127(sdk: Sdk) -> None:
    execution = sdk.run("no-such-program-here --flag")
    assert execution.exit_code == 127
    assert execution.error
    assert execution.error.name == "CommandExecError"
    assert execution.complete is None
    assert "no-such-program-here" in "".join(message.text for message in execution.logs.stderr)


def test_a_file_that_is_no_program_ends_with_126(sdk: Sdk) -> None:
    execution = sdk.run("/etc/passwd")
    assert execution.exit_code == 126
    assert "Permission denied" in "".join(message.text for message in execution.logs.stderr)


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("SEGV", 139), ("TERM", 143)])
def test_a_death_by_signal_is_128_and_its_number(sdk: Sdk, name: str, code: int) -> None:
    execution = sdk.run(f"echo last words; kill -{name} $$")
    assert execution.text == "last words"
    assert execution.exit_code == code
    assert execution.error
    assert execution.error.traceback == [f"signal: SIG{name}"]


def test_a_timeout_ends_the_command_with_124(sdk: Sdk) -> None:
    execution = sdk.run("echo started; sleep 60", timeout=timedelta(milliseconds=300))
    assert execution.text == "started"
    assert execution.exit_code == 124
    assert execution.error
    assert execution.complete is None
    assert execution.id
    status = sdk.status(execution.id)
    assert (status.running, status.exit_code) == (False, 124)


def test_a_timeout_of_zero_is_none(sdk: Sdk) -> None:
    assert sdk.run("sleep 0.05; exit 5", timeout=timedelta(0)).exit_code == 5


def test_an_argument_list_runs_without_a_shell(sdk: Sdk) -> None:
    arguments = ["$HOME", "a b", "", "it's", '"quoted"', "*", "new\nline", "ünïcödé 🌍", "-n"]
    execution = sdk.run(["printf", "<%s>", *arguments])
    assert execution.exit_code == 0
    shown = "".join(f"<{argument}>" for argument in arguments)
    assert execution.text == shown


def test_an_argument_list_keeps_its_exit_code(sdk: Sdk) -> None:
    assert sdk.run(["sh", "-c", "exit 9"]).exit_code == 9


def test_an_argument_list_without_its_program_is_refused_before_anything_runs(sdk: Sdk) -> None:
    with pytest.raises(SandboxApiException) as refusal:
        sdk.run(["no-such-program-here"])
    assert refusal.value.status_code == 400
    assert refusal.value.error.code == "COMMAND_START_FAILED"
    assert "no-such-program-here" in (refusal.value.error.message or "")
    assert not refusal.value.is_retryable
