"""The released TypeScript SDK under Node, direct and through the server: one program, and what it saw."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import ROUTES, TOKEN, World
from tests.support.node import Seen, install, run
from tests.support.sdk import Target

SOURCES = Path(__file__).parent / "typescript"
WAYS = (("direct", "keep"), ("direct", "strip"), ("proxied", "keep"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("typescript")
    install(SOURCES, directory)
    return directory / "scenario.mjs"


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def seen(
    request: pytest.FixtureRequest, program: Path, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    route, endings = request.param
    return run(program, world.target(endings, route), tmp_path_factory.mktemp("scratch"))


def result(seen: Seen, name: str) -> Any:
    line = seen.results[name]
    assert "failed" not in line, line["stack"]
    return line["result"]


def assert_refused(error: dict[str, Any], status: int, code: str, *, parsed: bool = True) -> None:
    """`parsed` False: the SDK keeps the body of a transfer as text, and has a code of its own for it."""
    assert error.get("name") == "SandboxApiException", error
    assert error["status"] == status
    assert error["requestId"]
    assert error["body"]["code"] == code
    assert error["body"]["message"]
    assert error["code"] == (code if parsed else "UNEXPECTED_RESPONSE")
    if parsed:
        assert error["message"] == error["body"]["message"]


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_packages_are_pinned_and_no_registry_is_named() -> None:
    wanted = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    lock = (SOURCES / "package-lock.json").read_text()
    packages = json.loads(lock)["packages"]
    assert "://" not in lock
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all(package["integrity"] for path, package in packages.items() if path)


def test_a_ping_is_answered(seen: Seen) -> None:
    assert result(seen, "ping") is True


def test_a_command_gives_its_id_one_text_and_its_end(seen: Seen) -> None:
    echo = result(seen, "echo")
    assert re.fullmatch("[0-9a-f]{32}", echo["id"])
    assert (echo["exitCode"], echo["complete"]) == (0, True)
    assert (echo["stdout"], echo["stderr"]) == (seen.texts("hello\n"), [])
    assert result(seen, "events") == ["init", "stdout", "execution_complete"]
    assert result(seen, "handlers") == ["init", "stdout", "complete"]


def test_a_failure_gives_its_exit_code(seen: Seen) -> None:
    failed = result(seen, "exit_3")
    assert failed["exitCode"] == 3
    assert failed["error"] == {"name": "CommandExecError", "value": "3"}
    assert not failed["complete"]


def test_both_streams_arrive_apart(seen: Seen) -> None:
    both = result(seen, "stderr")
    assert (both["stdout"], both["stderr"]) == (seen.texts("out\n"), seen.texts("err\n"))


def test_lines_and_characters_arrive_as_they_were_written(seen: Seen) -> None:
    assert seen.wrote(result(seen, "lines")["stdout"], "one\n\ntwo\nrest")
    assert seen.wrote(result(seen, "unicode")["stdout"], "grün 數據 🌍\na\u2028b\n")


def test_the_directory_and_the_environment_are_the_ones_asked_for(seen: Seen) -> None:
    assert seen.wrote(result(seen, "surroundings")["stdout"], f"{seen.directory}\nhallo 🌍\n")


def test_a_timeout_ends_the_command_with_124(seen: Seen) -> None:
    late = result(seen, "timeout")
    assert (late["exitCode"], late["complete"]) == (124, False)
    assert late["stdout"] == seen.texts("before\n")


def test_a_background_command_has_a_status_and_logs_that_go_on_at_a_cursor(seen: Seen) -> None:
    found = result(seen, "background")
    assert found["first"] == {"content": "one\n", "cursor": 4}
    assert found["empty"] == {"content": "", "cursor": 4}
    assert found["rest"] == {"content": "zwölf\nerr\n", "cursor": 15}
    assert found["all"] == {"content": "one\nzwölf\nerr\n", "cursor": 15}
    assert found["running"]["id"] == found["status"]["id"] == found["id"]
    assert (found["running"]["running"], found["running"]["exitCode"]) == (True, None)
    assert (found["status"]["running"], found["status"]["exitCode"]) == (False, 4)
    assert found["running"]["finishedAt"] is None
    assert found["status"]["startedAt"] <= found["status"]["finishedAt"]


def test_an_interrupt_resolves_and_ends_the_command(seen: Seen) -> None:
    behind, ahead = result(seen, "interrupt_background"), result(seen, "interrupt_foreground")
    assert behind["isVoid"]
    assert ahead["isVoid"]
    assert (behind["status"]["running"], behind["status"]["exitCode"]) == (False, 130)
    assert (ahead["result"]["exitCode"], ahead["result"]["complete"]) == (130, False)


def test_what_is_refused_of_commands_has_a_status_a_code_and_a_message(seen: Seen) -> None:
    refused = result(seen, "refused_commands")
    for ask in ("status", "logs", "interrupt", "odd_id"):
        assert_refused(refused[ask], 404, "COMMAND_NOT_FOUND")
    assert_refused(refused["cwd"], 400, "INVALID_REQUEST_BODY")
    assert "/no/such/dir" in refused["cwd"]["message"]


def test_files_of_every_kind_of_content_are_written(seen: Seen) -> None:
    found = result(seen, "write")
    made = seen.directory / "made"
    assert found["isVoid"]
    assert (seen.directory / "one").read_text() == "one"
    assert (made / "several").read_text() == "ünï 🌍\n"
    assert (made / "bytes").read_bytes() == b"\0\xff\r\n"
    assert [(made / name).read_text() for name in ("empty", "blob", "stream")] == ["", "blob", "stream"]
    assert [permissions(made / name) for name in ("several", "bytes", "stream")] == [0o640, 0o600, 0o755]
    for directory in ("odd", "odd stream"):
        written = {path.name: path.read_text() for path in (seen.directory / directory).iterdir()}
        assert written == {name: name for name in found["odd"]}


def test_files_are_read_whole_in_pieces_and_in_part(seen: Seen) -> None:
    found = result(seen, "read")
    text = "first\nzwölf\nthird\n"
    assert (found["text"], found["stream"], found["bytes"]) == (text, text, [0, 255, 13, 10])
    assert (found["range"], found["tail"], found["lines"].rstrip("\n")) == ("rst", "third\n", "zwölf")
    assert_refused(found["missing"], 404, "FILE_NOT_FOUND", parsed=False)
    assert_refused(found["past_end"], 416, "RANGE_NOT_SATISFIABLE", parsed=False)


def test_a_big_file_comes_back_as_it_went(seen: Seen) -> None:
    assert result(seen, "big") == {"size": 4 << 20, "same": True}


def test_info_of_files_of_any_name(seen: Seen) -> None:
    found = result(seen, "info")
    assert found["keys"] == found["asked"]
    file = found["file"]
    assert (file["path"], file["type"], file["size"]) == (f"{seen.directory}/info/file", "file", 5)
    assert file["mode"] == int(f"{permissions(seen.directory / 'info' / 'file'):o}")
    assert abs((datetime.fromisoformat(file["modifiedAt"]) - datetime.now(UTC)).total_seconds()) < 300
    assert found["directory"]["type"] == "directory"
    assert found["none"] == {}
    assert_refused(found["missing"], 404, "FILE_NOT_FOUND")


def test_files_move_and_nothing_is_overwritten(seen: Seen) -> None:
    found = result(seen, "move")
    assert (found["isVoid"], found["text"], found["kept"]) == (True, "a", "b")
    assert_refused(found["existing"], 409, "ALREADY_EXISTS")
    assert_refused(found["missing"], 404, "FILE_NOT_FOUND")


def test_permissions_are_set(seen: Seen) -> None:
    found = result(seen, "permissions")
    assert found["isVoid"]
    assert permissions(seen.directory / "permissions") == 0o4711
    assert_refused(found["missing"], 404, "FILE_NOT_FOUND")
    assert_refused(found["owner"], 400, "INVALID_REQUEST_BODY")


def test_contents_are_replaced_with_and_without_counts(seen: Seen) -> None:
    found = result(seen, "replace")
    assert {Path(one["path"]).name: one["replacedCount"] for one in found["counts"]} == {"a": 2, "b": 0}
    assert (found["isVoid"], found["text"]) == (True, "yy 🌍 yy")
    assert_refused(found["missing"], 404, "FILE_NOT_FOUND")


def test_directories_are_listed_and_searched(seen: Seen) -> None:
    found = result(seen, "listings")
    assert found["search"] == ["tree/main.py", "tree/src/a.py"]
    assert found["below"] == ["tree/src/a.py", "tree/src/c.txt"]
    assert found["all"] == ["tree/main.py", "tree/src/a.py", "tree/src/c.txt"]
    assert (found["nothing_found"], found["none"]) == ([], [])
    assert (found["list"], found["kinds"]) == (["tree/main.py", "tree/src"], ["file", "directory"])
    assert found["deep"] == ["tree/main.py", "tree/src", "tree/src/a.py", "tree/src/c.txt"]
    assert_refused(found["missing_list"], 404, "FILE_NOT_FOUND")
    assert_refused(found["missing_search"], 404, "FILE_NOT_FOUND")


def test_directories_are_made_and_deleted(seen: Seen) -> None:
    found = result(seen, "directories")
    assert (found["isVoid"], found["modes"]) == (True, [750, 755])
    assert (found["deleted"], found["left"]) == (True, ["dirs/kept"])
    assert_refused(found["existing"], 409, "ALREADY_EXISTS")


def test_files_are_deleted_and_missing_ones_are_fine(seen: Seen) -> None:
    found = result(seen, "delete")
    assert (found["isVoid"], found["left"]) == (True, ["delete/kept"])
    assert_refused(found["directory"], 400, "INVALID_FILE")


@pytest.mark.parametrize("route", ROUTES)
def test_the_token_lets_a_client_in_and_its_absence_does_not(
    program: Path, world: World, tmp_path: Path, route: str
) -> None:
    asked = ["ping", "echo", "write", "refused_commands"]
    target = world.target("guarded", route)
    assert target.token == TOKEN
    inside = run(program, target, tmp_path, asked)
    assert result(inside, "ping") is True
    assert result(inside, "echo")["exitCode"] == 0
    assert result(inside, "write")["isVoid"]
    outside = run(program, Target(target.daemon, server=target.server), tmp_path, asked)
    assert result(outside, "ping") is True
    assert_refused(outside.results["echo"]["failed"], 401, "UNAUTHORIZED")
    assert_refused(outside.results["write"]["failed"], 401, "UNAUTHORIZED", parsed=False)
    for error in result(outside, "refused_commands").values():
        assert_refused(error, 401, "UNAUTHORIZED")
