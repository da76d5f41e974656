"""The documents are true: every setting with its variable and default, every error code, every route."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache

import pytest

from execd.app import ROUTES
from execd.errors import CODES
from execd.settings import Settings
from tests.support.live import ROOT

FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SPECS = {spec.metadata["flag"]: spec for spec in fields(Settings)}


@cache
def documented() -> str:
    return "\n".join(file.read_text() for file in FILES)


def rows(first_cell: str) -> list[list[str]]:
    """The cells of table rows that begin with that cell."""
    lines = [line for line in documented().splitlines() if line.startswith(f"| {first_cell} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("flag", SPECS)
def test_a_setting_has_a_row_with_its_variable_default_and_meaning(flag: str) -> None:
    spec = SPECS[flag]
    default = spec.metadata["show"](spec.default) if spec.default != "" else "empty"
    (row,) = rows(f"`--{flag}`")
    assert row[1:] == [f"`{spec.metadata['env']}`", default, spec.metadata["help"]]


def test_no_setting_is_described_that_does_not_exist() -> None:
    flags = set(re.findall(r"`--([a-z][a-z-]*)", documented()))
    assert flags <= set(SPECS) | {"help", "version", "flag"}
    variables = {spec.metadata["env"] for spec in SPECS.values()}
    others = {"EXECD_PEER_URL", "EXECD_COMMANDS_TAIL_CURSOR", "EXECD_EXECUTION_ID"}
    assert set(re.findall(r"\bEXECD_[A-Z_]+[A-Z]\b", documented())) <= variables | others


@pytest.mark.parametrize("code", CODES)
def test_an_error_code_has_a_row_that_says_what_the_code_says(code: str) -> None:
    error = CODES[code]
    (row,) = rows(f"`{code}`")
    retryable = "yes" if error.retryable else "no"
    assert row[1:] == [str(error.status), retryable, f"`{error.executed}`", error.__doc__]


def test_no_error_code_is_described_that_does_not_exist() -> None:
    described = re.findall(r"^\| `([A-Z_]+)` \| \d", documented(), re.MULTILINE)
    assert sorted(described) == sorted(CODES)


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES}))
def test_a_route_is_mentioned(path: str) -> None:
    assert path in documented() or path == "/docs/{asset}"  # the files of the page
