"""Every way for a command to end, told as it was: exit codes, signals, one terminal event, the last one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.following import parallel, terminals
from tests.support.live import Daemon, alive, text
from tests.support.programs import CLOSES_OUTPUT_BUT_LIVES


@pytest.mark.parametrize(
    ("command", "code", "outcome"),
    [
        ("exit 0", 0, {"kind": "exited", "code": 0}),
        ("exit 3", 3, {"kind": "exited", "code": 3}),
        ("exit 255", 255, {"kind": "exited", "code": 255}),
        ("exit 256", 0, {"kind": "exited", "code": 0}),
        ("kill -9 $$", 137, {"kind": "signaled", "signal": "SIGKILL"}),
        ("kill -TERM $$", 143, {"kind": "signaled", "signal": "SIGTERM"}),
        ("kill -SEGV $$", 139, {"kind": "signaled", "signal": "SIGSEGV"}),
        ("kill -40 $$", 168, {"kind": "signaled", "signal": "SIGRTMIN+6"}),
        ("bash -c 'kill -9 $$'; exit $?", 137, {"kind": "exited", "code": 137}),
        ("if", 2, {"kind": "exited", "code": 2}),
    ],
)
def test_the_outcome_is_what_happened(
    live: Daemon, command: str, code: int, outcome: dict[str, object]
) -> None:
    events = live.run(command)
    last = events[-1]
    assert last["outcome"] == outcome
    assert last["exit_code"] == code
    if code:
        assert last["type"] == "error"
        assert last["error"]["ename"] == "CommandExecError"
        assert last["error"]["evalue"] == str(code)
        assert [type(x) for x in last["error"]["traceback"]] == [str]
    else:
        assert last["type"] == "execution_complete"
    status = live.status(events[0]["text"])
    assert (status["running"], status["exit_code"], status["outcome"]) == (False, code, outcome)


def test_a_missing_program_is_127_and_says_so(live: Daemon) -> None:
    events = live.run("no_such_binary_zz")
    assert "not found" in text(events, "stderr")
    assert events[-1]["error"]["evalue"] == "127"


def test_a_program_that_is_not_executable_is_126(live: Daemon, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("echo no\n")
    events = live.run(str(program))
    assert "ermission denied" in text(events, "stderr")
    assert events[-1]["error"]["evalue"] == "126"


def _not_a_program(path: Path, content: bytes = b"\x00\x01garbage", mode: int = 0o755) -> list[str]:
    path.write_bytes(content)
    path.chmod(mode)
    return [str(path)]


@pytest.mark.parametrize(
    "fault", ["ENOENT", "ENOENT-interpreter", "EACCES", "EACCES-directory", "ENOEXEC", "E2BIG"]
)
def test_what_cannot_start_is_a_json_error_with_its_errno(live: Daemon, tmp_path: Path, fault: str) -> None:
    argv = {
        "ENOENT": lambda: ["/no/such/program"],
        "ENOENT-interpreter": lambda: _not_a_program(tmp_path / "x", b"#!/no/such/interpreter\n"),
        "EACCES": lambda: _not_a_program(tmp_path / "x", mode=0o644),
        "EACCES-directory": lambda: [str(tmp_path)],
        "ENOEXEC": lambda: _not_a_program(tmp_path / "x"),
        "E2BIG": lambda: ["echo", "x" * 200_000],
    }[fault]()
    before = live.usage()["records"]
    for background in (False, True):
        answer = live.client.post("/command", json={"argv": argv, "background": background})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        body = answer.json()
        assert body["code"] == "COMMAND_START_FAILED"
        assert body["details"]["errno"] == fault.partition("-")[0]
        assert (body["executed"], body["retryable"]) == ("not_executed", False)
    assert live.usage()["records"] == before


def test_an_environment_that_is_too_large_is_told_from_an_argument_that_is(live: Daemon) -> None:
    answer = live.client.post("/command", json={"command": "true", "envs": {"X": "x" * 200_000}})
    assert (answer.status_code, answer.json()["details"]["field"]) == (400, "envs")


def test_fast_failures_have_exactly_one_terminal_event_and_it_is_the_last(live: Daemon) -> None:
    runs = parallel(lambda _: live.run("exit 3"), range(300), 20)
    for events in runs:
        assert terminals(events) == [len(events) - 1]
        assert events[-1]["error"]["evalue"] == "3"
    assert len({events[0]["text"] for events in runs}) == 300


def test_a_process_that_lives_on_without_its_outputs_has_not_ended(live: Daemon) -> None:
    events = live.run(CLOSES_OUTPUT_BUT_LIVES)
    assert text(events) == "bye\n"
    assert events[-1]["outcome"] == {"kind": "exited", "code": 7}
    assert events[-1]["execution_time"] >= 500


def test_what_was_buffered_at_the_exit_is_delivered(live: Daemon) -> None:
    program = "import os, sys; sys.stdout.write('buffered'); sys.stdout.flush(); os._exit(4)"
    events = live.run(argv=["python3", "-c", program])
    assert (text(events), events[-1]["error"]["evalue"]) == ("buffered", "4")


def test_usage_counts_the_command_and_what_it_waited_for(live: Daemon) -> None:
    burn = "python3 -c 'x = bytearray(90_000_000); sum(range(3_000_000))'"
    usage = live.run(burn + "; true")[-1]["rusage"]
    assert usage["cpu_seconds"] > 0.02
    assert usage["max_rss_bytes"] > 90_000_000


def test_a_finished_command_keeps_its_outcome_however_often_it_is_interrupted(live: Daemon) -> None:
    command = live.run("exit 9")[0]["text"]
    before = live.status(command)
    for _ in range(3):
        assert live.client.delete("/command", params={"id": command}).status_code == 200
        assert live.status(command) == before


def test_a_process_that_got_a_finished_commands_group_is_not_signalled(live: Daemon) -> None:
    # The child stays in the group of a leader that has ended: an interrupt of that command must not reach it.
    events = live.run("sleep 300 >/dev/null 2>&1 & echo $!")
    child = int(text(events))
    try:
        assert live.client.delete("/command", params={"id": events[0]["text"]}).status_code == 200
        assert alive(child)
    finally:
        os.kill(child, 9)
