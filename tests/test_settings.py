"""Flags and variables: every one, every kind of value, and what is said of a wrong one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from execd import __version__, values
from execd.options import HelpRequested, SettingError, VersionRequested, from_sources, help_text
from execd.settings import Settings
from tests.support.live import ROOT

SPECS = {spec.metadata["flag"]: spec for spec in fields(Settings)}
GOOD: dict[str, tuple[str, object]] = {
    "host": ("127.0.0.1", "127.0.0.1"),
    "port": ("8080", 8080),
    "access-token": ("t0ken", "t0ken"),
    "envs": ("/x/envs", "/x/envs"),
    "log-file": ("/x/log", "/x/log"),
    "log-level": ("warning", 4),
    "state-dir": ("/x/state", "/x/state"),
    "line-endings": ("strip", "strip"),
    "graceful-shutdown-timeout": ("3s", 3.0),
    "kill-grace": ("1m", 60.0),
    "max-executions": ("7", 7),
    "max-requests": ("80", 80),
    "max-body": ("1MiB", 1024**2),
    "output-memory": ("256KiB", 256 * 1024),
    "output-disk": ("0", 0),
    "output-total": ("2GiB", 2 * 1024**3),
    "min-free-disk": ("10", 10),
    "retention": ("1h30m", 5400.0),
    "max-records": ("9", 9),
    "event-text": ("1024", 1024),
    "ping-interval": ("500ms", 0.5),
    "drain-quiet": ("10ms", 0.01),
    "drain-timeout": ("2s", 2.0),
    "keep-alive": ("90s", 90.0),
    "roots": ("/a:/b", "/a:/b"),
    "list-limit": ("5", 5),
    "list-ceiling": ("50", 50),
    "list-timeout": ("2s", 2.0),
    "list-depth": ("3", 3),
    "jupyter-host": ("http://127.0.0.1:44771", "http://127.0.0.1:44771"),
    "jupyter-token": ("t0ken", "t0ken"),
    "jupyter-idle-poll-interval": ("100ms", 0.1),
}
BAD = {
    "port": ["-1", "65536", "x", "", "1.5", "0x10", "80 "],
    "log-level": ["loud", "-1", ""],
    "line-endings": ["STRIP", "", "lf"],
    "graceful-shutdown-timeout": ["3", "s", "-1s", "1 s", "1d", "2h", "1e3s", ""],
    "kill-grace": ["301s"],
    "max-executions": ["0", "100001"],
    "max-requests": ["7"],
    "max-body": ["1023", "2GiB", "1.5MiB", "1MB", "MiB"],
    "output-memory": ["127KiB"],
    "output-disk": ["-1"],
    "output-total": ["1TiB"],
    "min-free-disk": ["100", "5%"],
    "retention": ["1y"],
    "max-records": ["0"],
    "event-text": ["63", "2MiB"],
    "ping-interval": ["49ms", "0"],
    "drain-quiet": ["61s"],
    "drain-timeout": ["61s"],
    "keep-alive": ["999ms"],
    "access-token": ["a\tb", "a\nb"],
    "roots": ["a", "/a:b"],
    "list-limit": ["0", "100001"],
    "list-ceiling": ["0"],
    "list-timeout": ["0"],
    "list-depth": ["0", "1001"],
    "jupyter-host": ["127.0.0.1:44771", "ftp://x"],
    "jupyter-idle-poll-interval": ["-1s"],
}


def value(settings: Settings, flag: str) -> object:
    return getattr(settings, SPECS[flag].name)


def test_every_setting_is_tried_here() -> None:
    assert set(GOOD) == set(SPECS)
    assert set(BAD) == {flag for flag, spec in SPECS.items() if spec.metadata["parse"] is not values.text}


@pytest.mark.parametrize("flag", GOOD)
def test_it_comes_from_its_flag_in_every_form_and_from_its_variable(flag: str) -> None:
    text, meant = GOOD[flag]
    variable = SPECS[flag].metadata["env"]
    for argv in ([f"--{flag}", text], [f"-{flag}", text], [f"--{flag}={text}"], [f"-{flag}={text}"]):
        assert value(from_sources(argv, {}), flag) == meant
    assert value(from_sources([], {variable: text}), flag) == meant
    assert from_sources([], {variable: ""}) == Settings()


@pytest.mark.parametrize(("flag", "text"), [(flag, text) for flag, texts in BAD.items() for text in texts])
def test_a_wrong_value_is_one_line_with_flag_value_and_what_is_allowed(flag: str, text: str) -> None:
    variable = SPECS[flag].metadata["env"]
    sources: list[tuple[str, list[str], dict[str, str]]] = [(f"--{flag}", [f"--{flag}={text}"], {})]
    if text:
        sources.append((variable, [], {variable: text}))
    for name, argv, environ in sources:
        with pytest.raises(SettingError) as refused:
            from_sources(argv, environ)
        message = str(refused.value)
        shown = "(hidden)" if SPECS[flag].metadata["secret"] else repr(text)
        assert message.startswith(f"{name} is {shown}, allowed is ")
        assert len(message) > len(f"{name} is {shown}, allowed is ") + 5
        assert "\n" not in message


def test_a_flag_wins_over_a_variable_and_the_last_flag_over_the_first() -> None:
    environ = {"OPENSANDBOX_EXECD_PORT": "1"}
    assert from_sources([], environ).port == 1
    assert from_sources(["--port", "2"], environ).port == 2
    assert from_sources(["--port", "2", "-port=3"], environ).port == 3


@pytest.mark.parametrize(
    "argv",
    [
        ["tail", "-f", "/dev/null"],
        ["--", "--port", "x"],
        ["-", "--port", "x"],
        ["", "--no-such-flag"],
        ["bash"],
    ],
)
def test_the_first_argument_that_is_no_flag_ends_them(argv: list[str]) -> None:
    assert from_sources(["--port", "5", *argv], {}).port == 5


@pytest.mark.parametrize(
    "argv", [["--no-such"], ["--no-such=1"], ["-p", "1"], ["--Port=1"], ["--port2", "1"]]
)
def test_an_unknown_flag_is_named(argv: list[str]) -> None:
    with pytest.raises(SettingError, match="unknown flag") as refused:
        from_sources(argv, {})
    assert argv[0].split("=")[0].lstrip("-") in str(refused.value)


def test_an_unknown_flag_is_one_line_whatever_is_in_it_and_its_value_is_not_shown() -> None:
    with pytest.raises(SettingError) as refused:
        from_sources(["--acess-token\n\x1b[2J=s3cret"], {})
    assert str(refused.value).isprintable()
    assert "s3cret" not in str(refused.value)


def test_a_flag_without_its_value_is_named() -> None:
    with pytest.raises(SettingError, match="flag --port needs a value"):
        from_sources(["--host", "::", "--port"], {})


@pytest.mark.parametrize("flag", [flag for flag, spec in SPECS.items() if spec.metadata["secret"]])
def test_a_secret_is_never_shown(flag: str) -> None:
    secret = "s3cret\0"
    with pytest.raises(SettingError, match="hidden") as refused:
        from_sources([f"--{flag}", secret], {})
    assert "s3cret" not in str(refused.value)
    assert from_sources([f"--{flag}", "s3cret"], {}).secrets == ["s3cret"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("300ms", 0.3),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1h30m", 5400),
        ("2m3s", 123),
        ("1h0.5s", 3600.5),
        ("100us", 1e-4),
        ("100µs", 1e-4),
        ("100μs", 1e-4),
        ("5ns", 5e-9),
        ("1s1s", 2),
    ],
)
def test_durations_are_written_as_in_go(text: str, seconds: float) -> None:
    assert values.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "level"), [("0", 0), ("7", 7), ("99", 7), ("DEBUG", 7), ("info", 6), ("Error", 3)]
)
def test_log_levels_have_numbers_and_names(text: str, level: int) -> None:
    assert values.log_level(text) == level


def test_settings_cannot_be_changed_and_know_their_state_directory() -> None:
    settings = from_sources(["--port=0"], {})
    with pytest.raises(FrozenInstanceError):
        settings.port = 1  # type: ignore[misc]
    assert settings.state_path.endswith(f"/execd-{os.geteuid()}-0")
    assert from_sources(["--state-dir=/x"], {}).state_path == "/x"
    assert Settings().secrets == []


@pytest.mark.parametrize("flag", ["-h", "--help", "-help", "--h"])
def test_help_is_asked_for_in_any_form(flag: str) -> None:
    with pytest.raises(HelpRequested):
        from_sources([flag, "--port=x"], {})
    with pytest.raises(VersionRequested):
        from_sources(["-version"], {})


def test_help_names_every_setting_its_variable_and_its_default_with_a_unit() -> None:
    shown = help_text()
    for flag, spec in SPECS.items():
        metadata: Any = spec.metadata
        entry = re.search(
            rf"^  --{flag}  \({metadata['env']}\)\n        (.+) \(default (.+)\)$", shown, re.MULTILINE
        )
        assert entry is not None, flag
        assert entry[1] == metadata["help"]
        default = entry[2]
        assert metadata["parse"]("" if default == "empty" else default) == spec.default
        if "duration" in metadata["parse"].__qualname__:
            assert re.fullmatch(r"[\d.]+(ms|s|m|h)", default), flag
        if "size" in metadata["parse"].__qualname__:
            assert re.fullmatch(r"\d+[KMG]iB", default), flag
    assert max(map(len, shown.splitlines())) <= 120


def run(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("EXECD_")} | environ
    command = [sys.executable, "-m", "execd", *argv]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30, check=False)


def test_from_the_command_line() -> None:
    asked = run("--help")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, help_text() + "\n", "")
    asked = run("--version")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, f"execd {__version__}\n", "")
    wrong = run("--access-token=s3cret", "--port", "many")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "execd: --port is 'many', allowed is a whole number from 0 to 65535\n"
    wrong = run(EXECD_KILL_GRACE="soon", EXECD_ACCESS_TOKEN="s3cret")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("execd: EXECD_KILL_GRACE is 'soon', allowed is ")
    assert (wrong.stderr.count("\n"), "s3cret" in wrong.stderr) == (1, False)
