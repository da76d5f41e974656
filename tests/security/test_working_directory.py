"""`cwd`: variables, `~`, relative paths; and what is wrong with it is said before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.support import NOBODY, needs_root, open_directory, unprivileged
from tests.support.live import ROOT, Daemon, daemon, text


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with open_directory() as directory:
        (directory / "with space" / "deep").mkdir(parents=True)
        (directory / "file").write_text("")
        yield directory


def where(running: Daemon, **fields: Any) -> str:
    """The directory that a program starts in, as the kernel has it."""
    return text(running.run(argv=["readlink", "/proc/self/cwd"], **fields)).rstrip("\n")


def test_variables_of_the_request_the_file_and_the_daemon_are_expanded(place: Path) -> None:
    (place / "envs").write_text(f"IN_FILE={place}\n")
    with daemon(env={"EXECD_ENVS": f"{place}/envs", "IN_DAEMON": str(place)}) as running:
        assert where(running, cwd="$IN_FILE/with space") == f"{place}/with space"
        assert where(running, cwd="${IN_DAEMON}") == str(place)
        assert where(running, cwd="$D/${S}/deep", envs={"D": str(place), "S": "with space"}).endswith("/deep")
        assert where(running, cwd="$IN_DAEMON", envs={"IN_DAEMON": "/"}) == "/"


def test_tilde_is_the_home_that_the_command_has(live: Daemon, place: Path) -> None:
    envs = {"HOME": str(place)}
    assert where(live, cwd="~", envs=envs) == str(place)
    assert where(live, cwd="~/with space/deep", envs=envs) == f"{place}/with space/deep"
    assert where(live, cwd="~\\with space", envs=envs) == f"{place}/with space"


@needs_root
def test_tilde_of_another_user_is_their_home(live: Daemon) -> None:
    assert where(live, cwd="~", uid=54_321) == "/"  # what a uid without an entry has


def test_a_relative_path_begins_where_the_daemon_is(live: Daemon) -> None:
    assert where(live) == str(ROOT)
    assert where(live, cwd="tests") == str(ROOT / "tests")
    assert where(live, cwd="./tests/..") == str(ROOT)
    assert where(live, cwd="") == str(ROOT)


def test_the_shell_says_the_same_as_the_kernel(live: Daemon, place: Path) -> None:
    (place / "link").symlink_to("with space")
    assert text(live.run("echo $PWD; pwd; pwd -P", cwd=f"{place}/link")).splitlines() == [
        f"{place}/link",
        f"{place}/link",
        f"{place}/with space",
    ]


def test_all_of_a_command_runs_there(live: Daemon, place: Path) -> None:
    assert text(live.run("true & wait; pwd; (pwd); sh -c pwd", cwd=str(place))) == f"{place}\n" * 3


def test_a_program_named_by_a_relative_path_is_looked_for_there(live: Daemon, place: Path) -> None:
    program = place / "program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert text(live.run(argv=["./program"], cwd=str(place))) == "found\n"


@pytest.mark.parametrize(
    ("cwd", "says"),
    [
        pytest.param("/nope/x", "No such file or directory", id="missing"),
        pytest.param("{place}/file", "Not a directory", id="file"),
        pytest.param("{place}/file/x", "Not a directory", id="below-a-file"),
        pytest.param("{place}/" + "x" * 300, "File name too long", id="too-long"),
        pytest.param("$NOT_SET/$NOR_THIS/x", "NOT_SET,NOR_THIS", id="undefined"),
        pytest.param("${NOT_SET}", "NOT_SET", id="undefined-in-braces"),
        pytest.param("a\0b", "NUL", id="nul"),
        pytest.param("~nobody", "No such file or directory", id="home-of-another"),
    ],
)
@pytest.mark.parametrize("background", [False, True])
def test_what_is_wrong_is_found_before_anything_runs(
    live: Daemon, place: Path, tmp_path: Path, cwd: str, says: str, background: bool
) -> None:
    body = {"command": f"true; touch {tmp_path}/ran", "cwd": cwd.format(place=place) if "{p" in cwd else cwd}
    before = live.usage()["records"]
    answer = live.client.post("/command", json={**body, "background": background})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()
    assert error["code"] == "INVALID_REQUEST_BODY"
    assert error["executed"] == "not_executed"
    assert error["details"]["field"] == "cwd"
    assert says in error["message"]
    live.run("true")
    assert not list(tmp_path.iterdir())
    assert live.usage()["records"] <= before + 1  # only the one of `true`


def test_without_a_home_tilde_is_undefined() -> None:
    with daemon(env={"HOME": None}) as running:
        answer = running.client.post("/command", json={"command": "pwd", "cwd": "~/x"})
        assert answer.json()["details"] == {"field": "cwd", "undefined": ["HOME"]}


@needs_root
def test_a_directory_that_a_daemon_without_root_may_not_enter_is_refused() -> None:
    with unprivileged() as running, open_directory() as directory:
        (directory / "closed").mkdir(mode=0o700)
        answer = running.client.post("/command", json={"command": "true", "cwd": f"{directory}/closed"})
        assert answer.status_code == 400
        assert "Permission denied" in answer.json()["message"]
        os.chown(directory / "closed", NOBODY, NOBODY)
        assert where(running, cwd=f"{directory}/closed") == f"{directory}/closed"


@needs_root
def test_a_directory_that_may_be_entered_but_not_listed_is_fine(live: Daemon) -> None:
    with open_directory() as directory:
        (directory / "dark").mkdir()
        (directory / "dark").chmod(0o711)
        assert text(live.run("cd . && echo in", cwd=f"{directory}/dark", uid=NOBODY)) == "in\n"


def test_a_directory_that_is_gone_is_said_to_be(live: Daemon, place: Path) -> None:
    (place / "short-lived").mkdir()
    assert where(live, cwd=f"{place}/short-lived") == f"{place}/short-lived"
    (place / "short-lived").rmdir()
    answer = live.client.post("/command", json={"command": "true", "cwd": f"{place}/short-lived"})
    assert answer.status_code == 400
