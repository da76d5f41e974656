"""Limits in time and in the size of events: pings, drain, grace, pieces of long lines."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.edge.raw import command, connection
from tests.support.live import Daemon, daemon, text


@pytest.fixture(scope="module")
def quick() -> Iterator[Daemon]:
    flags = ["--ping-interval", "500ms", "--event-text", "64", "--kill-grace", "400ms"]
    with daemon(*flags, "--drain-quiet", "300ms", "--drain-timeout", "900ms") as running:
        yield running


@pytest.mark.parametrize("size", [63, 64, 65, 128, 129, 1000])
def test_a_line_longer_than_an_event_is_split(quick: Daemon, size: int) -> None:
    line = "x" * (size - 1) + "\n"
    events = [e["text"] for e in quick.run(f"printf '%s\\n' {line}") if e["type"] == "stdout"]
    assert "".join(events) == line
    assert max(map(len, events)) <= 64
    assert len(events) == -(-size // 64)


def test_an_event_has_as_many_whole_lines_as_fit(quick: Daemon) -> None:
    texts = [e["text"] for e in quick.run("seq -w 1 1000") if e["type"] == "stdout"]
    assert all(len(text) <= 64 and text.endswith("\n") for text in texts)
    assert "".join(texts) == "".join(f"{n:04}\n" for n in range(1, 1001))


def test_a_character_is_not_cut_where_an_event_is(quick: Daemon) -> None:
    word = "€" * 100  # three bytes each: 64 is no multiple of it
    assert text(quick.run(f"printf %s {word}")) == word


def test_silence_is_broken_by_pings(quick: Daemon) -> None:
    events = quick.events({"command": "sleep 1.5; echo late"})
    kinds = [event["type"] for event in events]
    assert kinds.count("ping") >= 2
    assert kinds[-2:] == ["stdout", "execution_complete"]
    assert all("eid" not in event for event in events if event["type"] == "ping")


def test_the_default_ping_comes_before_three_seconds_are_over(live: Daemon) -> None:
    limits = live.client.get("/capabilities").json()["limits"]
    assert limits["ping_interval_seconds"] <= 3


def test_no_ping_while_there_is_output(quick: Daemon) -> None:
    events = quick.events({"command": "for i in $(seq 50); do echo $i; sleep 0.02; done"})
    assert [e["type"] for e in events].count("ping") <= 1  # a busy machine may pause us once


def test_a_quiet_process_left_behind_does_not_hold_the_stream(quick: Daemon) -> None:
    with left_behind(quick, "sleep 60 & echo $! >&2") as (events, seconds):
        assert events[-1]["type"] == "execution_complete"
        assert events[-1]["drained"] is True
        assert seconds < 5


def test_a_noisy_process_left_behind_is_cut_off_and_that_is_said(quick: Daemon) -> None:
    noise = "(while :; do echo noise; sleep 0.02; done) & echo $! >&2"
    with left_behind(quick, noise) as (events, seconds):
        assert events[-1]["type"] == "execution_complete"
        assert events[-1]["drained"] is False
        assert events[-1]["outcome"] == {"kind": "exited", "code": 0}
        assert "noise\n" in text(events)
        assert 0.9 <= seconds < 8


@contextlib.contextmanager
def left_behind(running: Daemon, command_text: str) -> Iterator[tuple[list[dict[str, object]], float]]:
    """Run a command that says on stderr which pid it leaves; that is ended after the block."""
    began = time.monotonic()
    events = running.run(command_text)
    seconds = time.monotonic() - began
    pid = int(text(events, "stderr"))
    try:
        os.kill(pid, 0)  # it is still there
        yield events, seconds
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_command_that_ignores_term_is_killed_after_the_grace(quick: Daemon) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    with connection(quick.port) as conn:
        conn.send(command(stubborn))
        command_id = dict(conn.head()[1])["x-execd-command-id"]
        chunks = conn.chunks()
        while b"ready" not in next(chunks):
            pass
        began = time.monotonic()
        assert quick.client.delete("/command", params={"id": command_id}).status_code == 200
        assert 0.35 < time.monotonic() - began < 8
        assert b'"signal":"SIGKILL"' in b"".join(chunks)


def test_a_command_that_ends_within_the_grace_has_its_last_word(live: Daemon) -> None:
    polite = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
    with connection(live.port) as conn:
        conn.send(command(polite))
        command_id = dict(conn.head()[1])["x-execd-command-id"]
        chunks = conn.chunks()
        while b"ready" not in next(chunks):
            pass
        live.client.delete("/command", params={"id": command_id})
        rest = b"".join(chunks)
        assert b"bye" in rest
        assert b'"evalue":"5"' in rest
    assert live.status(command_id)["outcome"] == {"kind": "interrupted", "code": 5, "reason": "request"}


def test_no_grace_at_all_is_a_kill_at_once() -> None:
    with daemon("--kill-grace", "0") as running:
        command_id = running.background("trap '' TERM; while :; do sleep 0.05; done")
        assert running.client.delete("/command", params={"id": command_id}).status_code == 200
        assert running.wait_ended(command_id)["outcome"]["kind"] == "interrupted"


def test_a_stop_takes_no_longer_than_it_is_given() -> None:
    with daemon("--graceful-shutdown-timeout", "500ms", "--kill-grace", "60s") as running:
        running.background("trap '' TERM; while :; do sleep 0.1; done")
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 10
