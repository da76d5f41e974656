"""Nothing left of something: descriptors, processes, disk, memory. The daemon says so and recovers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from tests.support.following import command_id, connection, parallel, read_until
from tests.support.live import Daemon, alive, daemon, text, wait_until
from tests.support.machines import control_group, mounted, small_disk

FEW_FILES = ("prlimit", "--nofile=48:48")


def _ask(line: http.client.HTTPConnection, method: str, path: str, **body: Any) -> tuple[int, bytes]:
    """One request on a connection that is there already."""
    line.request(method, path, json.dumps(body) if body else None, {"Accept": "application/x-ndjson"})
    answer = line.getresponse()
    return answer.status, answer.read()


def _use_up_descriptors(own: Daemon, stack: contextlib.ExitStack) -> None:
    for _ in range(100):
        sock = socket.socket()
        stack.callback(sock.close)
        sock.settimeout(5)
        with contextlib.suppress(OSError):
            sock.connect(("127.0.0.1", own.port))
    wait_until(lambda: own.descriptors() >= 46, 10, "no descriptor left")


def test_without_descriptors_commands_are_refused_and_later_ones_run() -> None:
    with daemon(wrapper=FEW_FILES) as own:
        line = http.client.HTTPConnection("127.0.0.1", own.port, timeout=20)
        assert _ask(line, "GET", "/ping")[0] == 200
        own.client.close()
        with contextlib.ExitStack() as stack:
            _use_up_descriptors(own, stack)
            for _ in range(20):
                status, body = _ask(line, "POST", "/command", command="echo no")
                assert (status, json.loads(body)["code"]) == (503, "RESOURCE_EXHAUSTED")
                assert json.loads(body)["executed"] == "not_executed"
            assert _ask(line, "GET", "/ping")[0] == 200
            assert _ask(line, "GET", "/readyz")[0] == 503
            assert own.children() == []
        wait_until(lambda: _ask(line, "POST", "/command", command="echo hi")[0] == 200, 10, "recovery")
        assert b"hi" in _ask(line, "POST", "/command", command="echo hi")[1]
        line.close()


def test_without_descriptors_the_daemon_does_not_spin() -> None:
    with daemon(wrapper=FEW_FILES) as own, contextlib.ExitStack() as stack:
        _use_up_descriptors(own, stack)

        def ticks() -> int:
            fields = Path(f"/proc/{own.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(1)  # the time over which CPU is measured
        assert ticks() - before < os.sysconf("SC_CLK_TCK") // 2


def test_without_descriptors_a_tree_is_ended_all_the_same() -> None:
    tree = "(trap '' TERM; echo $BASHPID; while :; do sleep 0.1; done) & echo $$; wait"
    with daemon("--kill-grace", "300ms", wrapper=FEW_FILES) as own:
        line = http.client.HTTPConnection("127.0.0.1", own.port, timeout=20)
        status, body = _ask(line, "POST", "/command", command=tree, background=True)
        assert status == 200
        command = json.loads(body.splitlines()[0])["text"]
        wait_until(lambda: _ask(line, "GET", f"/command/{command}/logs")[1].count(b"\n") == 2, 10, "two pids")
        pids = [int(pid) for pid in _ask(line, "GET", f"/command/{command}/logs")[1].split()]
        own.client.close()
        with contextlib.ExitStack() as stack:
            _use_up_descriptors(own, stack)
            assert _ask(line, "DELETE", f"/command?id={command}")[0] == 200
            wait_until(lambda: not any(map(alive, pids)), 10, "the tree's end")
            path = f"/command/status/{command}"
            wait_until(lambda: not json.loads(_ask(line, "GET", path)[1])["running"], 20, "its outcome")
        line.close()


def test_without_descriptors_kept_output_is_not_thrown_away() -> None:
    with daemon(wrapper=FEW_FILES) as own:
        command = own.run("yes | head -c 300000")[0]["text"]
        line = http.client.HTTPConnection("127.0.0.1", own.port, timeout=20)
        assert _ask(line, "GET", "/ping")[0] == 200
        own.client.close()
        with contextlib.ExitStack() as stack:
            _use_up_descriptors(own, stack)
            assert _ask(line, "GET", f"/command/{command}/logs")[0] == 503
        wait_until(lambda: own.descriptors() < 40, 10, "descriptors")
        assert _ask(line, "GET", f"/command/{command}/logs") == (200, b"y\n" * 150_000)
        line.close()


def test_many_more_connections_than_descriptors_are_survived() -> None:
    with daemon(wrapper=("prlimit", "--nofile=128:128")) as own:
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                sock = stack.enter_context(contextlib.closing(socket.socket()))
                sock.settimeout(5)
                with contextlib.suppress(OSError):
                    sock.connect(("127.0.0.1", own.port))
        wait_until(lambda: own.descriptors() < 60, 10, "connections given back")
        assert text(own.run("echo hi")) == "hi\n"


def test_when_no_process_is_left_commands_are_refused_until_the_hog_is_ended() -> None:
    with (
        control_group("pids", pids_max=60) as wrapper,
        daemon("--kill-grace", "300ms", wrapper=wrapper) as own,
    ):
        own.run("true")
        hog = own.background("for i in $(seq 100); do sleep 300 & done; wait")
        refused: list[dict[str, Any]] = []

        def used_up() -> bool:
            answer = own.client.post("/command", json={"command": "true"})
            if answer.status_code == 503:
                refused.append(answer.json())
            return bool(refused)

        wait_until(used_up, 20, "a command that finds no process")
        assert refused[0]["code"] == "RESOURCE_EXHAUSTED"
        assert refused[0]["details"]["errno"] == "EAGAIN"
        assert (refused[0]["executed"], refused[0]["retryable"]) == ("not_executed", True)
        assert own.client.get("/ping").status_code == 200
        assert own.client.delete("/command", params={"id": hog}).status_code == 200
        assert own.wait_ended(hog)["outcome"]["kind"] == "interrupted"
        assert text(own.run("echo hi")) == "hi\n"


def test_a_full_disk_costs_old_output_and_no_command(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with daemon("--min-free-disk", "0", wrapper=small_disk(disk, "2m"), state=disk / "state") as own:
        own.run(f"head -c 10000000 /dev/zero > {disk}/fill", uid=0)
        assert text(own.run("echo hi")) == "hi\n"
        events = own.run("seq 1 400000")
        assert text(events).endswith("400000\n")
        assert text(events).count("\n") == 400_000
        command = own.background("seq 1 400000; echo END")
        status = own.wait_ended(command)
        assert status["exit_code"] == 0
        assert "space" in status["output"]["fault"]
        assert own.logs(command).endswith(b"400000\nEND\n")
        own.run(f"rm {disk}/fill")
        later = own.background("seq 1 200000")
        own.wait_ended(later)
        wait_until(lambda: len(own.logs(later)) == 1_288_895, 10, "output kept on disk again")
        assert own.status(later)["output"]["fault"] is None


def test_a_slow_reader_loses_nothing_to_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with daemon("--min-free-disk", "0", wrapper=small_disk(disk, "1m"), state=disk / "state") as own:
        with connection(own, command="head -c 30000000 /dev/zero | tr '\\0' a; echo; echo END") as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            wait_until(lambda: own.status(command)["output"]["fault"], 20, "a full disk")
            rest = read_until(sock, b"\n0\r\n\r\n")
        assert rest.count(b"a") > 30_000_000 - 200_000
        assert b"END" in rest
        assert b'"execution_complete"' in rest


def test_the_disk_is_left_as_much_room_as_was_asked_for(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with daemon("--min-free-disk", "50", wrapper=small_disk(disk, "4m"), state=disk / "state") as own:
        command = own.background("seq 1 1000000; echo END")
        status = own.wait_ended(command)
        assert "50%" in status["output"]["fault"]
        assert own.logs(command).endswith(b"\nEND\n")
        free = os.statvfs(f"/proc/{own.pid}/root{disk}")
        assert free.f_bavail >= free.f_blocks * 0.3


def test_the_budget_for_all_output_is_kept_by_dropping_the_oldest() -> None:
    with daemon("--output-total", "4MiB", "--output-memory", "128KiB") as own:
        commands = [own.run(f"yes {n} | head -c 1500000")[0]["text"] for n in range(4)]
        parallel(lambda n: own.run(f"yes {n} | head -c 3000000; yes {n} | head -c 200000 >&2"), range(40), 10)
        assert own.client.get("/ping").status_code == 200
        wait_until(lambda: own.usage()["output_disk_bytes"] <= 4 * 1024 * 1024, 10, "the budget")
        files = sum(file.stat().st_size for file in own.state.glob("*.out"))
        assert files == own.usage()["output_disk_bytes"]
        assert own.status(commands[0])["output"]["fault"] == "dropped to make room for newer output"
        assert len(own.logs(commands[0])) <= 128 * 1024  # what memory still held


def test_a_kill_by_the_kernel_for_want_of_memory_is_told_from_any_other(tmp_path: Path) -> None:
    # The kernel's counter is a file of ours here, for both versions of control groups.
    counters = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
    write = "; ".join(f"echo 'oom_kill 0' > {counter}" for counter in counters)
    wrapper = mounted(f"mount -t tmpfs none /sys/fs/cgroup; mkdir /sys/fs/cgroup/memory; {write}")
    with daemon(wrapper=wrapper) as own:
        plain = own.run("kill -9 $$")[-1]
        assert plain["outcome"] == {"kind": "signaled", "signal": "SIGKILL"}
        struck = "; ".join(f"echo 'oom_kill 1' > {counter}" for counter in counters)
        last = own.run(f"{struck}; kill -9 $$")[-1]
        assert last["outcome"] == {"kind": "oom_killed", "signal": "SIGKILL"}
        assert last["error"]["evalue"] == "137"
        assert own.run("kill -9 $$")[-1]["outcome"]["kind"] == "signaled"


def test_the_kernel_kills_the_command_and_not_the_daemon() -> None:
    limit = {"memory_limit_in_bytes": 200_000_000}
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        limit = {"memory_max": 200_000_000}
    with control_group("memory", **limit) as wrapper, daemon(wrapper=wrapper) as own:
        last = own.run("tail /dev/zero; exit $?")[-1]
        assert last["exit_code"] == 137
        assert own.run(argv=["tail", "/dev/zero"])[-1]["outcome"]["kind"] == "oom_killed"
        assert own.client.get("/ping").status_code == 200


def test_the_kernel_is_told_to_prefer_commands_to_the_daemon(live: Daemon) -> None:
    score = int(text(live.run("sleep 0.1; cat /proc/self/oom_score_adj")))
    assert score > int(Path(f"/proc/{live.pid}/oom_score_adj").read_text())
