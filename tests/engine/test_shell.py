"""What a command finds when it starts: its shell, stdin, directory, environment, arguments."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.following import parallel
from tests.support.live import Daemon, text

_MASKS = ("SigBlk", "SigIgn", "SigCgt")


@pytest.mark.parametrize("background", [False, True])
def test_stdin_is_empty(live: Daemon, background: bool) -> None:
    command = "cat; read x; echo rc=$?; readlink /proc/self/fd/0"
    if background:
        identity = live.background(command)
        live.wait_ended(identity)
        output = live.logs(identity).decode()
    else:
        output = text(live.run(command))
    assert output == "rc=1\n/dev/null\n"


def test_no_profile_or_rc_file_is_run(live: Daemon, tmp_path: Path) -> None:
    for name in (".bash_profile", ".profile", ".bashrc", ".bash_login"):
        (tmp_path / name).write_text("exit 0\n")
    (tmp_path / "env").write_text("exit 0\n")
    events = live.run("echo hi; exit 3", envs={"HOME": str(tmp_path)})
    assert (text(events), events[-1]["error"]["evalue"]) == ("hi\n", "3")


def test_the_whole_command_runs_in_cwd(live: Daemon, tmp_path: Path) -> None:
    events = live.run("true & wait; pwd; (pwd) & wait; echo $PWD", cwd=str(tmp_path))
    assert text(events) == f"{tmp_path}\n" * 3


def test_cwd_knows_home_and_variables_of_the_request(live: Daemon, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for cwd in ("$W/sub", "${W}/sub", "~/sub"):
        events = live.run("pwd", cwd=cwd, envs={"W": str(tmp_path), "HOME": str(tmp_path)})
        assert text(events) == f"{tmp_path}/sub\n"


@pytest.mark.parametrize("kind", ["missing", "file", "undefined variable"])
@pytest.mark.parametrize("background", [False, True])
def test_a_wrong_cwd_is_a_json_error_and_nothing_runs(
    live: Daemon, tmp_path: Path, kind: str, background: bool
) -> None:
    (tmp_path / "file").touch()
    cwd = {"missing": "/nope", "file": str(tmp_path / "file"), "undefined variable": "$NO_SUCH_ZZ/x"}[kind]
    command = f"true; touch {tmp_path}/leak"
    answer = live.client.post("/command", json={"command": command, "cwd": cwd, "background": background})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    assert answer.json()["details"]["field"] == "cwd"
    assert answer.json()["executed"] == "not_executed"
    assert not (tmp_path / "leak").exists()


def test_a_cwd_that_was_deleted_is_refused_and_a_later_one_works(live: Daemon, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    events = live.run(f"rmdir {gone}; echo still here", cwd=str(gone))
    assert text(events) == "still here\n"
    assert live.client.post("/command", json={"command": "true", "cwd": str(gone)}).status_code == 400
    assert live.run("true", cwd=str(tmp_path))[-1]["type"] == "execution_complete"


def test_variables_of_one_request_do_not_reach_another(live: Daemon) -> None:
    runs = parallel(lambda n: live.run("sleep .2; echo $K", envs={"K": str(n)}), range(50), 25)
    assert [text(events) for events in runs] == [f"{n}\n" for n in range(50)]
    assert text(live.run("echo ${K:-none}")) == "none\n"


def test_arguments_are_passed_as_they_are(live: Daemon) -> None:
    argv = ["printf", "%s|", "a b", "$HOME", "", "*", "'\"\n", "é"]
    assert text(live.run(argv=argv)) == "a b|$HOME||*|'\"\n|é|"


@pytest.mark.parametrize("size", [131_071, 131_072, 2_500_000])
def test_a_command_of_any_length_runs_as_a_short_one_does(live: Daemon, size: int) -> None:
    script = (
        "echo $0; cat <<'E'\na  b $HOME \\\nE\nread x; echo rc=$?; readlink /proc/self/fd/0\n"
        "f() { return 5; }; f; echo $?\nls /proc/self/fd | wc -l\ntrap 'echo bye' EXIT\nexit 42\n"
    )
    short = live.run(script)
    long = live.run(script.replace("\ntrap", "\n#" + "x" * (size - len(script) - 2) + "\ntrap"))
    assert text(short).startswith("bash\na  b $HOME \\\nrc=1\n/dev/null\n5\n")
    assert text(short).endswith("bye\n")
    assert text(long).splitlines()[:-2] == text(short).splitlines()[:-2]
    assert (text(long, "stderr"), long[-1]["error"]["evalue"]) == ("", "42")


def test_a_long_command_needs_nothing_from_its_own_path(live: Daemon) -> None:
    events = live.run("echo hi\n#" + "x" * 200_000 + "\nexit 3", envs={"PATH": "/nonexistent"})
    assert (text(events), text(events, "stderr")) == ("hi\n", "")
    assert events[-1]["error"]["evalue"] == "3"


def test_a_long_command_with_a_syntax_error_fails(live: Daemon) -> None:
    events = live.run("#" + "x" * 200_000 + "\nif")
    assert "syntax error" in text(events, "stderr")
    assert events[-1]["type"] == "error"


def test_commands_run_in_parallel(live: Daemon) -> None:
    started = time.monotonic()
    parallel(lambda _: live.run("sleep 1"), range(20), 20)
    assert time.monotonic() - started < 8  # one after the other: 20


def test_signals_are_at_their_defaults(live: Daemon) -> None:
    # glibc itself leaves its own two, 32 and 33, ignored.
    lines = text(live.run(argv=["cat", "/proc/self/status"])).splitlines()
    masks = {line[:6]: int(line.split()[1], 16) & ~(0b11 << 31) for line in lines if line[:6] in _MASKS}
    assert masks == dict.fromkeys(_MASKS, 0)


def test_only_the_three_standard_descriptors_are_inherited(live: Daemon) -> None:
    opened = text(live.run(argv=["ls", "/proc/self/fd"])).split()
    assert opened == ["0", "1", "2", "3"]  # 3: the directory that ls reads
