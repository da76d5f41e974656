"""What a command inherits from the daemon, and what is laid over it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from execd.posix import environment
from execd.posix.environment import Environments

PACKAGE_ROOT = str(Path(environment.__file__).parents[2])


def test_secrets_and_our_own_settings_stay_with_us() -> None:
    ours = ["EXECD_ACCESS_TOKEN", "EXECD_ANYTHING", "JUPYTER_TOKEN", "JUPYTER_HOST"]
    given = dict.fromkeys([*ours, "JUPYTER_PORT", "OPENSANDBOX_ID", "MY_EXECD_X"], "x") | {"PATH": "/bin"}
    assert environment.base(given) == {
        "JUPYTER_PORT": "x",
        "OPENSANDBOX_ID": "x",
        "MY_EXECD_X": "x",
        "PATH": "/bin",
    }


def test_what_makes_our_interpreter_run_stays_with_us() -> None:
    given = {
        "VIRTUAL_ENV": sys.prefix,
        "VIRTUAL_ENV_PROMPT": "x",
        "PATH": os.pathsep.join([os.path.join(sys.prefix, "bin"), "/usr/bin", "/bin"]),
        "PYTHONPATH": os.pathsep.join(["/theirs", PACKAGE_ROOT]),
        "PYTHONHOME": "/x",
        "PYTHONSTARTUP": "/theirs.py",
    }
    assert environment.base(given) == {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": "/theirs",
        "PYTHONSTARTUP": "/theirs.py",
    }


def test_a_virtual_environment_of_the_image_is_kept() -> None:
    given = {"VIRTUAL_ENV": "/app/venv", "PATH": "/app/venv/bin:/bin", "PYTHONPATH": PACKAGE_ROOT}
    assert environment.base(given) == {"VIRTUAL_ENV": "/app/venv", "PATH": "/app/venv/bin:/bin"}


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV"])
def test_no_shell_start_up_file_is_inherited_or_comes_from_the_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / "envs"
    file.write_text(f"{name}=/evil\n")
    merged = Environments({name: "/evil"}, str(file)).merged
    assert name not in merged({})
    assert merged({name: "/asked-for"})[name] == "/asked-for"


def test_there_is_always_a_path() -> None:
    assert environment.base({}) == {"PATH": os.defpath}


def test_request_over_file_over_daemon(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    file.write_text("B=file\nC=file\nD=$A\nEXECD_ACCESS_TOKEN=x\nJUPYTER_TOKEN=x\n")
    environments = Environments({"A": "daemon", "B": "daemon", "C": "daemon", "PATH": "/bin"}, str(file))
    assert environments.merged({"C": "request", "EXECD_ODD": "as asked"}) == {
        "A": "daemon",
        "B": "file",
        "C": "request",
        "D": "daemon",
        "PATH": "/bin",
        "EXECD_ENVS": str(file),
        "EXECD_ODD": "as asked",
    }


def test_a_change_of_the_file_counts_for_the_next_command_and_requests_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "envs"
    environments = Environments({"PATH": "/bin"}, str(file))
    plain = {"PATH": "/bin", "EXECD_ENVS": str(file)}
    assert environments.merged({"K": "mine"}) == plain | {"K": "mine"}
    assert environments.merged({}) == plain
    file.write_text("K=1")
    first = environments.merged({})
    first["K"] = "changed by its owner"
    assert environments.merged({}) == plain | {"K": "1"}
    file.write_text("K=2")
    assert environments.merged({})["K"] == "2"
    file.unlink()
    assert environments.merged({}) == plain


def test_without_a_file_its_variable_is_not_made_up() -> None:
    assert Environments({"PATH": "/bin"}, None).merged({}) == {"PATH": "/bin"}
