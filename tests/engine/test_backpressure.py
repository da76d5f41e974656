"""Readers that are slow, stalled or gone: memory is bounded, nothing is lost, nobody waits for the dead."""

from __future__ import annotations

import json
import time

from tests.support.following import command_id, connection, parallel, read_until
from tests.support.live import Daemon, daemon, text, wait_until

MIB = 1024 * 1024


def _settled(own: Daemon, command: str) -> int:
    """How much output there is once the command has come to a halt."""
    seen = [0, 0]

    def halted() -> bool:
        seen.append(own.status(command)["output"]["stdout_bytes"])
        time.sleep(0.1)  # a halt is the absence of news
        return seen[-1] == seen[-2] == seen[-3] > 0

    wait_until(halted, 30, "a full log")
    return int(seen[-1])


def test_a_client_that_does_not_read_costs_bounded_memory_and_loses_nothing() -> None:
    with daemon() as own:
        own.run("seq 1 300000")  # what the first stream costs once
        before = own.rss_bytes()
        with connection(own, command="yes | head -c 300000000") as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            # memory, disk and sockets are full: the command waits as on any pipe
            assert _settled(own, command) < 110 * MIB
            assert own.status(command)["running"] is True
            assert own.rss_bytes() - before < 32 * MIB
            assert own.run("echo hi")[1]["text"] == "hi\n"
            size = last = 0
            while part := sock.recv(1 << 20):
                size += part.count(b"y\\n")
                last = part.endswith(b"0\r\n\r\n")
                if last:
                    break
            assert size > 149_000_000  # the rest is what was read with the head, and torn escapes
        assert own.rss_bytes() - before < 48 * MIB


def test_a_slow_client_gets_everything_in_order() -> None:
    with daemon("--output-memory", "128KiB", "--output-disk", "1MiB") as own:
        with connection(own, command="seq 1 1500000") as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            assert _settled(own, command) < 8 * MIB
            with sock.makefile("rb") as file:
                events = []
                for line in file:
                    if line.startswith(b"{"):
                        events.append(json.loads(line))
                        if events[-1]["type"] in ("error", "execution_complete"):
                            break
        output = text(events)
        assert output.endswith("1499999\n1500000\n")
        numbers = output.split("\n")[:-1]
        assert numbers == [str(n) for n in range(int(numbers[0]), 1_500_001)]
        assert int(numbers[0]) < 30_000  # the head took the first events with it


def test_a_client_that_leaves_sets_its_command_free() -> None:
    with daemon("--output-memory", "128KiB", "--output-disk", "1MiB") as own:
        with connection(own, command="yes | head -c 50000000; echo; echo END") as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            _settled(own, command)
        assert own.wait_ended(command, 30)["outcome"] == {"kind": "exited", "code": 0}
        assert own.logs(command).endswith(b"\nEND\n")


def test_one_stalled_client_does_not_hold_up_another() -> None:
    with daemon() as own:
        with connection(own, command="yes") as stalled:
            command = command_id(read_until(stalled, b"\r\n\r\n"))
            events = own.run("seq 1 200000")
            assert text(events).endswith("200000\n")
            own.client.delete("/command", params={"id": command})


def test_both_streams_of_a_command_share_one_bound() -> None:
    with daemon("--output-memory", "256KiB", "--output-disk", "0") as own:
        with connection(own, command="yes >&2 & yes & wait", timeout=2000) as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            _settled(own, command)
            assert b'"timed_out"' in read_until(sock, b"0\r\n\r\n")


def test_memory_is_flat_over_many_commands() -> None:
    with daemon("--max-records", "200") as own:
        script = "for i in {1..50}; do echo $i; done"
        parallel(lambda _: own.run(script), range(300), 4)
        before = own.rss_bytes()
        parallel(lambda _: own.run(script), range(1700), 4)
        assert own.rss_bytes() - before < 12 * MIB
        assert own.usage()["records"] == 200
