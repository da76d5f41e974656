"""/ping and /readyz: under load, in trouble, during a stop; and what a start does when it cannot."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.edge.raw import command, connection, exchange, request
from tests.support.live import ROOT, Daemon, daemon, free_port, text, wait_until

CHECKS = {"command", "state_directory", "disk", "processes", "descriptors"}


def reasons(answer: httpx.Response) -> dict[str, str]:
    """The checks that failed, with what they say."""
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    error = answer.json()
    assert (error["code"], error["executed"]) == ("NOT_READY", "not_executed")
    failed = {name: c["detail"] for name, c in error["details"]["checks"].items() if not c["ok"]}
    assert failed
    assert all(name in error["message"] and detail in error["message"] for name, detail in failed.items())
    return failed


def test_ping_answers_beside_a_hundred_commands_and_a_firehose() -> None:
    with daemon() as running, connection(running.port) as firehose:
        for _ in range(100):
            running.background("for i in $(seq 100); do echo $i; sleep 0.1; done")
        firehose.send(command("yes", timeout=20_000))
        done = threading.Event()

        def drink() -> None:
            while not done.is_set() and firehose.sock.recv(1 << 20):
                pass

        reader = threading.Thread(target=drink)
        reader.start()
        try:
            times = []
            for _ in range(50):
                began = time.monotonic()
                assert running.client.get("/ping").status_code == 200
                times.append(time.monotonic() - began)
            assert sorted(times)[45] < 2
            assert running.client.get("/readyz").status_code == 200
        finally:
            done.set()
            reader.join()


def test_ready_says_what_was_looked_at(live: Daemon) -> None:
    answer = live.client.get("/readyz")
    assert answer.status_code == 200
    body = answer.json()
    assert body["ready"] is True
    assert set(body["checks"]) == CHECKS
    assert all(check["ok"] and check["detail"] for check in body["checks"].values())


def test_callers_at_the_same_time_share_one_look() -> None:
    with daemon() as running:

        def one(_: int) -> str:
            return running.client.get("/readyz").text

        with ThreadPoolExecutor(20) as pool:
            answers = set(pool.map(one, range(60)))
        assert len(answers) == 1  # the time that the command took is in it
        assert running.usage()["records"] == 0  # and it leaves no record
        wait_until(lambda: running.client.get("/readyz").text not in answers, what="a new look")


def test_without_its_state_directory_it_is_not_ready_and_says_so() -> None:
    with daemon() as running:
        assert running.client.get("/readyz").status_code == 200
        shutil.rmtree(running.state)
        running.state.write_text("in the way of making it again")
        wait_until(lambda: running.client.get("/readyz").status_code == 503, what="not ready")
        assert str(running.state) in reasons(running.client.get("/readyz"))["state_directory"]
        assert text(running.run("echo still here")) == "still here\n"
        assert running.client.get("/ping").status_code == 200
        running.state.unlink()
        wait_until(lambda: running.client.get("/readyz").status_code == 200, what="ready again")


def test_with_its_descriptors_used_up_it_is_not_ready_and_says_so() -> None:
    with daemon(wrapper=("prlimit", "--nofile=64:64")) as running, contextlib.ExitStack() as stack:
        asks = stack.enter_context(connection(running.port))
        asks.send(request("GET", "/ping"))
        assert asks.answer().status == 200
        for _ in range(80):
            stack.enter_context(connection(running.port))
        asks.send(request("GET", "/readyz"))
        answer = asks.answer()
        assert answer.status == 503
        assert answer.error()["details"]["checks"]["descriptors"]["ok"] is False
        asks.send(command("echo hi"))
        refused = asks.answer().error()
        assert (refused["code"], refused["executed"]) == ("RESOURCE_EXHAUSTED", "not_executed")
        asks.send(request("GET", "/ping"))
        assert asks.answer().status == 200
        stack.close()
        wait_until(lambda: ready(running), what="ready again")
        assert text(running.run("echo hi")) == "hi\n"


def ready(running: Daemon) -> bool:
    try:
        return running.client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_command_that_hangs_is_told_within_five_seconds(tmp_path: Path) -> None:
    for name in ("bash", "sh"):
        (tmp_path / name).write_text("#!/usr/bin/env python3\nimport time\ntime.sleep(60)\n")
        (tmp_path / name).chmod(0o755)
    with daemon(env={"PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"}) as running:
        began = time.monotonic()
        failed = reasons(running.client.get("/readyz"))
        assert 4 < time.monotonic() - began < 12
        assert set(failed) == {"command"}
        assert running.client.get("/ping").status_code == 200
        wait_until(lambda: not running.children(), what="end of the command that hung")


def test_during_a_stop_it_is_alive_but_not_ready(tmp_path: Path) -> None:
    with daemon("--kill-grace", "30s", "--graceful-shutdown-timeout", "30s") as running:
        deaf = running.background(
            f"trap '' TERM; echo deaf; until [ -e {tmp_path}/enough ]; do sleep 0.05; done"
        )
        wait_until(lambda: running.logs(deaf) == b"deaf\n", what="a command that ignores TERM")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "SIGTERM" in running.log_text(), what="the signal")
        assert reasons(running.client.get("/readyz")) == {"accepting": "the daemon is stopping"}
        assert running.client.get("/ping").status_code == 200
        refused = running.client.post("/command", json={"command": "true"})
        assert (refused.status_code, refused.json()["code"]) == (503, "SHUTTING_DOWN")
        (tmp_path / "enough").touch()
        assert running.process.wait(20) == 0


def test_idle_means_that_nothing_wakes_up() -> None:
    with daemon() as running:
        running.run("echo hi")
        running.client.get("/readyz")

        def rests() -> bool:
            before = switches(running)
            time.sleep(3)  # what is measured is this time
            return switches(running) == before

        wait_until(rests, 20, "three seconds without a wake-up")


def switches(running: Daemon) -> dict[str, int]:
    """How often each thread was switched to."""
    found = {}
    for task in Path(f"/proc/{running.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        found[task.name] = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return found


def start(*flags: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "execd", "--host", "127.0.0.1", *flags]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


def test_a_second_daemon_on_the_same_port_ends_at_once_and_says_why(live: Daemon) -> None:
    began = time.monotonic()
    second = start("--port", str(live.port), "--state-dir", str(live.state))
    assert time.monotonic() - began < 10
    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr.count("\n") == 1
    assert f"127.0.0.1:{live.port}" in second.stderr
    assert "in use" in second.stderr
    assert text(live.run("echo unharmed")) == "unharmed\n"
    assert live.client.get("/readyz").status_code == 200


def test_an_address_that_is_none_of_ours_ends_it_too() -> None:
    ended = start("--host", "192.0.2.1", "--port", str(free_port()))
    assert ended.returncode == 1
    assert "192.0.2.1" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_what_an_earlier_daemon_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "sub.out").mkdir(parents=True)
    (state / "lock").write_text("1\n")  # a pid that lives, but is not ours
    (state / ("a" * 32 + ".out")).write_text("old output")
    (state / "a.probe").write_text("")
    (state / "notes.txt").write_text("mine")
    (state / "link.out").symlink_to(state / "notes.txt")
    with daemon(state=state) as running:
        assert running.client.get("/readyz").status_code == 200
        left = {path.name for path in state.iterdir()}
        assert left == {"sub.out", "lock", "notes.txt", "link.out"}
        assert (state / "notes.txt").read_text() == "mine"


def test_a_daemon_that_was_killed_leaves_nothing_that_stops_the_next(tmp_path: Path) -> None:
    state = tmp_path / "state"
    sizes = []
    for _ in range(3):
        with daemon("--output-memory", "128KiB", state=state) as running:
            running.background("head -c 1000000 /dev/zero; sleep 5")
            wait_until(lambda running=running: list(running.state.glob("*.out")), what="output")  # type: ignore[misc]
            sizes.append(len(list(state.iterdir())))
            running.process.kill()
            running.process.wait()
    assert sizes == [sizes[0]] * 3
    with daemon(state=state) as running:
        assert running.client.get("/readyz").status_code == 200
        assert not list(state.glob("*.out"))


def test_two_daemons_with_one_state_directory_do_not_harm_each_other(tmp_path: Path) -> None:
    state = tmp_path / "state"
    flags = ("--output-memory", "128KiB")
    with daemon(*flags, state=state) as first:
        command_id = first.background("seq 1 300000")
        first.wait_ended(command_id)
        whole = first.logs(command_id)
        assert len(whole) == 1_988_895
        with daemon(*flags, state=state) as second:
            assert "in use by another execd" in reasons(second.client.get("/readyz"))["state_directory"]
            assert len(text(second.run("seq 1 300000"))) == len(whole)
            assert first.logs(command_id) == whole
            assert first.client.get("/readyz").status_code == 200
        assert first.logs(command_id) == whole
        assert exchange(first.port, request("GET", "/readyz")).status == 200
