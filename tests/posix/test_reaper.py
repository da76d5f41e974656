"""The reaper: orphans go, owned children keep their exit status."""

from __future__ import annotations

import os
import signal

from execd.posix import libc
from execd.posix.reaper import Reaper
from tests.support.apart import apart
from tests.support.live import wait_until


def child(code: int = 0) -> int:
    """A child that ends at once."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], {})


def wait_ended(pid: int) -> None:
    """Wait until it is a zombie."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def sweep_until(reaper: Reaper, reaped: int) -> None:
    """As on SIGCHLD, until that many orphans are gone."""

    def swept() -> bool:
        reaper.sweep()
        return reaper.reaped >= reaped

    wait_until(swept, what="the orphans to be reaped")
    assert reaper.reaped == reaped


def children_keep_their_owner() -> None:
    reaper = Reaper()
    ticket = reaper.begin_spawn()
    pid = child(7)
    reaper.end_spawn(ticket, pid)
    wait_ended(pid)
    reaper.sweep()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    reaper.release(pid)
    assert reaper.reaped == 0
    reaper.sweep()  # no child at all


def test_an_owned_child_is_left_to_its_owner() -> None:
    apart(children_keep_their_owner)


def early_end() -> None:
    reaper = Reaper()
    ticket = reaper.begin_spawn()
    pid = child(7)
    wait_ended(pid)
    reaper.sweep()  # SIGCHLD comes before anybody knows the pid
    assert exists(pid)
    reaper.end_spawn(ticket, pid)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    reaper.release(pid)
    assert reaper.reaped == 0
    assert not reaper._suspects  # or the number would be judged by it when it comes again


def test_a_child_that_ends_before_its_pid_is_known_is_no_orphan() -> None:
    apart(early_end)


def orphans() -> None:
    assert libc.become_subreaper()
    reaper = Reaper()
    owned = os.posix_spawn(
        "/bin/sh", ["sh", "-c", "for i in 1 2 3 4 5; do (true &) ; done; exec sleep 60"], os.environ
    )
    reaper.end_spawn(reaper.begin_spawn(), owned)
    sweep_until(reaper, 5)
    os.kill(owned, signal.SIGKILL)
    wait_ended(owned)
    orphan = child()
    wait_ended(orphan)
    reaper.sweep()  # the owned zombie may stand before it
    os.waitpid(owned, 0)
    reaper.release(owned)
    sweep_until(reaper, 6)
    assert not exists(orphan)


def test_orphans_are_reaped_also_behind_a_child_that_has_an_owner() -> None:
    apart(orphans)


def suspects() -> None:
    reaper = Reaper()
    first, second = reaper.begin_spawn(), reaper.begin_spawn()
    orphan = child()
    wait_ended(orphan)
    reaper.sweep()
    reaper.end_spawn(first, None)
    assert exists(orphan)  # it may still be the second one's
    later = reaper.begin_spawn()
    reaper.end_spawn(second, None)
    assert not exists(orphan)  # the later spawn cannot have made it
    assert reaper.reaped == 1
    reaper.end_spawn(later, None)


def test_an_orphan_waits_only_for_the_spawns_that_may_have_made_it() -> None:
    apart(suspects)


def abandoned() -> None:
    reaper = Reaper()
    ticket = reaper.begin_spawn()
    pid = child()
    reaper.end_spawn(ticket, None)  # its request was given up
    sweep_until(reaper, 1)
    assert not exists(pid)


def test_a_child_that_nobody_claims_is_reaped() -> None:
    apart(abandoned)
