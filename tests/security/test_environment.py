"""The environment of a command: who wins, what is left out, and the file that is read for each command."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.security.support import needs_root
from tests.support.live import Daemon, daemon, text


def environment(running: Daemon, **fields: Any) -> dict[str, str]:
    """The environment that a program gets, without a shell between."""
    shown = text(running.run(argv=["env", "-0"], **fields)).rstrip("\0")
    return dict(entry.split("=", 1) for entry in shown.split("\0"))


def test_request_over_file_over_daemon(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    file.write_text("FILE=file\nBOTH=file\nALL=file\n")
    env = {"EXECD_ENVS": str(file), "DAEMON": "daemon", "BOTH": "daemon", "ALL": "daemon"}
    with daemon(env=env) as running:
        seen = environment(running, envs={"ALL": "request", "REQUEST": "request"})
        expected = {
            "DAEMON": "daemon",
            "FILE": "file",
            "BOTH": "file",
            "ALL": "request",
            "REQUEST": "request",
        }
        assert {name: seen[name] for name in expected} == expected
        assert "REQUEST" not in environment(running)
        assert environment(running)["ALL"] == "file"


def test_the_file_is_read_for_every_command(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    with daemon(env={"EXECD_ENVS": str(file)}) as running:
        assert "K" not in environment(running)  # missing is fine
        for value in ("1", "2", "3"):
            file.write_text(f"K={value}\n")
            assert environment(running)["K"] == value
        file.unlink()
        assert "K" not in environment(running)
        running.run("echo K=appended >> $EXECD_ENVS")  # as SDKs do
        assert environment(running)["K"] == "appended"


def test_the_flag_names_the_file_too_and_children_learn_its_name(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    file.write_text("K=1\n")
    with daemon("--envs", str(file)) as running:
        assert environment(running)["K"] == "1"
        assert environment(running)["EXECD_ENVS"] == str(file)


def test_what_is_private_to_the_daemon_is_left_out_and_cannot_come_by_the_file(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    private = ["EXECD_LOG_LEVEL", "EXECD_KILL_GRACE", "JUPYTER_TOKEN", "JUPYTER_HOST"]
    values = {
        "EXECD_LOG_LEVEL": "7",
        "EXECD_KILL_GRACE": "1s",
        "JUPYTER_TOKEN": "t",
        "JUPYTER_HOST": "http://h",
    }
    file.write_text(
        "".join(f"{name}=file\n" for name in [*private, "EXECD_ACCESS_TOKEN", "EXECD_ANY"]) + "K=1\n"
    )
    with daemon(env={**values, "EXECD_UNKNOWN": "x", "EXECD_ENVS": str(file)}) as running:
        seen = environment(running)
        assert seen["K"] == "1"
        assert seen["EXECD_ENVS"] == str(file)
        ours = {name for name in seen if name.startswith(("EXECD_", "JUPYTER_"))}
        assert ours == {"EXECD_ENVS", "EXECD_EXECUTION_ID"}


def test_the_file_cannot_take_the_mark_that_finds_what_a_command_started(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    file.write_text("EXECD_EXECUTION_ID=forged\n")
    with daemon(env={"EXECD_ENVS": str(file), "EXECD_EXECUTION_ID": "forged"}) as running:
        events = running.run("echo $EXECD_EXECUTION_ID", envs={"EXECD_EXECUTION_ID": "forged"})
        assert text(events).strip() == events[0]["text"]


def test_a_file_that_is_none_is_as_good_as_empty(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    with daemon(env={"EXECD_ENVS": str(file)}) as running:
        os.mkfifo(file)
        assert "K" not in environment(running)
        file.unlink()
        file.mkdir()
        assert "K" not in environment(running)
        file.rmdir()
        for elsewhere in ("/dev/zero", "/nowhere", str(file), "/proc/self/mem"):
            file.symlink_to(elsewhere)
            assert "K" not in environment(running)
            file.unlink()


def test_a_file_with_anything_in_it_sets_what_can_be_read_of_it(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    with daemon(env={"EXECD_ENVS": str(file)}) as running:
        file.write_text("K=huge\n" + "# filler\n" * 500_000)  # only its beginning is used
        assert environment(running)["K"] == "huge"
        file.write_bytes(b"K=binary\n\xff\xfe=x\nN=a\0b\n\0\0\0=\nU=\xff\n'\n\"\nL=last")
        seen = environment(running)
        assert (seen["K"], seen["L"]) == ("binary", "last")
        assert "N" not in seen


@needs_root
def test_a_file_that_the_daemon_may_not_read_is_as_good_as_empty(tmp_path: Path) -> None:
    from tests.security.support import unprivileged

    file = tmp_path / "envs"
    file.write_text("K=1\n")
    file.chmod(0o600)
    with unprivileged("--envs", str(file)) as running:
        assert text(running.run("echo ${K:-none}")) == "none\n"


def test_our_own_interpreter_is_kept_out_and_the_python_of_the_image_is_not() -> None:
    ours = os.path.join(sys.prefix, "bin")
    env = {
        "PYTHONPATH": "/image/lib",
        "PYTHONUNBUFFERED": "1",
        "VIRTUAL_ENV": sys.prefix,
        "PATH": f"{ours}:{os.environ['PATH']}",
    }
    with daemon(env=env) as running:
        seen = environment(running)
        assert (seen["PYTHONPATH"], seen["PYTHONUNBUFFERED"]) == ("/image/lib", "1")
        assert "VIRTUAL_ENV" not in seen
        assert ours not in seen["PATH"].split(":")
        assert set(os.environ["PATH"].split(":")) - {ours} <= set(seen["PATH"].split(":"))


def test_an_environment_of_the_image_is_not_taken_for_ours() -> None:
    with daemon(
        env={"VIRTUAL_ENV": "/image/venv", "PATH": f"/image/venv/bin:{os.environ['PATH']}"}
    ) as running:
        seen = environment(running)
        assert seen["VIRTUAL_ENV"] == "/image/venv"
        assert seen["PATH"].split(":")[0] == "/image/venv/bin"


def test_a_daemon_that_was_started_without_path_has_one_for_commands() -> None:
    with daemon(env={"PATH": None}) as running:
        assert text(running.run("ls / | grep -c proc")) == "1\n"


@pytest.mark.parametrize("by", ["daemon", "file"])
def test_no_startup_file_of_a_shell_runs(tmp_path: Path, by: str) -> None:
    startup = tmp_path / "startup"
    startup.write_text("echo from startup; exit 9\n")
    for name in (".bash_profile", ".bash_login", ".profile", ".bashrc", ".shrc", ".bash_logout"):
        (tmp_path / name).write_text("echo from profile; exit 9\n")
    file = tmp_path / "envs"
    lines = {"BASH_ENV": str(startup), "ENV": str(startup), "HOME": str(tmp_path)}
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()) if by == "file" else "")
    env = {"EXECD_ENVS": str(file), **(lines if by == "daemon" else {})}
    with daemon(env=env) as running:
        events = running.run("echo $HOME; exit 3")
        assert text(events) == f"{tmp_path}\n"
        assert events[-1]["error"]["evalue"] == "3"
        assert text(running.run("shopt -q login_shell || echo no login; case $- in *i*) echo i;; esac")) in (
            "no login\n",
            "",
        )


def test_fifty_commands_at_once_keep_their_environments_apart(live: Daemon) -> None:
    def one(number: int) -> str:
        return text(live.run("sleep 0.1; echo $K $ONLY", envs={"K": str(number), f"K{number}": "x"}))

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(one, range(50))) == [f"{number}\n" for number in range(50)]
    assert text(live.run("echo ${K:-none}")) == "none\n"


@pytest.mark.parametrize("name", ["", "A=B", "A\0", "="])
def test_what_cannot_be_a_name_is_refused(live: Daemon, name: str) -> None:
    answer = live.client.post("/command", json={"command": "true", "envs": {name: "x"}})
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"


@pytest.mark.parametrize(
    "value", ["", " a  b ", "line\nline", "$HOME `id` $(id) \\ ' \"", "ünï ✓", "x" * 100_000]
)
def test_a_value_arrives_as_it_was_sent(live: Daemon, value: str) -> None:
    assert environment(live, envs={"V": value, "odd name-1": value})["V"] == value
    assert text(live.run('printf %s "$V"', envs={"V": value})) == value
