"""Limits on kept output: memory, disk, all together, and what the disk must keep free."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial

import pytest

from tests.edge.raw import command, connection
from tests.support.live import Daemon, daemon, text, wait_until

KIB = 1024
MEMORY, DISK = 128 * KIB, 256 * KIB
SMALL = ("--output-memory", "128KiB", "--output-disk", "256KiB")


def numbers(last: int) -> bytes:
    """What `seq -w 1 last` prints, for a `last` of six digits: seven bytes a line."""
    return b"".join(b"%06d\n" % n for n in range(1, last + 1))


def ended(running: Daemon, command_text: str) -> str:
    command_id = running.background(command_text)
    running.wait_ended(command_id, 30)
    wait_until(lambda: running.status(command_id)["output"]["complete"], what="complete output")
    return command_id


def kept_of(running: Daemon, command_id: str) -> tuple[bytes, int]:
    """What is kept, and how much is gone before it, as `logs` says."""
    answer = running.client.get(f"/command/{command_id}/logs")
    return running.logs(command_id), int(answer.headers["X-Execd-Dropped-Bytes"])


@pytest.fixture(scope="module")
def small() -> Iterator[Daemon]:
    with daemon(*SMALL) as running:
        yield running


@pytest.mark.parametrize("size", [1, MEMORY - 1, MEMORY, MEMORY + 1, DISK - 1, DISK])
def test_output_within_the_limits_is_kept_whole(small: Daemon, size: int) -> None:
    expected = numbers(40_000)[:size]
    command_id = ended(small, f"seq -w 1 100000 | head -c {size}")
    assert kept_of(small, command_id) == (expected, 0)
    assert small.status(command_id)["output"]["stdout_dropped"] == 0


def test_beyond_the_limits_the_oldest_goes_and_the_answer_says_how_much(small: Daemon) -> None:
    command_id = ended(small, "seq -w 1 100000")
    whole = b"".join(b"%06d\n" % n for n in range(1, 100_001))
    kept, gone = kept_of(small, command_id)
    assert gone + len(kept) == len(whole)
    assert whole.endswith(kept)
    assert DISK // 2 <= len(kept) <= MEMORY + DISK
    output = small.status(command_id)["output"]
    assert (output["stdout_bytes"], output["stdout_dropped"]) == (len(whole), gone)
    assert output["fault"] is None
    # a cursor in what is gone moves up to what is kept, and says over how much
    answer = small.client.get(f"/command/{command_id}/logs", params={"cursor": gone - 10})
    assert answer.headers["X-Execd-Dropped-Bytes"] == "10"
    assert answer.content == kept[: len(answer.content)]


def test_what_went_is_told_apart_by_stream(small: Daemon) -> None:
    command_id = ended(small, "seq -w 1 100000 >&2; seq -w 1 100000; seq -w 1 20000 >&2")
    output = small.status(command_id)["output"]
    kept, gone = kept_of(small, command_id)
    assert output["stdout_dropped"] + output["stderr_dropped"] == gone
    assert (output["stdout_bytes"], output["stderr_bytes"]) == (700_000, 820_000)
    assert 0 < output["stdout_dropped"] <= 700_000
    assert 0 < output["stderr_dropped"] <= 820_000
    assert kept.endswith(b"20000\n")


def test_the_file_never_grows_beyond_the_limit(small: Daemon) -> None:
    command_id = ended(small, "head -c 5000000 /dev/zero")
    assert (small.state / f"{command_id}.out").stat().st_size <= DISK
    assert small.usage()["output_disk_bytes"] <= 32 * DISK


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--output-disk", "0"), id="no-limit-for-it"),
        pytest.param(("--output-total", "0"), id="no-budget"),
        pytest.param(("--min-free-disk", "99"), id="disk-too-full"),
        pytest.param(("--state-dir", "/proc/nowhere"), id="no-directory"),
    ],
)
def test_without_disk_commands_run_and_the_record_says_what_is_missing(flags: tuple[str, str]) -> None:
    space = os.statvfs(tempfile.gettempdir())
    if "99" in flags and space.f_bavail > space.f_blocks * 0.98:
        pytest.skip("this disk is empty")
    with daemon("--output-memory", "128KiB", *flags) as running:
        assert text(running.run("seq -w 1 100000")).encode() == b"".join(
            b"%06d\n" % n for n in range(1, 100_001)
        )
        command_id = ended(running, "seq -w 1 100000")
        kept, gone = kept_of(running, command_id)
        assert gone + len(kept) == 700_000
        assert 0 < len(kept) <= MEMORY
        assert kept.endswith(b"099999\n100000\n")
        assert running.status(command_id)["output"]["fault"]
        assert running.usage()["output_disk_bytes"] == 0
        short = ended(running, "echo hi")
        assert running.status(short)["output"]["fault"] is None
        assert running.client.get("/readyz").status_code == (503 if "--state-dir" in flags else 200)


def test_beyond_the_total_the_output_that_ended_first_goes_and_says_so() -> None:
    flags = ("--output-memory", "128KiB", "--output-disk", "1MiB", "--output-total", "2MiB")
    with daemon(*flags) as running:
        ids = [ended(running, "seq -w 1 100000") for _ in range(4)]
        wait_until(lambda: running.usage()["output_disk_bytes"] <= 2 * KIB * KIB, what="the total")
        outputs = [running.status(command_id)["output"] for command_id in ids]
        assert "make room" in outputs[0]["fault"]
        assert outputs[0]["stdout_dropped"] > 0
        assert [output["fault"] for output in outputs[2:]] == [None, None]
        assert kept_of(running, ids[3]) == (b"".join(b"%06d\n" % n for n in range(1, 100_001)), 0)
        assert not (running.state / f"{ids[0]}.out").exists()


def test_the_total_holds_for_commands_that_still_run() -> None:
    flags = ("--output-memory", "128KiB", "--output-disk", "1MiB", "--output-total", "1500KiB")
    with daemon(*flags) as running:
        ids = [running.background("head -c 4000000 /dev/zero; sleep 60") for _ in range(3)]
        for command_id in ids:
            wait_until(partial(has_written, running, command_id, 4_000_000), what="all of the output")
        assert running.usage()["output_disk_bytes"] <= 1500 * KIB
        faults = [running.status(command_id)["output"]["fault"] for command_id in ids]
        assert any(fault and "budget" in fault for fault in faults)
        assert all(running.status(command_id)["running"] for command_id in ids)


def test_a_client_that_does_not_read_slows_the_command_and_loses_nothing() -> None:
    size = 60_000_000
    with daemon(*SMALL) as running, connection(running.port) as conn:
        conn.send(command(f"yes 0123456 | head -c {size}; echo the end"))
        command_id = dict(conn.head()[1])["x-execd-command-id"]
        before = running.rss_bytes()

        def stands_still() -> bool:
            first = written(running, command_id)
            running.run("sleep 0.2")  # other commands are not slowed
            return 0 < first == written(running, command_id)

        wait_until(stands_still, what="a command that waits for its reader")
        assert running.status(command_id)["running"] is True
        assert written(running, command_id) < size
        assert running.rss_bytes() - before < 32 * KIB * KIB
        received = b"".join(conn.chunks())
        assert received.count(b"0123456\\n") == size // 8
        assert b"the end" in received
        assert received.splitlines()[-1].startswith(b'{"type":"execution_complete"')


def test_a_client_that_does_not_read_and_leaves_lets_the_command_go_on() -> None:
    with daemon(*SMALL) as running:
        with connection(running.port) as conn:
            conn.send(command("yes 0123456 | head -c 60000000"))
            command_id = dict(conn.head()[1])["x-execd-command-id"]
            wait_until(lambda: written(running, command_id) > 100_000, what="output")
        assert running.wait_ended(command_id, 30)["exit_code"] == 0
        assert kept_of(running, command_id)[1] > 0


def has_written(running: Daemon, command_id: str, size: int) -> bool:
    return written(running, command_id) == size


def written(running: Daemon, command_id: str) -> int:
    """The bytes that a command has written to stdout so far, as its status says."""
    return int(running.status(command_id)["output"]["stdout_bytes"])
