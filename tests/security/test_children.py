"""What a child is born with: signals, descriptors, limits, stdin, arguments."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.security.support import NOBODY, needs_root
from tests.support.live import Daemon, daemon, text

HANDICAPPED = (
    "import os, resource, signal, sys\n"
    "for name in ('INT', 'QUIT', 'HUP', 'USR1', 'PIPE', 'XFSZ'):\n"
    "    signal.signal(signal.Signals['SIG' + name], signal.SIG_IGN)\n"
    "blocked = {signal.SIGUSR2, signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM}\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, blocked)\n"
    "for n in (0, 5, 77): os.dup2(os.open('/etc/hostname', os.O_RDONLY), n)\n"
    "os.set_inheritable(5, True); os.set_inheritable(77, True)\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (321, 4000))\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
AS = [
    pytest.param({}, id="as-the-daemon"),
    pytest.param({"uid": NOBODY}, id="as-another", marks=needs_root),
]


@pytest.fixture(scope="module")
def handicapped() -> Iterator[Daemon]:
    """A daemon whose starter ignored and blocked signals, left descriptors open and set a low limit."""
    with daemon(wrapper=(sys.executable, "-c", HANDICAPPED)) as running:
        yield running


def masks(running: Daemon, **fields: Any) -> dict[str, int]:
    lines = text(running.run(argv=["cat", "/proc/self/status"], **fields)).splitlines()
    found = {line.split(":")[0]: line.split(":")[1] for line in lines}
    # 32 and 33 are glibc's own: it leaves them ignored in what posix_spawn starts, and uses them itself
    return {name: int(found[name], 16) & ~(3 << 31) for name in ("SigBlk", "SigIgn", "SigCgt")}


@pytest.mark.parametrize("fields", AS)
def test_signals_are_at_their_defaults_and_unblocked(handicapped: Daemon, fields: dict[str, Any]) -> None:
    assert masks(handicapped, **fields) == {"SigBlk": 0, "SigIgn": 0, "SigCgt": 0}


@pytest.mark.parametrize("fields", AS)
def test_a_child_ends_by_the_signals_that_the_starter_of_the_daemon_ignored(
    handicapped: Daemon, fields: dict[str, Any]
) -> None:
    for name, number in (("INT", 2), ("HUP", 1), ("USR1", 10), ("USR2", 12), ("PIPE", 13)):
        end = handicapped.run(f"kill -{name} $$; echo survived", **fields)[-1]
        assert end["outcome"] == {"kind": "signaled", "signal": f"SIG{name}"}
        assert end["error"]["evalue"] == str(128 + number)


@pytest.mark.parametrize("fields", AS)
def test_no_descriptor_but_the_standard_ones_gets_into_a_child(
    handicapped: Daemon, fields: dict[str, Any]
) -> None:
    # `ls` has the directory itself open as 3
    for _ in range(3):
        assert text(handicapped.run(argv=["ls", "/proc/self/fd"], **fields)).split() == ["0", "1", "2", "3"]


def test_no_descriptor_leaks_between_commands_that_start_at_once(live: Daemon) -> None:
    ids = [live.background("ls -l /proc/self/fd; sleep 0.2") for _ in range(30)]
    for command_id in ids:
        live.wait_ended(command_id)
        shown = live.logs(command_id).decode()
        assert shown.count(" -> ") == 4, shown
        assert shown.count("pipe:") == 2


@pytest.mark.parametrize("fields", AS)
def test_the_limit_on_descriptors_is_what_the_daemon_was_started_with(
    handicapped: Daemon, fields: dict[str, Any]
) -> None:
    assert text(handicapped.run("ulimit -Sn; ulimit -Hn", **fields)) == "321\n4000\n"


def test_a_program_that_looks_at_its_limit_at_once_sees_no_other(handicapped: Daemon) -> None:
    def one(_: int) -> str:
        return text(handicapped.run(argv=["sh", "-c", "ulimit -Sn"]))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(160))) == {"321\n"}
    with open(f"/proc/{handicapped.pid}/limits", encoding="ascii") as file:
        ours = next(line for line in file if line.startswith("Max open files"))
    assert ours.split()[3:5] == ["4000", "4000"]


def test_the_other_limits_are_those_of_the_daemon(live: Daemon) -> None:
    core = resource.getrlimit(resource.RLIMIT_CORE)[0]
    expected = "unlimited" if core == resource.RLIM_INFINITY else str(core // 512 if core else 0)
    assert text(live.run(argv=["sh", "-c", "ulimit -c"])).strip() == expected


@pytest.mark.parametrize("fields", [*AS, pytest.param({"background": True}, id="in-the-background")])
def test_stdin_is_dev_null(handicapped: Daemon, fields: dict[str, Any]) -> None:
    command = "readlink /proc/self/fd/0; cat; read x; echo rc=$?"
    if "background" in fields:
        command_id = handicapped.background(command)
        handicapped.wait_ended(command_id)
        shown = handicapped.logs(command_id).decode()
    else:
        shown = text(handicapped.run(command, **fields))
    assert shown == "/dev/null\nrc=1\n"


def test_a_command_longer_than_one_argument_may_be_has_dev_null_too(live: Daemon) -> None:
    command = f"readlink /proc/self/fd/0; cat; echo end # {'x' * 300_000}"
    assert text(live.run(command)) == "/dev/null\nend\n"


@pytest.mark.parametrize("fields", AS)
def test_a_child_leads_a_session_and_a_group_of_its_own(live: Daemon, fields: dict[str, Any]) -> None:
    shown = text(live.run("cut -d' ' -f 5,6,7 /proc/$$/stat; echo $$", **fields)).split()
    group, session, terminal, pid = shown
    assert group == session == pid
    assert terminal == "0"


@pytest.mark.parametrize("fields", AS)
def test_a_child_has_an_ordinary_priority_and_the_umask_of_the_daemon(
    live: Daemon, fields: dict[str, Any]
) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert text(live.run("nice; umask", **fields)).split() == [str(os.nice(0)), f"{mask:04o}"]


def test_the_kernel_takes_a_child_before_the_daemon_when_memory_is_short(live: Daemon) -> None:
    with open(f"/proc/{live.pid}/oom_score_adj", encoding="ascii") as file:
        ours = int(file.read())
    assert int(text(live.run("sleep 0.5; cat /proc/self/oom_score_adj"))) == min(1000, ours + 200)


def test_arguments_arrive_as_they_were_sent(live: Daemon) -> None:
    argv = ["printf", "%s|", "a b", "$HOME", "", "*", "~", "`id`", "$(id)", "\\n", "ü\n", "-x", "'\""]
    assert text(live.run(argv=argv)) == "".join(f"{argument}|" for argument in argv[2:])


@needs_root
def test_a_child_of_another_user_has_no_capabilities(live: Daemon) -> None:
    shown = text(live.run(argv=["grep", "^Cap[PEI]", "/proc/self/status"], uid=NOBODY)).split()
    assert {int(value, 16) for value in shown[1::2]} == {0}
