"""Readiness: what the checks say, and who shares an answer."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from execd.posix.resources import Amount
from execd.services import readiness
from execd.services.engine import Engine
from execd.services.readiness import Check, Readiness, Report
from execd.settings import Settings
from tests.support.apart import apart


def test_ready_means_that_every_check_passed() -> None:
    good, bad = Check(True, ""), Check(False, "why")
    assert Report({"a": good, "b": good}, 0.0).ready
    assert not Report({"a": good, "b": bad}, 0.0).ready


@pytest.mark.parametrize(
    ("amount", "check"),
    [
        pytest.param(None, Check(True, "no limit on things is known"), id="no-limit"),
        pytest.param(Amount(4, 10), Check(True, "4 of 10 things are free"), id="just-enough"),
        pytest.param(Amount(3, 10), Check(False, "3 of 10 things are free"), id="too-few"),
    ],
)
def test_a_resource_is_enough_or_said_to_be_short(amount: Amount | None, check: Check) -> None:
    assert readiness._enough(amount, 4, "things") == check


def test_a_check_that_hangs_or_fails_is_one_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "TIMEOUT", 0.05)

    async def hangs() -> Check:
        await asyncio.Event().wait()
        raise AssertionError

    async def fails() -> Check:
        raise PermissionError(13, "not for you")

    async def outcome(check: Callable[[], Awaitable[Check]]) -> Check:
        return await readiness._bounded(check)

    assert asyncio.run(outcome(hangs)) == Check(False, "no answer within 0.05 s")
    assert asyncio.run(outcome(fails)) == Check(False, "[Errno 13] not for you")


def in_an_engine(scenario: Callable[[Engine], Awaitable[None]], **settings: str) -> None:
    """Run a scenario with a real engine, in the main thread."""

    async def whole() -> None:
        with tempfile.TemporaryDirectory() as directory:
            chosen = replace(Settings(state_dir=directory), **settings)  # type: ignore[arg-type]
            engine = Engine(chosen, os.environ, asyncio.get_running_loop())
            try:
                await scenario(engine)
            finally:
                await engine.stop()
                engine.close()

    asyncio.run(whole())


def sharing() -> None:
    async def scenario(engine: Engine) -> None:
        ready = Readiness(engine)
        reports = await asyncio.gather(*(ready.report() for _ in range(20)))
        assert len({id(report) for report in reports}) == 1
        assert reports[0].ready, reports[0].checks
        assert set(reports[0].checks) == {"command", "state_directory", "disk", "processes", "descriptors"}
        assert await ready.report() is reports[0]
        assert engine.statistics()["records"] == 0

    in_an_engine(scenario)


def test_callers_share_one_run_of_the_checks_and_it_leaves_no_record() -> None:
    apart(sharing)


def leaving() -> None:
    async def scenario(engine: Engine) -> None:
        ready = Readiness(engine)
        caller = asyncio.ensure_future(ready.report())
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert (await ready.report()).ready
        readiness.CACHE = 0.0  # type: ignore[misc]
        first, second = await ready.report(), await ready.report()
        assert first.made_at < second.made_at

    in_an_engine(scenario)


def test_a_caller_that_leaves_keeps_nobody_from_a_fresh_answer() -> None:
    apart(leaving)


def without_a_state_directory() -> None:
    async def scenario(engine: Engine) -> None:
        report = await Readiness(engine).report()
        assert not report.ready
        assert not report.checks["state_directory"].ok
        assert "/proc/execd" in report.checks["state_directory"].detail
        assert report.checks["command"].ok

    in_an_engine(scenario, state_dir="/proc/execd")


def test_a_missing_state_directory_is_named() -> None:
    apart(without_a_state_directory)


def stopping() -> None:
    async def scenario(engine: Engine) -> None:
        await engine.stop()
        report = await Readiness(engine).report()
        assert list(report.checks) == ["accepting"]
        assert not report.ready

    in_an_engine(scenario)


def test_a_daemon_that_stops_is_not_ready() -> None:
    apart(stopping)
