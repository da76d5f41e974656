"""Secrets of the daemon stay out of its children, of /proc and of its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.support import NOBODY, needs_root
from tests.support.live import Daemon, daemon, text, wait_until

TOKEN = "tok-5e1f9a-access"
JUPYTER = "tok-77aa01-jupyter"
HOST = "http://jupyter.invalid:44771"


@pytest.fixture(scope="module", params=["flags", "variables"])
def secretive(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """A daemon that was given secrets, and logs as much as it can."""
    flags: list[str] = []
    env: dict[str, str] = {}
    if request.param == "flags":
        flags = ["--access-token", TOKEN, f"--jupyter-token={JUPYTER}", "--jupyter-host", HOST]
    else:
        env = {"EXECD_ACCESS_TOKEN": TOKEN, "JUPYTER_TOKEN": JUPYTER, "JUPYTER_HOST": HOST}
    with daemon("--log-level", "debug", *flags, env=env) as running:
        running.client.headers["X-EXECD-ACCESS-TOKEN"] = TOKEN
        yield running


PEEK = "env; tr '\\0' '\\n' </proc/$PPID/environ; tr '\\0' '\\n' </proc/$PPID/cmdline; echo the end"


@pytest.mark.parametrize("fields", [{}, {"background": True}], ids=["foreground", "background"])
def test_a_child_finds_no_secret_in_its_environment_or_that_of_the_daemon(
    secretive: Daemon, fields: dict[str, bool]
) -> None:
    if fields:
        command_id = secretive.background(PEEK)
        secretive.wait_ended(command_id)
        seen = secretive.logs(command_id).decode()
    else:
        seen = text(secretive.run(PEEK))
    assert seen.endswith("the end\n")
    assert "PATH=" in seen
    assert "execd" in seen  # its command line could be read
    for secret in (TOKEN, JUPYTER):
        assert secret not in seen
    assert "JUPYTER_" not in text(secretive.run("env"))


@needs_root
def test_a_child_of_another_user_finds_none_either(secretive: Daemon) -> None:
    seen = text(secretive.run("env; tr '\\0' '\\n' </proc/$PPID/cmdline", uid=NOBODY))
    assert "USER=nobody" in seen
    assert TOKEN not in seen
    assert JUPYTER not in seen


def test_proc_shows_no_secret_to_anybody(secretive: Daemon) -> None:
    for file in ("environ", "cmdline"):
        shown = Path(f"/proc/{secretive.pid}/{file}").read_bytes()
        assert TOKEN.encode() not in shown
        assert JUPYTER.encode() not in shown
    for thread in Path(f"/proc/{secretive.pid}/task").iterdir():
        assert TOKEN.encode() not in (thread / "environ").read_bytes()


def test_no_answer_shows_a_secret(secretive: Daemon) -> None:
    for path in ("/capabilities", "/readyz", "/openapi.yaml", "/docs", "/nowhere"):
        assert TOKEN not in secretive.client.get(path).text
        assert JUPYTER not in secretive.client.get(path).text


def test_the_log_masks_a_secret_wherever_a_client_puts_it(secretive: Daemon) -> None:
    secretive.client.get(f"/{TOKEN}")
    secretive.client.get("/ping", headers={"X-Request-ID": TOKEN})
    secretive.client.get("/last-of-the-log-test")
    wait_until(lambda: "last-of-the-log-test" in secretive.log_text(), what="the log line")
    assert TOKEN not in secretive.log_text()
    assert JUPYTER not in secretive.log_text()
    assert '"path": "/***"' in secretive.log_text()


@pytest.mark.parametrize("token", ['quote"and\\backslash', "ünïcode-tökén"])
def test_a_token_that_json_would_escape_is_masked_all_the_same(token: str) -> None:
    with daemon(env={"EXECD_ACCESS_TOKEN": token}) as running:
        header = {b"X-EXECD-ACCESS-TOKEN": token.encode()}
        assert running.client.get("/capabilities", headers=header).status_code == 200
        running.client.get(f"/{token}/last", headers=header)
        wait_until(lambda: '/last"' in running.log_text(), what="the log line")
        assert running.log_lines()[-1]["path"] == "/***/last"
