"""Kept output read by offset: the cursor's rules, whole characters, bounds, and what may not leak."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.following import parallel
from tests.support.live import Daemon, daemon, text, wait_until

CURSOR = "EXECD-COMMANDS-TAIL-CURSOR"


def _ended(own: Daemon, command: str) -> str:
    identity = own.background(command)
    own.wait_ended(identity, 30)
    wait_until(lambda: own.status(identity)["output"]["complete"], 10, "complete output")
    return identity


@pytest.mark.parametrize(
    ("cursor", "content", "then"),
    [
        (None, "0123456789", 10),
        ("0", "0123456789", 10),
        ("4", "456789", 10),
        ("10", "", 10),
        ("999999999", "", 10),
    ],
)
def test_a_cursor_gives_what_is_after_it_and_never_earlier_output(
    live: Daemon, cursor: str | None, content: str, then: int
) -> None:
    for identity in (_ended(live, "printf 0123456789"), live.run("printf 0123456789")[0]["text"]):
        answer = live.client.get(
            f"/command/{identity}/logs", params={} if cursor is None else {"cursor": cursor}
        )
        assert (answer.status_code, answer.text, answer.headers[CURSOR]) == (200, content, str(then))


@pytest.mark.parametrize("cursor", ["-1", "x", "1.5", "1e3", " "])
def test_a_cursor_that_is_no_offset_is_refused(live: Daemon, cursor: str) -> None:
    identity = live.run("true")[0]["text"]
    answer = live.client.get(f"/command/{identity}/logs", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_QUERY")


def test_an_unknown_command_is_404_on_every_route(live: Daemon) -> None:
    for answer in (
        live.client.get("/command/nope/logs"),
        live.client.get("/command/status/nope"),
        live.client.delete("/command", params={"id": "nope"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "COMMAND_NOT_FOUND")


def test_polling_gives_every_byte_once_and_whole_characters(live: Daemon) -> None:
    identity = live.background("for i in $(seq 500); do printf '\\344'; printf '\\275\\240'; done; sleep .2")
    pages: list[str] = []
    cursor, running = 0, True
    while running or pages[-1]:
        running = live.status(identity)["running"]
        answer = live.client.get(f"/command/{identity}/logs", params={"cursor": cursor})
        pages.append(answer.content.decode())
        cursor = int(answer.headers[CURSOR])
    assert "".join(pages) == "你" * 500


def test_output_beyond_the_limits_loses_its_oldest_part_and_the_command_runs_on() -> None:
    with daemon("--output-memory", "128KiB", "--output-disk", "1MiB") as own:
        identity = own.background("yes | head -c 20000000; echo; echo END; sleep 300")
        wait_until(lambda: own.logs(identity).endswith(b"\nEND\n"), 20, "the end of the output")
        kept = own.logs(identity)
        assert 1024 * 1024 - 40_000 <= len(kept) <= 1024 * 1024 + 256 * 1024
        status = own.status(identity)
        assert status["running"]
        assert status["output"]["stdout_bytes"] == 20_000_005
        assert status["output"]["stdout_dropped"] + len(kept) == 20_000_005
        answer = own.client.get(f"/command/{identity}/logs")
        assert int(answer.headers["X-Execd-Dropped-Bytes"]) == 20_000_005 - len(kept)
        assert sum(path.stat().st_size for path in own.state.glob("*.out")) <= 1024 * 1024
        own.client.delete("/command", params={"id": identity})


def test_a_page_is_true_to_its_offset_while_output_is_overwritten() -> None:
    # Every eight bytes say where they stand. Pages of the oldest output race with what is written over it.
    program = (
        "import os, time\nn = 0\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n"
        " data = b''.join(b'%07x\\n' % i for i in range(n, n + 8192)); n += 8192\n os.write(1, data)"
    )
    with daemon("--output-memory", "128KiB", "--output-disk", "512KiB") as own:
        identity = own.background(f"exec python3 -c '{program.replace(chr(39), chr(34))}'")
        seen = 0
        while own.status(identity)["running"]:
            answer = own.client.get(f"/command/{identity}/logs")
            start = int(answer.headers["X-Execd-Dropped-Bytes"])
            assert start % 8 == 0
            lines = answer.content.split(b"\n")[:-1]
            assert lines == [b"%07x" % (start // 8 + i) for i in range(len(lines))]
            seen += len(lines)
        assert seen > 0


def test_reading_the_output_of_finished_commands_keeps_no_descriptor() -> None:
    with daemon() as own:
        commands = [_ended(own, "head -c 300000 /dev/zero") for _ in range(20)]
        before = own.descriptors()
        parallel(own.logs, commands * 3, 8)
        wait_until(lambda: own.descriptors() <= before + 8, 5, "descriptors given back")  # 8: connections


def test_a_symlink_in_place_of_kept_output_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret" * 100_000)
    with daemon() as own:
        identity = _ended(own, "head -c 600000 /dev/zero; echo $EXECD_STATE_DIR")
        (kept,) = own.state.glob("*.out")
        kept.unlink()
        kept.symlink_to(secret)
        assert b"secret" not in own.logs(identity)
        assert "secret" not in str(own.status(identity)["output"]["fault"])
        assert secret.read_text() == "secret" * 100_000


def test_kept_output_is_for_the_daemons_user_alone() -> None:
    old = os.umask(0)
    try:
        with daemon() as own:
            _ended(own, "head -c 600000 /dev/zero")
            (kept,) = own.state.glob("*.out")
            assert (own.state.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
            reader = own.run(f"cat {kept}", uid=12345, gid=12345)
            assert "ermission denied" in text(reader, "stderr")
            writer = own.run("echo hi", uid=12345, gid=12345)
            assert text(writer) == "hi\n"
    finally:
        os.umask(old)


def test_output_that_nobody_could_keep_on_disk_stays_in_memory_and_says_why() -> None:
    with daemon("--state-dir", "/dev/null/state") as own:
        identity = _ended(own, "head -c 400000 /dev/zero")
        assert len(own.logs(identity)) == 400_000
        # All that finished commands keep in memory is bounded: the oldest goes.
        others = [_ended(own, "head -c 400000 /dev/zero") for _ in range(30)]
        assert len(own.logs(others[-1])) == 400_000
        assert own.logs(identity) == b""
        assert "/dev/null/state" in own.status(identity)["output"]["fault"]
        assert own.usage()["output_memory_bytes"] <= 9 * 1024 * 1024


def test_records_and_output_are_kept_in_bounded_number_and_running_ones_always() -> None:
    with daemon("--max-records", "5") as own:
        running = own.background("echo first; sleep 300")
        commands = [own.run(f"yes {n} | head -c 300000")[0]["text"] for n in range(12)]
        assert [own.client.get(f"/command/status/{c}").status_code for c in commands] == [404] * 7 + [200] * 5
        assert own.logs(running) == b"first\n"
        wait_until(lambda: len(list(own.state.glob("*.out"))) <= 5, 5, "forgotten output deleted")
        assert own.usage()["output_disk_bytes"] == sum(f.stat().st_size for f in own.state.glob("*.out"))


def test_records_expire() -> None:
    with daemon("--retention", "300ms") as own:
        identity = own.run("yes | head -c 300000")[0]["text"]
        assert own.client.get(f"/command/status/{identity}").status_code == 200
        wait_until(lambda: own.client.get(f"/command/status/{identity}").status_code == 404, 10, "expiry")
        wait_until(lambda: not list(own.state.glob("*.out")), 5, "its output deleted")
        assert (own.usage()["records"], own.usage()["output_disk_bytes"]) == (0, 0)
