"""Between a command's exit and the end of its stream: all of its output, none of its children's patience."""

from __future__ import annotations

import os
import time

from tests.support.following import command_id, connection, first, following, parallel, read_until, terminals
from tests.support.live import Daemon, alive, daemon, text, wait_until
from tests.support.programs import floods_after_exit, left_behind


def test_all_output_is_there_before_the_terminal_event(live: Daemon) -> None:
    command = "head -c 3000000 /dev/zero | tr '\\0' a; echo; echo END"

    def run(_: int) -> None:
        events = live.run(command)
        assert text(events) == "a" * 3_000_000 + "\nEND\n"
        assert terminals(events) == [len(events) - 1]

    parallel(run, range(20), 2)


def test_no_output_follows_the_terminal_event(live: Daemon) -> None:
    numbers = "".join(f"{n}\n" for n in range(1, 1001))

    def run(_: int) -> None:
        events = live.run("seq 1 1000; seq 1 1000 >&2; exit 1")
        assert terminals(events) == [len(events) - 1]
        assert (text(events), text(events, "stderr")) == (numbers, numbers)
        assert events[-1]["drained"]

    parallel(run, range(200), 8)


def test_a_child_left_in_the_background_does_not_hold_the_stream(live: Daemon) -> None:
    events = live.run("sleep 300 & echo $!; exit 3")
    child = int(text(events))
    try:
        assert events[-1]["error"]["evalue"] == "3"
        assert alive(child)
        assert live.status(events[0]["text"])["running"] is False
    finally:
        os.kill(child, 9)


def test_a_child_that_goes_on_writing_lives_and_its_output_can_be_read(live: Daemon) -> None:
    # It writes for longer than the drain and then some: a closed pipe would end it by SIGPIPE.
    events = live.run(left_behind(0.01, 150))
    command = events[0]["text"]
    assert events[-1]["error"]["evalue"] == "5"
    assert "all written" not in text(events)
    wait_until(lambda: live.logs(command).endswith(b"all written\n"), 20, "the last line of the child")
    assert live.logs(command) == b"".join(b"line %d\n" % n for n in range(1, 151)) + b"all written\n"
    assert live.logs(command).startswith(text(events).encode())


def test_a_child_that_floods_after_the_exit_does_not_hold_the_stream() -> None:
    with daemon("--output-memory", "256KiB") as own:
        events = own.run(
            "(while :; do head -c 90000 /dev/zero | tr '\\0' x; echo; done) & echo $! >&2; sleep .1"
        )
        os.kill(int(text(events, "stderr")), 9)
        assert terminals(events) == [len(events) - 1]
        assert events[-1]["outcome"] == {"kind": "exited", "code": 0}
        eids = [event["eid"] for event in events]
        assert eids == sorted(set(eids))


def test_a_flood_behind_a_client_that_does_not_read_is_cut_at_the_drain_limit() -> None:
    with daemon("--output-memory", "256KiB", "--output-disk", "4MiB") as own:
        with connection(own, command=floods_after_exit(100)) as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            wait_until(lambda: own.status(command)["output"]["complete"], 10, "the end of the drain")
            rest = read_until(sock, b"0\r\n\r\n")
            assert b'"execution_complete"' in rest
            assert b'"drained":false' in rest


def _read_late(own: Daemon, command: str) -> bytes:
    with connection(own, command=command) as sock:
        identity = command_id(read_until(sock, b"\r\n\r\n"))
        wait_until(lambda: own.status(identity)["output"]["stdout_bytes"] > 100_000, 10, "a full log")
        return read_until(sock, b"\n0\r\n\r\n")


def test_a_slow_reader_gets_all_that_was_written_before_the_exit() -> None:
    # Nothing is read until long after the exit and the drain: the last bytes wait in the pipe meanwhile.
    size = 4_000_000
    command = f"head -c {size} /dev/zero | tr '\\0' a; echo; echo END"
    with daemon("--output-memory", "128KiB", "--output-disk", "0", "--drain-timeout", "100ms") as own:
        for _ in range(12):
            body = _read_late(own, command)
            assert body.count(b"a") > size - 200_000  # the first read took some of it
            assert b"END" in body
            assert b'"drained":true' in body


def test_a_pipe_that_is_held_open_in_silence_costs_the_stream_a_moment(live: Daemon) -> None:
    started = time.monotonic()
    with following(live, "sleep 300 >&2 & echo $!") as events:
        child = int(first(events, "stdout")["text"])
        first(events, "execution_complete")
        took = time.monotonic() - started
    os.kill(child, 9)
    assert took < 3
