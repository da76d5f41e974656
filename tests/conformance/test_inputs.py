"""What a command gets to see: directory, variables, identity, as the SDK sends them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxApiException

from tests.support.sdk import Sdk

NOBODY = 65534
VALUES = {
    "plain": "value",
    "empty": "",
    "blanks": "  two  words  ",
    "dollar": "$HOME ${PATH} $$ $(id) $5",
    "backticks": "`id`",
    "double-quotes": '"quoted" and "',
    "single-quotes": "it's 'quoted'",
    "both-quotes": """'"'"'""",
    "backslashes": r"C:\new\table \\ \" \' \$ end\\",
    "backslashes-and-quote": r"it's C:\new\table \\ \" end\\",
    "newlines": "one\ntwo\n\nthree",
    "newlines-and-quote": "it's one\n\ttwo\r\nthree",
    "line-that-looks-like-another": "x\nINJECTED='yes'\n",
    "hash-and-equals": "# a=b # c",
    "unicode": "ünïcödé 漢字 🌍 \u2028",
    "json": '{"a": ["b\\n", null], "c": "$d"}',
}


def test_a_command_runs_in_the_directory_it_was_given(sdk: Sdk, tmp_path: Path) -> None:
    directory = tmp_path / "with blank ünd $dollar"
    directory.mkdir()
    assert sdk.run("pwd -P", working_directory=str(tmp_path)).text == str(tmp_path.resolve())
    # an undefined variable is refused, so a dollar sign is written as one that is defined
    spelled = str(directory).replace("$dollar", "${D}")
    shown = sdk.run(["pwd", "-P"], working_directory=spelled, envs={"D": "$dollar"})
    assert shown.text == str(directory.resolve())


def test_a_command_sees_its_variables_whatever_they_hold(sdk: Sdk) -> None:
    envs = {f"CASE_{number}": value for number, value in enumerate(VALUES.values())}
    execution = sdk.run(["env", "-0"], envs=envs)
    shown = dict(
        entry.split("=", 1) for entry in "".join(m.text for m in execution.logs.stdout).split("\0") if entry
    )
    if sdk.line_endings == "keep":
        assert {name: shown[name] for name in envs} == envs
    else:  # where lines end is not told in this mode
        assert shown["CASE_0"] == "value"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_variable_set_for_good_is_seen_by_the_next_command(keep_sdk: Sdk, value: str) -> None:
    keep_sdk.set_env("KEPT", value)
    shown = keep_sdk.run('printf "%s" "$KEPT" | od -An -v -tx1; echo "${INJECTED-none}"')
    *dump, injected = shown.text.splitlines()
    assert bytes.fromhex("".join(dump)).decode() == value
    assert injected == "none"


def test_a_request_s_own_variable_wins_over_one_set_for_good(sdk: Sdk) -> None:
    sdk.set_env("PRECEDENCE", "overwritten")
    sdk.set_env("PRECEDENCE", "file")
    assert sdk.run("echo $PRECEDENCE").text == "file"
    assert sdk.run("echo $PRECEDENCE", envs={"PRECEDENCE": "request"}).text == "request"


def test_a_command_runs_as_the_user_it_was_given(sdk: Sdk) -> None:
    if os.geteuid() == 0:
        shown = sdk.run("id -u; id -g; echo $HOME", uid=NOBODY, gid=12345)
        assert shown.text.splitlines()[:2] == [str(NOBODY), "12345"]
        assert sdk.run(["id", "-u"], uid=1234567).text == "1234567"
    else:
        with pytest.raises(SandboxApiException) as refusal:
            sdk.run("id -u", uid=NOBODY)
        assert refusal.value.error.code == "IDENTITY_NOT_PERMITTED"
    assert sdk.run("id -u", uid=os.geteuid()).text == str(os.geteuid())
