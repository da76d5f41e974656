"""What a path in a request means, on every route that takes one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.files import Api, ok, refused
from tests.support.live import ROOT, daemon
from tests.support.routes import ROUTES, Route

NAMES = [
    "two words",
    "line\nbreak",
    "-rf",
    "--help",
    "%2e%2e",
    "%2F",
    "a'; touch pwn; '.txt",
    '"quoted"',
    "back\\slash",
    "`id`",
    "$(id)",
    "$5.00",
    "*?[a-z]{1,2}",
    "#;&|<>",
    "😀",
    "e\u0301",
    "\u2028\u202e",
    "a:b:c",
    " ",
    "...",
    "~",
    "x" * 255,
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Path, Path]]:
    """A daemon with variables for this, the directory that they name, and its EXECD_ENVS file."""
    top = tmp_path_factory.mktemp("paths")
    (top / "home").mkdir()
    envs = top / "envs"
    envs.touch()
    variables = {"EXECD_ENVS": str(envs), "TOP": str(top), "HOME": str(top / "home"), "EMPTY": ""}
    with daemon(env=variables) as running:
        yield Api(running), top, envs


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(api: Api, tmp_path: Path, name: str) -> None:
    directory = tmp_path / "d"
    path, moved = directory / name, directory / "moved"
    ok(api.mkdir(directory))
    path.write_text("old")
    assert list(api.info(path).json()) == [str(path)]
    ok(api.replace(path, "old", "new"))
    ok(api.chmod(path, mode=600))
    ok(api.move((path, moved)))
    ok(api.move((moved, path)))
    assert os.listdir(directory) == [name]
    assert path.read_text() == "new"
    ok(api.delete(path))
    ok(api.mkdir(path))
    ok(api.rmdir(path))
    assert os.listdir(directory) == []
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.parametrize(
    "spelled",
    ["$TOP/", "${TOP}/", "$EMPTY$TOP/${EMPTY}", "~/../", "~\\../", "$HOME/../", "$TOP//./"],
)
def test_variables_and_the_tilde_are_replaced(own: tuple[Api, Path, Path], spelled: str) -> None:
    api, top, _ = own
    (top / "file").write_text("old")
    asked = spelled + "file"
    found = api.info(asked).json()
    assert os.path.realpath(found[asked]["path"]) == str(top / "file")
    ok(api.replace(asked, "old", "new"))
    ok(api.chmod(asked, mode=640))
    ok(api.move((asked, spelled + "moved")))
    ok(api.delete(spelled + "moved"))
    ok(api.mkdir(spelled + "directory"))
    assert (top / "directory").is_dir()
    ok(api.rmdir(spelled + "directory"))


def test_the_tilde_alone_is_the_home_directory(own: tuple[Api, Path, Path]) -> None:
    api, top, _ = own
    assert api.info("~").json()["~"]["path"] == str(top / "home")
    refused(api.info("~root"), "FILE_NOT_FOUND")  # a name like any other


def test_values_of_the_envs_file_are_read_anew_and_win(own: tuple[Api, Path, Path]) -> None:
    api, top, envs = own
    (top / "one").mkdir()
    (top / "two").mkdir()
    for name in ("one", "two"):
        envs.write_text(f"PROJECT={top}/{name}\nHOME='{top}/{name}'\n")
        assert api.info("$PROJECT").json()["$PROJECT"]["path"] == f"{top}/{name}"
        assert api.info("~").json()["~"]["path"] == f"{top}/{name}"
    envs.write_text("")
    refused(api.info("$PROJECT"), "INVALID_FILE", undefined=["PROJECT"])


def test_secrets_of_the_daemon_are_no_variables(own: tuple[Api, Path, Path]) -> None:
    api, _, _ = own
    for name in ("EXECD_ACCESS_TOKEN", "JUPYTER_TOKEN"):
        refused(api.info(f"/${name}"), "INVALID_FILE", undefined=[name])


def test_a_relative_path_begins_where_the_daemon_does(api: Api) -> None:
    assert api.info("README.md").json()["README.md"]["path"] == f"{ROOT}/README.md"
    assert api.info("./tests/..").json()["./tests/.."]["type"] == "directory"


BAD = {
    "undefined": "$UNDEFINED_ONE/x/${UNDEFINED_TWO}/$UNDEFINED_ONE",
    "empty": "",
    "too-long": "/x" * 2500,
    "too-long-a-name": "/tmp/" + "x" * 256,
    "too-long-a-name-in-bytes": "/tmp/" + "é" * 128,
    "too-long-once-replaced": "$PATH" * 1000,
    "nul": "/tmp/a\0b",
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_what_is_no_possible_path_is_refused_by_every_route(live_api: Api, route: Route, bad: str) -> None:
    answer = route.ask(live_api.daemon, BAD[bad])
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert body["code"] in ("INVALID_FILE", "INVALID_REQUEST_BODY", "INVALID_FILE_METADATA", "MISSING_QUERY")
    assert body["executed"] == "not_executed"
    if bad == "undefined":
        assert body["details"]["undefined"] == ["UNDEFINED_ONE", "UNDEFINED_TWO"]
        assert "UNDEFINED_ONE,UNDEFINED_TWO" in body["message"]


@pytest.fixture(scope="module")
def live_api(live: object) -> Api:
    return Api(live)  # type: ignore[arg-type]
