"""`DELETE /command`: at any moment of a command's life, as often as one likes."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.support.following import command_id, first, following, parallel, read_until, request
from tests.support.live import Daemon, alive, daemon, wait_until
from tests.support.programs import IGNORES_TERM


def test_a_command_can_be_interrupted_on_the_first_byte_of_its_stream(live: Daemon) -> None:
    def run(_: int) -> None:
        with socket.create_connection(("127.0.0.1", live.port), 10) as sock:
            sock.sendall(request(live, command="sleep 300"))
            command = command_id(read_until(sock, b"\r\n\r\n"))
            started = time.monotonic()
            assert live.client.delete("/command", params={"id": command}).status_code == 200
            rest = read_until(sock, b"0\r\n\r\n")
            assert b'"kind":"interrupted"' in rest
            assert time.monotonic() - started < 5

    parallel(run, range(100), 4)


def test_an_interrupt_says_how_the_command_ended(live: Daemon) -> None:
    with following(live, "sleep 300") as events:
        command = first(events, "init")["text"]
        live.client.delete("/command", params={"id": command})
        last = first(events, "error")
    assert last["outcome"] == {"kind": "interrupted", "signal": "SIGTERM", "reason": "request"}
    assert last["error"]["evalue"] == "130"
    assert live.status(command)["exit_code"] == 130


def test_a_code_that_the_command_chose_to_exit_with_is_kept(live: Daemon) -> None:
    with following(live, "trap 'exit 42' TERM; echo ready; sleep 300 & wait") as events:
        command = first(events, "init")["text"]
        first(events, "stdout")
        live.client.delete("/command", params={"id": command})
        last = first(events, "error")
    assert last["outcome"] == {"kind": "interrupted", "code": 42, "reason": "request"}
    assert last["error"]["evalue"] == "42"


def test_the_answer_to_an_interrupt_comes_when_the_outcome_is_known(live: Daemon) -> None:
    for command in ("sleep 300", "trap 'sleep 0.3; exit 1' TERM; sleep 300 & wait"):
        identity = live.background(command)
        assert live.client.delete("/command", params={"id": identity}).status_code == 200
        assert live.status(identity)["running"] is False


def test_interrupting_what_has_ended_changes_nothing_each_time(live: Daemon) -> None:
    for command, code in (("true", 0), ("exit 3", 3), ("kill -9 $$", 137)):
        identity = live.run(command)[0]["text"]
        before = live.status(identity)
        for _ in range(3):
            answer = live.client.delete("/command", params={"id": identity})
            assert (answer.status_code, answer.content) == (200, b"")
            assert live.status(identity) == before
        assert before["exit_code"] == code


def test_many_interrupts_at_once_end_a_command_once(live: Daemon) -> None:
    identity = live.background("trap 'echo bye' TERM; sleep 300 & wait; wait")
    statuses = parallel(
        lambda _: live.client.delete("/command", params={"id": identity}).status_code, range(10), 10
    )
    assert statuses == [200] * 10
    assert live.wait_ended(identity)["outcome"]["kind"] == "interrupted"


@pytest.mark.parametrize("query", [{}, {"id": ""}])
def test_an_id_is_needed(live: Daemon, query: dict[str, str]) -> None:
    answer = live.client.delete("/command", params=query)
    assert (answer.status_code, answer.json()["code"]) == (400, "MISSING_QUERY")


def test_a_command_that_ignores_term_is_killed_and_the_answer_is_not_late() -> None:
    with daemon("--kill-grace", "500ms") as own:
        identity = own.background(IGNORES_TERM)
        wait_until(lambda: own.logs(identity), 10, "its pid")
        started = time.monotonic()
        assert own.client.delete("/command", params={"id": identity}).status_code == 200
        assert time.monotonic() - started < 4
        assert own.status(identity)["outcome"]["signal"] == "SIGKILL"
        assert not alive(int(own.logs(identity)))


def test_an_interrupt_in_the_grace_of_a_timeout_does_not_change_the_outcome() -> None:
    with daemon("--kill-grace", "1s") as own:
        identity = own.background(IGNORES_TERM, timeout=200)
        wait_until(lambda: own.logs(identity), 10, "its pid")
        waiter = threading.Event()
        waiter.wait(0.4)  # into the grace: nothing announces that TERM was sent and ignored
        assert own.client.delete("/command", params={"id": identity}).status_code == 200
        outcome = own.wait_ended(identity)["outcome"]
        assert (outcome["kind"], outcome["reason"]) == ("timed_out", "timeout")


def test_interrupt_frees_a_paused_command(live: Daemon) -> None:
    with socket.create_connection(("127.0.0.1", live.port), 10) as sock:
        sock.sendall(request(live, command="yes"))  # nobody reads: its pipe fills
        identity = command_id(read_until(sock, b"\r\n\r\n"))
        wait_until(lambda: live.status(identity)["output"]["stdout_bytes"] > 30_000_000, 20, "a full log")
        assert live.client.delete("/command", params={"id": identity}).status_code == 200
        assert live.status(identity)["outcome"]["kind"] == "interrupted"
        assert b'"kind":"interrupted"' in read_until(sock, b"0\r\n\r\n")[-2000:]
