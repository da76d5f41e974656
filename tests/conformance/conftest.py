"""Every way that a released client reaches a daemon: sync or async, directly or through the server."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest

from tests.support.live import Daemon, daemon, wait_until
from tests.support.realserver import RealServer, real_server
from tests.support.sdk import KINDS, Kind, Sdk, Target, connected

TOKEN = "t0ken-that-nobody-guesses"
PING_INTERVAL = "100ms"  # of the daemon in strip mode: clients meet many pings there
ROUTES = ("direct", "proxied")


@dataclass(frozen=True)
class World:
    """The daemons and the server of all tests here."""

    keep: Target
    strip: Target
    guarded: Target
    """Wants a token, and runs one command at once."""
    server: RealServer

    def target(self, name: str, route: str) -> Target:
        found: Target = getattr(self, name)
        return replace(found, server=self.server) if route == "proxied" else found


def nothing_runs(running: Daemon) -> bool:
    return running.usage()["running"] == 0


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    files = tmp_path_factory.mktemp("envs")
    with (
        daemon("--envs", str(files / "keep" / "env")) as keep,
        daemon(
            *("--envs", str(files / "strip" / "env")),
            *("--line-endings", "strip"),
            *("--ping-interval", PING_INTERVAL),
        ) as strip,
        daemon("--access-token", TOKEN, "--max-executions", "1") as guarded,
        real_server(keep.port) as server,
    ):
        guarded.client.headers["X-EXECD-ACCESS-TOKEN"] = TOKEN
        yield World(Target(keep), Target(strip, "strip"), Target(guarded, token=TOKEN), server)
        for used in (keep, strip, guarded):
            wait_until(functools.partial(nothing_runs, used), what="end of all commands")
            assert [line for line in used.log_lines() if line["level"] == "error"] == []


@pytest.fixture(scope="session")
def client() -> Iterator[Callable[[Kind, Target], Sdk]]:
    """A connected client for a target; the same one each time."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def connect(kind: Kind, target: Target) -> Sdk:
            return stack.enter_context(connected(kind, target))

        yield connect


@pytest.fixture(params=product(KINDS, ROUTES, ("keep", "strip")), ids="-".join)
def sdk(request: pytest.FixtureRequest, world: World, client: Callable[[Kind, Target], Sdk]) -> Sdk:
    """A client on each route, in both modes."""
    kind, route, endings = request.param
    return client(kind, world.target(endings, route))


@pytest.fixture(params=product(KINDS, ROUTES), ids="-".join)
def keep_sdk(request: pytest.FixtureRequest, world: World, client: Callable[[Kind, Target], Sdk]) -> Sdk:
    """A client on each route, for what the mode has no part in."""
    kind, route = request.param
    return client(kind, world.target("keep", route))


@pytest.fixture(params=product(KINDS, ROUTES), ids="-".join)
def guarded_sdk(request: pytest.FixtureRequest, world: World, client: Callable[[Kind, Target], Sdk]) -> Sdk:
    """A client with the right token of a daemon that runs one command at once."""
    kind, route = request.param
    return client(kind, world.target("guarded", route))


@pytest.fixture(params=product(ROUTES, ("keep", "strip")), ids="-".join)
def target(request: pytest.FixtureRequest, world: World) -> Target:
    """For raw HTTP."""
    route, endings = request.param
    return world.target(endings, route)
