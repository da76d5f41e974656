"""Kept output on disk: nobody but the daemon can read it, and no link in its place is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.support import NOBODY, needs_root, open_directory
from tests.support.live import Daemon, daemon, text, wait_until

BIG = "head -c 3000000 /dev/zero | tr '\\0' a; echo 'the end'"


@pytest.fixture(scope="module")
def keeping() -> Iterator[Daemon]:
    """A daemon that moves output to disk early, and whose files others could reach."""
    with open_directory(mode=0o777) as directory:
        with daemon("--output-memory", "128KiB", state=directory / "state") as running:
            yield running


def kept(running: Daemon, command: str = BIG, **fields: Any) -> tuple[str, Path]:
    """A finished command whose output is on disk, and the file that has it."""
    command_id = running.background(command, **fields)
    running.wait_ended(command_id)
    file = running.state / f"{command_id}.out"
    wait_until(file.exists, what="the file")
    return command_id, file


def test_every_file_is_0600_in_a_directory_that_is_0700(keeping: Daemon) -> None:
    kept(keeping)
    assert stat.S_IMODE(keeping.state.stat().st_mode) == 0o700
    files = list(keeping.state.iterdir())
    assert len(files) >= 2  # the output and the lock
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_uid == os.geteuid()


def test_the_modes_do_not_depend_on_the_umask() -> None:
    with open_directory() as directory:
        wrapper = ("sh", "-c", 'umask 000; exec "$@"', "sh")
        flags = ("--output-memory", "128KiB")
        with daemon(*flags, wrapper=wrapper, state=directory / "a" / "state") as running:
            kept(running)
            assert stat.S_IMODE(running.state.stat().st_mode) == 0o700
            assert {stat.S_IMODE(file.stat().st_mode) for file in running.state.iterdir()} == {0o600}
            # what a command makes is its own affair
            assert text(running.run("umask")) == "0000\n"


def test_a_state_directory_that_others_could_enter_is_closed() -> None:
    with open_directory() as directory:
        (directory / "state").mkdir(mode=0o755)
        with daemon(state=directory / "state") as running:
            assert stat.S_IMODE(running.state.stat().st_mode) == 0o700


@needs_root
def test_another_user_can_keep_output_but_not_read_any(keeping: Daemon) -> None:
    command_id, file = kept(keeping, BIG, uid=NOBODY)
    assert keeping.logs(command_id).endswith(b"the end\n")
    events = keeping.run(f"cat {file}; ls {keeping.state}", uid=NOBODY)
    assert text(events) == ""
    assert text(events, "stderr").count("Permission denied") == 2


@needs_root
def test_a_state_directory_of_another_user_is_not_used() -> None:
    with open_directory() as directory:
        (directory / "state").mkdir()
        os.chown(directory / "state", NOBODY, NOBODY)
        with daemon(state=directory / "state") as running:
            assert text(running.run("echo hi")) == "hi\n"
            check = running.client.get("/readyz").json()["details"]["checks"]["state_directory"]
            assert check["ok"] is False
            assert "belongs to another user" in check["detail"]
            assert not list((directory / "state").iterdir())


@pytest.mark.parametrize("link", ["symlink", "dangling"])
def test_a_link_in_place_of_the_state_directory_is_not_followed(link: str) -> None:
    with open_directory() as directory:
        target = directory / "target"
        if link == "symlink":
            target.mkdir()
        (directory / "state").symlink_to(target)
        with daemon(state=directory / "state") as running:
            assert text(running.run("echo hi")) == "hi\n"
            assert running.client.get("/readyz").status_code == 503
            assert link == "dangling" or not list(target.iterdir())
            assert target.exists() == (link == "symlink")


def test_a_link_in_place_of_kept_output_is_not_read(keeping: Daemon) -> None:
    command_id, file = kept(keeping)
    with open_directory() as directory:
        secret = directory / "secret"
        secret.write_text("secret " * 500_000)
        file.unlink()
        file.symlink_to(secret)
        answer = keeping.client.get(f"/command/{command_id}/logs")
        assert answer.status_code == 200
        assert b"secret" not in keeping.logs(command_id)
        assert int(answer.headers["X-Execd-Dropped-Bytes"]) > 0
        assert "lost on disk" in keeping.status(command_id)["output"]["fault"]
        assert len(secret.read_text()) == 3_500_000


def test_a_link_in_place_of_output_to_be_kept_is_not_written(keeping: Daemon) -> None:
    with open_directory() as directory:
        target = directory / "target"
        target.write_text("untouched")
        waiting = keeping.background(f"until [ -e {directory}/go ]; do sleep 0.02; done; {BIG}")
        (keeping.state / f"{waiting}.out").symlink_to(target)
        (directory / "go").touch()
        keeping.wait_ended(waiting)
        assert target.read_text() == "untouched"
        assert keeping.logs(waiting).endswith(b"the end\n")  # what memory holds is still there
        assert keeping.status(waiting)["output"]["fault"]


def test_kept_output_that_was_cut_short_is_said_to_be_lost(keeping: Daemon) -> None:
    command_id, file = kept(keeping)
    os.truncate(file, 1_000)
    keeping.logs(command_id)
    assert "lost on disk" in keeping.status(command_id)["output"]["fault"]
    assert text(keeping.run("echo hi")) == "hi\n"


def test_the_lock_is_not_opened_through_a_link() -> None:
    with open_directory() as directory:
        (directory / "state").mkdir(mode=0o700)
        (directory / "state" / "lock").symlink_to(directory / "elsewhere")
        with daemon(state=directory / "state") as running:
            assert text(running.run("echo hi")) == "hi\n"
            assert not (directory / "elsewhere").exists()
