"""What the tests of this package share: daemons that are not root, and what they need of the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live import ROOT, Daemon, daemon

NOBODY = 65534

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)


def as_nobody(*more: str) -> tuple[str, ...]:
    """A wrapper that gives up root."""
    ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return ("setpriv", *ids, *more)


@contextlib.contextmanager
def open_directory(owner: int = 0, mode: int = 0o755) -> Iterator[Path]:
    """A temporary directory that other users can reach, owned by `owner`."""
    with tempfile.TemporaryDirectory(prefix="execd-test-", ignore_cleanup_errors=True) as name:
        os.chown(name, owner, owner)
        os.chmod(name, mode)
        yield Path(name)


@contextlib.contextmanager
def unprivileged(*flags: str, wrapper: tuple[str, ...] = ()) -> Iterator[Daemon]:
    """A daemon that runs as nobody and has a state directory of its own."""
    wrapper = as_nobody(*wrapper)
    check = [*wrapper, sys.executable, "-c", "import uvicorn, pydantic"]
    if subprocess.run(check, cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("nobody cannot run this interpreter here")
    with open_directory(NOBODY, 0o700) as directory:
        with daemon(*flags, wrapper=wrapper, state=directory / "state") as running:
            yield running
