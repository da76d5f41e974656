"""The env file, form by form; and that no file can harm the daemon that reads it."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from opensandbox.adapters.converter.env_entry import build_set_env_command

from execd.posix import envfile
from tests.support.apart import apart

BASE = {"HOME": "/root", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("A=1\nB=2", {"A": "1", "B": "2"}, id="lines"),
        pytest.param("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}, id="crlf"),
        pytest.param("A=1\nA=2\n", {"A": "2"}, id="the-later-line-wins"),
        pytest.param("export A=1\n  export\tB=2", {"A": "1", "B": "2"}, id="export"),
        pytest.param("# A=1\n\n  \n#\nB=2", {"B": "2"}, id="comments-and-empty-lines"),
        pytest.param("A =1\n=2\n1A=3\nA-B=4\njust text\nC=5", {"C": "5"}, id="what-is-no-assignment"),
        pytest.param("A=  a b \t\n", {"A": "a b"}, id="blanks-around-are-cut"),
        pytest.param("A=\xa0x\u3000", {"A": "\xa0x\u3000"}, id="other-spaces-stay"),
        pytest.param("A=\nB=x", {"A": "", "B": "x"}, id="empty-value"),
        pytest.param("A=x=y#z", {"A": "x=y#z"}, id="equals-and-hash-inside"),
        pytest.param("A='$HOME \\n \"'", {"A": '$HOME \\n "'}, id="single-quotes-are-literal"),
        pytest.param("A='x\ny'\nB=1", {"A": "x\ny", "B": "1"}, id="single-quotes-span-lines"),
        pytest.param(r'A="\\ \" \$HOME \n \r \t \x"', {"A": '\\ " $HOME \n \r \t \\x'}, id="escapes"),
        pytest.param('A="x\ny"\nB=1', {"A": "x\ny", "B": "1"}, id="double-quotes-span-lines"),
        pytest.param("A=''\nB=\"\"", {"A": "", "B": ""}, id="empty-quotes"),
        pytest.param("A='x' \t\nB=\"y\"\t", {"A": "x", "B": "y"}, id="blanks-after-quotes"),
        pytest.param("A='x\nB=1", {"A": "'x", "B": "1"}, id="an-open-quote-is-no-quote"),
        pytest.param("A='x'y\nB=\"x\"y", {"A": "'x'y", "B": '"x"y'}, id="quotes-in-the-middle-are-text"),
        pytest.param("A=$HOME/${HOME}$HOME_", {"A": "/root//root$HOME_"}, id="variables"),
        pytest.param('A="$HOME-${EMPTY}-"', {"A": "/root--"}, id="variables-in-double-quotes"),
        pytest.param("A=$ ${ ${1} $1 $$ ${A", {"A": "$ ${ ${1} $1 $$ ${A"}, id="other-dollars-stay"),
        pytest.param("A=1\nB=$A\nA=2\nC=$A", {"A": "2", "B": "1", "C": "2"}, id="earlier-lines-are-seen"),
        pytest.param("HOME=$HOME/x", {"HOME": "/root/x"}, id="a-line-may-use-what-it-replaces"),
        pytest.param("A=$B\nB=1", {"A": "$B", "B": "1"}, id="later-lines-are-not-seen"),
        pytest.param("A=a\0b\nB=1", {"B": "1"}, id="no-nul"),
    ],
)
def test_each_form(text: str, found: dict[str, str]) -> None:
    assert envfile.parse(text, BASE) == found


@pytest.mark.parametrize(
    "value", ["plain", "it's", "two\nlines", 'it\'s\n\t"two" \\ lines\r', "$HOME `id` $(id) %s", "", "é😀"]
)
def test_what_the_sdk_appends_through_the_shell_comes_back(tmp_path: Path, value: str) -> None:
    file = tmp_path / "new" / "envs"
    environment = {"PATH": os.defpath, "EXECD_ENVS": str(file)}
    for each in ("old", value):
        subprocess.run(["sh", "-c", build_set_env_command("KEY", each)], env=environment, check=True)
    assert envfile.parse(envfile.read(str(file)), {}) == {"KEY": value}


def test_bytes_that_are_no_utf_8_survive(tmp_path: Path) -> None:
    (tmp_path / "envs").write_bytes(b"A=\xff\xfe\n")
    found = envfile.parse(envfile.read(str(tmp_path / "envs")), {})
    assert os.fsencode(found["A"]) == b"\xff\xfe"


def test_a_missing_file_is_empty_and_what_is_no_readable_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert envfile.read(str(tmp_path / "missing")) == ""
    for name in ("fifo", ".", "fifo/below", "/dev/zero"):
        with pytest.raises(OSError, match=r"regular file|Not a directory"):
            envfile.read(str(tmp_path / name))


def test_a_file_of_any_size_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "envs").write_bytes(b"A=1\n" * envfile.FILE_LIMIT)
    assert len(envfile.read(str(tmp_path / "envs"))) == envfile.FILE_LIMIT


def hostile_files() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    doubling = "A=" + "x" * 1000 + "".join("\nA=$A$A" for _ in range(60))
    for text in ('A="' + "x" * 1_000_000, 'A="' + "\\n" * 500_000, doubling, "A='" * 300_000):
        found = envfile.parse(text, {})
        assert sum(map(len, found.values())) < 4_000_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB
    assert grown < 40 * 1024, grown


def test_no_file_costs_much_memory() -> None:
    apart(hostile_files)
