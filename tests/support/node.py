"""Programs for Node: their packages, and what they print, one JSON line for each scenario."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.sdk import Target

INSTALL = (
    "npm",
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--fetch-retries=1",
)
INSTALL_SECONDS = 60
RUN_SECONDS = 60
NO_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED"
)


@dataclass(frozen=True)
class Seen:
    """What the program saw of a daemon: the result of each scenario by its name."""

    line_endings: str
    directory: Path
    results: dict[str, Any]

    def texts(self, output: str) -> list[str]:
        """The texts of an output that came in one piece."""
        if self.line_endings == "keep":
            return [output] if output else []
        return [line.rstrip("\n") or "\n" for line in re.findall(r"[^\n]*\n|[^\n]+", output)]

    def wrote(self, texts: list[str], output: str) -> bool:
        """Whether those texts are that output; kept, it may have come in pieces."""
        if self.line_endings == "keep":
            return "".join(texts) == output
        return texts == self.texts(output)


def install(sources: Path, directory: Path) -> None:
    """Copy a Node program, with the packages of its lock beside it; skip the test where none can be had."""
    if not shutil.which("npm") or node_major() < 20:
        pytest.skip("NOT PROVED HERE: no node >= 20")
    for source in sources.iterdir():
        if source.is_file():
            shutil.copy(source, directory)
    try:
        done = subprocess.run(
            INSTALL,
            cwd=directory,
            capture_output=True,
            encoding="utf-8",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("NOT PROVED HERE: npm did not get the packages in time")
    if done.returncode and NO_NETWORK.search(done.stderr):
        pytest.skip(f"NOT PROVED HERE: npm does not reach its registry: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr


def node_major() -> int:
    """The major version of node; 0 if there is none."""
    if not shutil.which("node"):
        return 0
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(version.removeprefix("v").split(".")[0])


def run(program: Path, target: Target, directory: Path, only: list[str] | None = None) -> Seen:
    headers = {"X-EXECD-ACCESS-TOKEN": target.token} if target.token else {}
    options = {"baseUrl": target.url, "headers": headers, "directory": str(directory), "only": only}
    done = subprocess.run(
        ["node", str(program), json.dumps(options)],
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]  # U+2028 ends no line of JSON
    return Seen(target.line_endings, directory, {line["name"]: line for line in lines})
