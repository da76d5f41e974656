"""Secrets that were in our command line and environment cannot be read there."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.live import ROOT

SECRETS = ["s3cret-token", "geheim-é", "again"]
PROGRAM = f"""
import os, sys
from execd.posix import selfcare
secrets = {SECRETS!r} + ["", "not-there"]
assert sys.argv[1:] == ["--access-token", {SECRETS[0]!r}, "--x={SECRETS[2]}{SECRETS[2]}"], sys.argv
selfcare.hide_secrets(secrets)
for name in ("cmdline", "environ"):
    sys.stdout.buffer.write(open(f"/proc/self/{{name}}", "rb").read())
assert os.environ["TOKEN"] == {SECRETS[1]!r}
"""


def test_they_are_overwritten_and_nothing_else_is() -> None:
    environment = {"BEFORE": "1", "TOKEN": SECRETS[1], "AFTER": "2", "PATH": os.defpath}
    arguments = ["--access-token", SECRETS[0], f"--x={SECRETS[2]}{SECRETS[2]}"]
    program = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, check=True)
    shown = done.stdout
    hidden = "*" * len(SECRETS[1].encode())
    assert f"BEFORE=1\0TOKEN={hidden}\0AFTER=2\0".encode() in shown
    assert b"\0--access-token\0" + b"*" * 12 + b"\0--x=" + b"*" * 10 + b"\0" in shown
