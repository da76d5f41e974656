"""Connections of the SDK: left mid-stream, many at once, idle for long, made by the lifecycle server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from opensandbox import Sandbox, SandboxSync
from opensandbox.config import ConnectionConfig
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxException

from tests.conformance.conftest import ROUTES, World
from tests.support.live import wait_until
from tests.support.sdk import KINDS, SECONDS, Kind, Sdk, Target, connected

PARALLEL = 60
ROUNDS = 3
IDLE_SECONDS = 6.0  # longer than the 5 s after which common servers drop an idle connection


class ClientLeft(Exception):
    """Raised by a handler to make the client drop its stream."""


def test_a_client_that_leaves_mid_stream_leaves_the_command_running(sdk: Sdk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    seen: list[str] = []

    def leave(name: str, message: Any) -> None:
        if name == "on_init":
            seen.append(message.id)
        else:
            raise ClientLeft

    with pytest.raises(SandboxException):
        sdk.run(f"echo before; read _ < {tmp_path}/go; echo after; exit 5", leave)
    (command_id,) = seen
    assert sdk.status(command_id).running
    assert sdk.healthy()
    (tmp_path / "go").write_text("\n")
    wait_until(lambda: not sdk.status(command_id).running, what="end of the command")
    assert sdk.status(command_id).exit_code == 5
    assert sdk.logs(command_id).content == "before\nafter\n"


def test_a_raw_client_that_leaves_mid_stream_leaves_the_command_running(
    target: Target, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    body = {"command": f"echo before; read _ < {tmp_path}/go; echo after"}
    with (
        httpx.Client(trust_env=False) as client,
        client.stream("POST", f"{target.url}/command", json=body) as r,
    ):
        command_id = r.headers["X-Execd-Command-Id"]
        assert b"init" in next(r.iter_raw())
    assert target.daemon.status(command_id)["running"]
    (tmp_path / "go").write_text("\n")
    assert target.daemon.wait_ended(command_id)["exit_code"] == 0
    assert target.daemon.logs(command_id) == b"before\nafter\n"


def test_sixty_background_starts_at_once_share_one_pool(keep_sdk: Sdk) -> None:
    for number in range(ROUNDS):
        starts = [
            keep_sdk.submit(f"echo {number}-{index}", background=True, envs={"N": str(index)})
            for index in range(PARALLEL)
        ]
        done, pending = wait(starts, timeout=SECONDS)
        assert not pending
        ids = [start.result().id for start in done]
        assert len(set(ids)) == PARALLEL
        assert all(start.result().complete for start in done)
    assert keep_sdk.run("echo still fine").text == "still fine"


def test_sixty_streams_at_once_are_not_mixed_up(keep_sdk: Sdk) -> None:
    runs = [keep_sdk.submit(f"echo {index}; echo {index} >&2; exit {index}") for index in range(PARALLEL)]
    for index, run in enumerate(runs):
        execution = run.result(SECONDS)
        assert (execution.text, execution.exit_code) == (str(index), index)
        assert [message.text.strip() for message in execution.logs.stderr] == [str(index)]


def peers(port: int) -> set[str]:
    """The far ends of the connections that a listener on `port` has."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[2] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"}


def test_an_idle_connection_is_used_again(world: World) -> None:
    with ExitStack() as stack:
        direct, proxied = (
            [stack.enter_context(connected(kind, world.target("strip", route))) for kind in KINDS]
            for route in ROUTES
        )
        for sdk in [*proxied, *direct]:
            assert sdk.run("echo first").text == "first"
        before = peers(world.strip.daemon.port)
        threading.Event().wait(IDLE_SECONDS)  # being idle is what is tried here
        for sdk in direct:
            assert sdk.run("echo again").text == "again"
        assert peers(world.strip.daemon.port) <= before
        for sdk in proxied:
            assert sdk.run("echo again").text == "again"


def options(world: World, *, proxied: bool) -> dict[str, Any]:
    return world.target("keep", "proxied").options | {"use_server_proxy": proxied}


def sync_sandbox(world: World, *, proxied: bool) -> tuple[str, int | None]:
    config = ConnectionConfigSync(**options(world, proxied=proxied))
    with SandboxSync.create("any:image", connection_config=config) as sandbox:
        assert sandbox.is_healthy()
        execution = sandbox.commands.run("echo connect-ok; exit 3")
        sandbox.kill()
        return execution.text, execution.exit_code


def async_sandbox(world: World, *, proxied: bool) -> tuple[str, int | None]:
    async def scenario() -> tuple[str, int | None]:
        config = ConnectionConfig(**options(world, proxied=proxied))
        async with await Sandbox.create("any:image", connection_config=config) as sandbox:
            assert await sandbox.is_healthy()
            execution = await sandbox.commands.run("echo connect-ok; exit 3")
            await sandbox.kill()
            return execution.text, execution.exit_code

    return asyncio.run(scenario())


SCENARIOS: dict[Kind, Callable[..., tuple[str, int | None]]] = {"sync": sync_sandbox, "async": async_sandbox}


@pytest.mark.parametrize("proxied", [False, True], ids=ROUTES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sandbox_made_by_the_server_runs_commands(world: World, kind: Kind, proxied: bool) -> None:
    assert SCENARIOS[kind](world, proxied=proxied) == ("connect-ok", 3)
