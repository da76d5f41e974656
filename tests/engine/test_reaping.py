"""Exit statuses go to whom they belong, also when the kernel gives a number out again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.live import ROOT

# Runs as the second process of a pid namespace of its own, where it may say which pid comes next.
SCRIPT = """
import os, sys
from execd.posix.reaper import Reaper

def child(code, pid=None):
    if pid is not None:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
    made = os.fork()
    if not made:
        os._exit(code)
    os.waitid(os.P_PID, made, os.WEXITED | os.WNOWAIT)
    return made

reaper = Reaper()
ticket = reaper.begin_spawn()
first = child(5)
reaper.sweep()  # it may be the one that is being started: left alone
reaper.end_spawn(ticket, first)
assert os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) == 5
reaper.release(first)

ticket = reaper.begin_spawn()
again = child(7, first)
assert again == first, (first, again)
reaper.sweep()
reaper.end_spawn(ticket, again)
assert os.waitstatus_to_exitcode(os.waitpid(again, 0)[1]) == 7
reaper.release(again)

orphan = child(9)
owned = child(8)
ticket = reaper.begin_spawn()
reaper.sweep()  # both may be the one
reaper.end_spawn(ticket, owned)
assert os.waitstatus_to_exitcode(os.waitpid(owned, 0)[1]) == 8
reaper.release(owned)
assert reaper.reaped == 1, reaper.reaped
print("reaped as owned")
"""


def test_no_exit_status_is_taken_from_its_owner() -> None:
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    tried = subprocess.run(
        [*namespace, "test", "-w", "/proc/sys/kernel/ns_last_pid"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("NOT PROVED HERE: no pid namespace of our own, or it does not let us choose pids")
    done = subprocess.run(
        [*namespace, sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("reaped as owned\n", "")
