"""The limit on processes is reached: the daemon answers, says why it is not ready, and can end the cause."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.security.support import needs_root, open_directory
from tests.support.live import ROOT, daemon, text, wait_until

UID = 61_234  # nobody else's: the kernel counts the processes of a user
LIMIT = 40
HOG = "for i in $(seq 60); do sleep 60 & done; wait"


@needs_root
def test_when_no_process_is_left_the_daemon_can_still_end_what_took_them() -> None:
    wrapper = ("prlimit", f"--nproc={LIMIT}:{LIMIT}", "setpriv", f"--reuid={UID}", f"--regid={UID}")
    check = [*wrapper, "--clear-groups", sys.executable, "-c", "import uvicorn, pydantic"]
    if subprocess.run(check, cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("that user cannot run this interpreter here")
    with open_directory(UID, 0o700) as directory:
        with daemon(wrapper=(*wrapper, "--clear-groups"), state=directory / "state") as running:
            hog = running.background(HOG)

            def refused() -> bool:
                answer = running.client.post("/command", json={"command": "true"})
                return answer.status_code == 503 and answer.json()["code"] == "RESOURCE_EXHAUSTED"

            wait_until(refused, what="a command that finds no process")
            not_ready = running.client.get("/readyz")
            assert not_ready.status_code == 503
            assert "RESOURCE_EXHAUSTED" in not_ready.json()["details"]["checks"]["command"]["detail"]
            for path in ("/ping", "/capabilities", f"/command/status/{hog}", f"/command/{hog}/logs", "/docs"):
                assert running.client.get(path).status_code == 200, path
            assert running.client.delete("/command", params={"id": hog}).status_code == 200
            assert running.wait_ended(hog)["outcome"]["kind"] == "interrupted"
            assert text(running.run("echo hi")) == "hi\n"
            wait_until(lambda: running.client.get("/readyz").status_code == 200, what="ready again")
