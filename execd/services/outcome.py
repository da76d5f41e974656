"""How an execution ended: exactly one of these, decided once, from a real exit status."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Literal

from execd.posix.process import ExitStatus

Forced = Literal["timed_out", "interrupted"]
Kind = Literal["exited", "signaled", "timed_out", "interrupted", "oom_killed"]

_TIMED_OUT_CODE = 124  # as timeout(1)
_INTERRUPTED_CODE = 130  # as a shell whose command was ended by ^C
_KILLED_CODE = 137  # 128 + SIGKILL


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code` is what a shell would report as `$?`; clients read it as the exit code.

    `signal` is the name of the signal that ended the process, None if none did. `reason` says who forced
    the end: `timeout`, `request` or `shutdown`; None if nobody did. `status` is what it exited with itself,
    None if a signal ended it.
    """

    kind: Kind
    code: int
    signal: str | None = None
    reason: str | None = None
    status: int | None = None

    @property
    def failed(self) -> bool:
        """True unless it exited with 0 by itself."""
        return self.kind != "exited" or self.code != 0

    @property
    def text(self) -> str:
        """For people: `exit status 3`, `signal: SIGKILL`, `timed out`, ..."""
        if self.kind == "exited":
            return f"exit status {self.code}"
        if self.kind == "signaled":
            return f"signal: {self.signal}"
        if self.kind == "oom_killed":
            return "killed by the kernel's out-of-memory killer"
        ending = f"exit status {self.status}" if self.signal is None else f"signal: {self.signal}"
        return f"{'timed out' if self.kind == 'timed_out' else f'interrupted by {self.reason}'} ({ending})"


def decide(status: ExitStatus, forced: Forced | None, reason: str | None, *, oom: bool) -> Outcome:
    """The outcome of a process that ended with `status`.

    `forced`: we ended it, and why. `oom`: the kernel's OOM killer struck while it ran.
    """
    signal = signal_name(status.signal) if status.signal else None
    own = None if status.signal else status.code
    if forced == "timed_out":
        return Outcome("timed_out", _TIMED_OUT_CODE, signal, reason, own)
    if forced == "interrupted":
        code = _INTERRUPTED_CODE if status.signal else status.code
        return Outcome("interrupted", code, signal, reason, own)
    if signal == "SIGKILL" and oom:
        return Outcome("oom_killed", _KILLED_CODE, signal)
    if signal is not None:
        return Outcome("signaled", 128 + status.signal, signal)
    return Outcome("exited", status.code, status=own)


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; real-time signals as `SIGRTMIN+1`, one that has no name as `SIG32`."""
    try:
        return Signals(number).name
    except ValueError:
        above = number - Signals.SIGRTMIN
        return f"SIGRTMIN+{above}" if above > 0 else f"SIG{number}"
