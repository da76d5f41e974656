"""Exactly one outcome, from a real exit status and from who forced the end."""

from __future__ import annotations

import os
import signal

import pytest

from execd.posix.process import ExitStatus, Usage
from execd.services.outcome import Forced, Outcome, decide, signal_name

USAGE = Usage(0.0, 0.0, 0, True)


@pytest.mark.parametrize(
    ("status", "forced", "oom", "outcome", "text"),
    [
        pytest.param((0, 0), None, False, Outcome("exited", 0, status=0), "exit status 0", id="success"),
        pytest.param((3, 0), None, False, Outcome("exited", 3, status=3), "exit status 3", id="failure"),
        pytest.param(
            (137, 0),
            None,
            True,
            Outcome("exited", 137, status=137),
            "exit status 137",
            id="a-code-is-no-signal",
        ),
        pytest.param(
            (0, 15), None, False, Outcome("signaled", 143, "SIGTERM"), "signal: SIGTERM", id="killed-by-term"
        ),
        pytest.param(
            (0, 9), None, False, Outcome("signaled", 137, "SIGKILL"), "signal: SIGKILL", id="killed-by-kill"
        ),
        pytest.param(
            (0, 9),
            None,
            True,
            Outcome("oom_killed", 137, "SIGKILL"),
            "killed by the kernel's out-of-memory killer",
            id="out-of-memory",
        ),
        pytest.param(
            (0, 11),
            None,
            True,
            Outcome("signaled", 139, "SIGSEGV"),
            "signal: SIGSEGV",
            id="not-the-oom-killer",
        ),
        pytest.param(
            (0, 15),
            "timed_out",
            False,
            Outcome("timed_out", 124, "SIGTERM", "who"),
            "timed out (signal: SIGTERM)",
            id="timeout",
        ),
        pytest.param(
            (0, 0),
            "timed_out",
            False,
            Outcome("timed_out", 124, None, "who", 0),
            "timed out (exit status 0)",
            id="timeout-that-exited",
        ),
        pytest.param(
            (0, 9),
            "interrupted",
            True,
            Outcome("interrupted", 130, "SIGKILL", "who"),
            "interrupted by who (signal: SIGKILL)",
            id="interrupted",
        ),
        pytest.param(
            (7, 0),
            "interrupted",
            False,
            Outcome("interrupted", 7, None, "who", 7),
            "interrupted by who (exit status 7)",
            id="interrupted-with-a-code-of-its-own",
        ),
    ],
)
def test_the_outcome_of_an_end(
    status: tuple[int, int], forced: Forced | None, oom: bool, outcome: Outcome, text: str
) -> None:
    decided = decide(ExitStatus(*status, USAGE), forced, "who", oom=oom)
    assert decided == outcome
    assert decided.text == text
    assert decided.failed == (decided != Outcome("exited", 0, status=0))


@pytest.mark.parametrize("number", sorted(signal.valid_signals()))
def test_every_signal_has_a_name(number: int) -> None:
    name = signal_name(number)
    assert name.startswith("SIG")
    assert "+-" not in name


def test_real_time_signals_are_named_from_both_ends() -> None:
    low, high = int(signal.SIGRTMIN), int(signal.SIGRTMAX)
    assert [signal_name(n) for n in (low, low + 1, high)] == ["SIGRTMIN", "SIGRTMIN+1", "SIGRTMAX"]
    assert signal_name(32) == "SIG32"  # one of two that glibc keeps for itself


def test_a_status_of_the_kernel_is_told_apart() -> None:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "kill -TERM $$"], os.environ)
    _, status = os.waitpid(pid, 0)
    assert (os.WIFSIGNALED(status), signal_name(os.WTERMSIG(status))) == (True, "SIGTERM")
