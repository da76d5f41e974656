"""The released command line client `osb`, through the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import World
from tests.support.live import wait_until

OSB = Path(sys.executable).parent / "osb"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def osb(world: World, tmp_path: Path) -> Run:
    """Run `osb command` on the daemon in keep mode, through the proxy of the server or past it."""
    server = ["--domain", world.server.domain, "--api-key", world.server.api_key, "--protocol", "http"]

    def run(action: str, *arguments: str, direct: bool = False) -> subprocess.CompletedProcess[str]:
        route = "--no-use-server-proxy" if direct else "--use-server-proxy"
        sandbox = str(world.keep.daemon.port)
        return subprocess.run(
            [str(OSB), "--no-color", *server, route, "command", action, sandbox, *arguments],
            env=os.environ | {"HOME": str(tmp_path), "COLUMNS": "200", "OPENSANDBOX_DISABLE_METRICS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize("direct", [False, True])
def test_a_command_s_output_is_printed_as_it_was_written(osb: Run, direct: bool) -> None:
    shown = osb("run", "--", "sh", "-c", r"printf 'a\n\n  b\nünï 🌍\nlast'; echo err >&2", direct=direct)
    assert (shown.returncode, shown.stdout) == (0, "a\n\n  b\nünï 🌍\nlast\n")  # osb ends the last line
    assert shown.stderr == "err\n"


def test_a_failing_command_fails(osb: Run, tmp_path: Path) -> None:
    shown = osb("run", "--workdir", str(tmp_path), "--argv", "--", "sh", "-c", "pwd; exit 7")
    assert shown.returncode == 1
    assert shown.stdout.startswith(f"{tmp_path}\n")
    assert "CommandExecError: 7" in shown.stdout + shown.stderr


def test_a_background_command_is_followed_and_interrupted(osb: Run, world: World) -> None:
    started = osb("run", "--background", "-o", "json", "--", "sh", "-c", "echo begun; sleep 60")
    assert started.returncode == 0, started.stderr
    command_id = json.loads(started.stdout)["execution_id"]
    wait_until(lambda: world.keep.daemon.logs(command_id) == b"begun\n", what="its output")
    logs = json.loads(osb("logs", command_id, "--cursor", "2", "-o", "json").stdout)
    assert (logs["content"], logs["cursor"]) == ("gun\n", 6)
    interrupted = osb("interrupt", command_id)
    assert interrupted.returncode == 0, interrupted.stderr
    status = json.loads(osb("status", command_id, "-o", "json").stdout)
    assert (status["id"], status["running"], status["exit_code"]) == (command_id, False, 130)


def test_a_refusal_is_shown_with_its_reason(osb: Run) -> None:
    unknown = osb("status", "f" * 32)
    assert unknown.returncode == 1
    assert "COMMAND_NOT_FOUND" in unknown.stdout + unknown.stderr
    nowhere = osb("run", "--workdir", "/no/such/dir", "--", "true")
    assert nowhere.returncode == 1
    assert "/no/such/dir" in nowhere.stdout + nowhere.stderr
